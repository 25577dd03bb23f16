"""States in the emulated DynamoDB the table settings that its CloudFormation passes over."""

from typing import TYPE_CHECKING

from local.templates import TemplateSettings, TemplateThroughput

if TYPE_CHECKING:
    from types_boto3_dynamodb import DynamoDBClient

__all__ = ["apply_table_settings"]

_NOTHING = TemplateSettings(on_demand=True, table=TemplateThroughput())


def apply_table_settings(
    client: "DynamoDBClient", name: str, settings: TemplateSettings, before: TemplateSettings | None
) -> None:
    """Make the calls that take a table from the settings stated `before` to `settings`."""
    before = before or _NOTHING
    _state_expiry(client, name, settings.expiry_attribute, before.expiry_attribute)
    if settings.recovery != before.recovery:
        client.update_continuous_backups(
            TableName=name,
            PointInTimeRecoverySpecification={"PointInTimeRecoveryEnabled": settings.recovery},
        )
    if settings.deletion_protection != before.deletion_protection:
        client.update_table(TableName=name, DeletionProtectionEnabled=settings.deletion_protection)
    _state_insights(client, name, settings, before)
    _state_maximum(client, name, settings.table, before.table)


def _state_expiry(
    client: "DynamoDBClient", name: str, attribute: str | None, before: str | None
) -> None:
    changed = attribute or before
    if attribute != before and changed is not None:
        client.update_time_to_live(
            TableName=name,
            TimeToLiveSpecification={"Enabled": attribute is not None, "AttributeName": changed},
        )


def _state_insights(
    client: "DynamoDBClient", name: str, settings: TemplateSettings, before: TemplateSettings
) -> None:
    if settings.table.insights != before.table.insights:
        client.update_contributor_insights(
            TableName=name,
            ContributorInsightsAction="ENABLE" if settings.table.insights else "DISABLE",
        )
    for index, throughput in settings.indexes.items():
        if throughput.insights != before.indexes.get(index, _NOTHING.table).insights:
            client.update_contributor_insights(
                TableName=name,
                IndexName=index,
                ContributorInsightsAction="ENABLE" if throughput.insights else "DISABLE",
            )


def _state_maximum(
    client: "DynamoDBClient", name: str, limits: TemplateThroughput, before: TemplateThroughput
) -> None:
    if (limits.max_read, limits.max_write) != (before.max_read, before.max_write):
        client.update_table(
            TableName=name,
            OnDemandThroughput={
                "MaxReadRequestUnits": limits.max_read or -1,
                "MaxWriteRequestUnits": limits.max_write or -1,
            },
        )
