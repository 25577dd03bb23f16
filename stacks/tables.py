"""The three tables. Names of attributes and indexes come from `spillway.keys`."""

from aws_cdk import aws_dynamodb as dynamodb
from constructs import Construct

from spillway import keys
from stacks.config import Stage

__all__ = ["event_table", "layout_table", "usage_table"]

_THROTTLED_KEYS = dynamodb.ContributorInsightsSpecification(
    enabled=True, mode=dynamodb.ContributorInsightsMode.THROTTLED_KEYS
)


def _text(name: str) -> dynamodb.Attribute:
    return dynamodb.Attribute(name=name, type=dynamodb.AttributeType.STRING)


def _number(name: str) -> dynamodb.Attribute:
    return dynamodb.Attribute(name=name, type=dynamodb.AttributeType.NUMBER)


def _recovery(stage: Stage) -> dynamodb.PointInTimeRecoverySpecification:
    return dynamodb.PointInTimeRecoverySpecification(
        point_in_time_recovery_enabled=stage.point_in_time_recovery
    )


def event_table(scope: Construct, *, stage: Stage) -> dynamodb.TableV2:
    """Return the table of events with its index by time bucket.

    Contributor Insights counts throttled keys only, on the table and on the index: it costs nothing
    until something throttles, and then names the key.
    """
    return dynamodb.TableV2(
        scope,
        "Events",
        partition_key=_text(keys.PARTITION_KEY),
        sort_key=_text(keys.SORT_KEY),
        billing=dynamodb.Billing.on_demand(),
        time_to_live_attribute=keys.EXPIRES,
        global_secondary_indexes=[
            dynamodb.GlobalSecondaryIndexPropsV2(
                index_name=keys.INDEX_NAME,
                partition_key=_text(keys.INDEX_PARTITION_KEY),
                sort_key=_text(keys.SORT_KEY),
                projection_type=dynamodb.ProjectionType[stage.projection],
                non_key_attributes=list(stage.projected) or None,
            )
        ],
        contributor_insights_specification=_THROTTLED_KEYS,
        point_in_time_recovery_specification=_recovery(stage),
        deletion_protection=stage.deletion_protection,
        removal_policy=stage.removal_policy,
    )


def layout_table(scope: Construct, *, stage: Stage) -> dynamodb.TableV2:
    """Return the table of layouts: without it no reader finds its shards, so it is kept like events.

    The sparse index holds only series with more than one shard, whole: layouts are few and small.
    """
    return dynamodb.TableV2(
        scope,
        "Layouts",
        partition_key=_text(keys.LAYOUT_KEY),
        billing=dynamodb.Billing.on_demand(),
        global_secondary_indexes=[
            dynamodb.GlobalSecondaryIndexPropsV2(
                index_name=keys.LAYOUT_INDEX_NAME,
                partition_key=_text(keys.LAYOUT_INDEX_KEY),
                sort_key=_text(keys.LAYOUT_KEY),
                projection_type=dynamodb.ProjectionType.ALL,
            )
        ],
        point_in_time_recovery_specification=_recovery(stage),
        deletion_protection=stage.deletion_protection,
        removal_policy=stage.removal_policy,
    )


def usage_table(scope: Construct, *, stage: Stage) -> dynamodb.TableV2:
    """Return the table of what writers consumed, by series and window; rows expire."""
    return dynamodb.TableV2(
        scope,
        "Usage",
        partition_key=_text(keys.USAGE_KEY),
        sort_key=_number(keys.USAGE_SORT_KEY),
        billing=dynamodb.Billing.on_demand(),
        time_to_live_attribute=keys.USAGE_EXPIRES,
        point_in_time_recovery_specification=_recovery(stage),
        deletion_protection=stage.deletion_protection,
        removal_policy=stage.removal_policy,
    )
