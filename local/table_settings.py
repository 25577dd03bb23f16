"""Table settings that MiniStack's CloudFormation ignores: read in templates, applied by API."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from types_boto3_dynamodb import DynamoDBClient

__all__ = [
    "TABLE_TYPES",
    "TemplateSettings",
    "TemplateThroughput",
    "apply_table_settings",
    "parse_table_settings",
]

_TABLE: Final = "AWS::DynamoDB::Table"
_GLOBAL_TABLE: Final = "AWS::DynamoDB::GlobalTable"
TABLE_TYPES: Final = frozenset({_TABLE, _GLOBAL_TABLE})
"""CloudFormation's types of tables."""

_INDEXES: Final = "GlobalSecondaryIndexes"

_Properties = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class TemplateThroughput:
    """Capacity of a table or an index in units per second, None where the template has none."""

    read: int | None = None  # provisioned
    write: int | None = None
    max_read: int | None = None  # on-demand maximum
    max_write: int | None = None
    warm_read: int | None = None
    warm_write: int | None = None
    insights: str | None = None  # mode of Contributor Insights, None where disabled


@dataclass(frozen=True, slots=True, kw_only=True)
class TemplateSettings:
    """The settings of a table beyond its keys and indexes."""

    on_demand: bool
    table: TemplateThroughput
    indexes: Mapping[str, TemplateThroughput] = field(default_factory=dict)
    expiry_attribute: str | None = None
    recovery: bool = False  # point in time
    deletion_protection: bool = False


_DEFAULTS: Final = TemplateSettings(on_demand=True, table=TemplateThroughput())


def parse_table_settings(resource: Mapping[str, Any], region: str) -> TemplateSettings | None:
    """Return the settings of a template's resource, None where it is no table.

    A value that is not literal (a reference, a function) counts as absent.
    """
    properties = resource.get("Properties") or {}
    if resource.get("Type") == _TABLE:
        return _parse(properties, replica=properties, parse_throughput=_table_throughput)
    if resource.get("Type") == _GLOBAL_TABLE:
        replica = _find_replica(properties, region)
        return _parse(properties, replica=replica, parse_throughput=_global_table_throughput)
    return None


def _parse(
    properties: _Properties, *, replica: _Properties, parse_throughput: Any
) -> TemplateSettings:
    replicated = {index.get("IndexName"): index for index in _mappings(replica, _INDEXES)}
    return TemplateSettings(
        on_demand=properties.get("BillingMode") == "PAY_PER_REQUEST",
        table=parse_throughput(properties, replica),
        indexes={
            str(index.get("IndexName")): parse_throughput(
                index, replicated.get(index.get("IndexName"), {})
            )
            for index in _mappings(properties, _INDEXES)
        },
        expiry_attribute=_expiry_attribute(properties),
        recovery=_is_true(
            replica, "PointInTimeRecoverySpecification", "PointInTimeRecoveryEnabled"
        ),
        deletion_protection=_is_true(replica, "DeletionProtectionEnabled"),
    )


def _table_throughput(properties: _Properties, replica: _Properties) -> TemplateThroughput:
    return TemplateThroughput(
        read=_number(properties, "ProvisionedThroughput", "ReadCapacityUnits"),
        write=_number(properties, "ProvisionedThroughput", "WriteCapacityUnits"),
        max_read=_number(properties, "OnDemandThroughput", "MaxReadRequestUnits"),
        max_write=_number(properties, "OnDemandThroughput", "MaxWriteRequestUnits"),
        warm_read=_number(properties, "WarmThroughput", "ReadUnitsPerSecond"),
        warm_write=_number(properties, "WarmThroughput", "WriteUnitsPerSecond"),
        insights=_insights_mode(replica),
    )


def _global_table_throughput(properties: _Properties, replica: _Properties) -> TemplateThroughput:
    """Read a global table's capacity: of writes from the table, of reads from the replica."""
    reads, writes = "ReadProvisionedThroughputSettings", "WriteProvisionedThroughputSettings"
    return TemplateThroughput(
        read=_number(replica, reads, "ReadCapacityUnits")
        or _initial_capacity(replica, reads, "ReadCapacityAutoScalingSettings"),
        write=_initial_capacity(properties, writes, "WriteCapacityAutoScalingSettings"),
        max_read=_number(replica, "ReadOnDemandThroughputSettings", "MaxReadRequestUnits"),
        max_write=_number(properties, "WriteOnDemandThroughputSettings", "MaxWriteRequestUnits"),
        warm_read=_number(properties, "WarmThroughput", "ReadUnitsPerSecond"),
        warm_write=_number(properties, "WarmThroughput", "WriteUnitsPerSecond"),
        insights=_insights_mode(replica),
    )


def _initial_capacity(properties: _Properties, *path: str) -> int | None:
    """Return the capacity from which auto scaling starts."""
    return _number(properties, *path, "SeedCapacity") or _number(properties, *path, "MinCapacity")


def _find_replica(properties: _Properties, region: str) -> _Properties:
    here = (region, {"Ref": "AWS::Region"})
    replicas = _mappings(properties, "Replicas")
    return next((replica for replica in replicas if replica.get("Region") in here), {})


def _insights_mode(properties: _Properties) -> str | None:
    if not _is_true(properties, "ContributorInsightsSpecification", "Enabled"):
        return None
    mode = _value_at(properties, "ContributorInsightsSpecification", "Mode")
    return mode if isinstance(mode, str) else "ACCESSED_AND_THROTTLED_KEYS"


def _expiry_attribute(properties: _Properties) -> str | None:
    if not _is_true(properties, "TimeToLiveSpecification", "Enabled"):
        return None
    name = _value_at(properties, "TimeToLiveSpecification", "AttributeName")
    return name if isinstance(name, str) else None


def _value_at(node: Any, *path: str) -> Any:
    for key in path:
        node = node.get(key) if isinstance(node, Mapping) else None
    return node


def _is_true(properties: _Properties, *path: str) -> bool:
    return _value_at(properties, *path) in (True, "true")


def _number(properties: _Properties, *path: str) -> int | None:
    value = _value_at(properties, *path)
    return int(value) if isinstance(value, int | str) and str(value).isdecimal() else None


def _mappings(properties: _Properties, key: str) -> list[_Properties]:
    value = properties.get(key)
    entries = value if isinstance(value, list) else []
    return [entry for entry in entries if isinstance(entry, Mapping)]


def apply_table_settings(
    client: "DynamoDBClient", name: str, settings: TemplateSettings, before: TemplateSettings | None
) -> None:
    """Call the API for each setting of a table that differs from the settings applied before."""
    before = before or _DEFAULTS
    _apply_expiry(client, name, settings.expiry_attribute, before.expiry_attribute)
    if settings.recovery != before.recovery:
        client.update_continuous_backups(
            TableName=name,
            PointInTimeRecoverySpecification={"PointInTimeRecoveryEnabled": settings.recovery},
        )
    if settings.deletion_protection != before.deletion_protection:
        client.update_table(TableName=name, DeletionProtectionEnabled=settings.deletion_protection)
    _apply_insights(client, name, settings, before)
    _apply_maximum(client, name, settings.table, before.table)


def _apply_expiry(
    client: "DynamoDBClient", name: str, attribute: str | None, before: str | None
) -> None:
    changed = attribute or before
    if attribute != before and changed is not None:
        client.update_time_to_live(
            TableName=name,
            TimeToLiveSpecification={"Enabled": attribute is not None, "AttributeName": changed},
        )


def _apply_insights(
    client: "DynamoDBClient", name: str, settings: TemplateSettings, before: TemplateSettings
) -> None:
    if settings.table.insights != before.table.insights:
        client.update_contributor_insights(
            TableName=name,
            ContributorInsightsAction="ENABLE" if settings.table.insights else "DISABLE",
        )
    for index, throughput in settings.indexes.items():
        if throughput.insights != before.indexes.get(index, _DEFAULTS.table).insights:
            client.update_contributor_insights(
                TableName=name,
                IndexName=index,
                ContributorInsightsAction="ENABLE" if throughput.insights else "DISABLE",
            )


def _apply_maximum(
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
