"""The three tables. Names of attributes and indexes come from `spillway.keys`."""

from dataclasses import dataclass

from aws_cdk import RemovalPolicy
from aws_cdk import aws_dynamodb as dynamodb
from constructs import Construct

from spillway import keys
from stacks.capacity import billing, index_capacity, state_cooldowns, warm_throughput
from stacks.settings import Capacity, Projection

__all__ = ["RetentionPolicy", "event_table", "layout_table", "usage_table"]

_THROTTLED_KEYS = dynamodb.ContributorInsightsSpecification(
    enabled=True, mode=dynamodb.ContributorInsightsMode.THROTTLED_KEYS
)


@dataclass(frozen=True, kw_only=True, slots=True)
class RetentionPolicy:
    """What becomes of a table's data when something is deleted."""

    removal_policy: RemovalPolicy
    deletion_protection: bool
    point_in_time_recovery: bool


def _text(name: str) -> dynamodb.Attribute:
    return dynamodb.Attribute(name=name, type=dynamodb.AttributeType.STRING)


def _number(name: str) -> dynamodb.Attribute:
    return dynamodb.Attribute(name=name, type=dynamodb.AttributeType.NUMBER)


def _recovery(keeping: RetentionPolicy) -> dynamodb.PointInTimeRecoverySpecification:
    return dynamodb.PointInTimeRecoverySpecification(
        point_in_time_recovery_enabled=keeping.point_in_time_recovery
    )


def event_table(
    scope: Construct,
    *,
    keeping: RetentionPolicy,
    capacity: Capacity,
    projection: Projection,
    projected: tuple[str, ...],
) -> dynamodb.TableV2:
    """Return the table of events with its index by time bucket.

    Contributor Insights counts throttled keys only, on the table and on the index: it costs nothing
    until something throttles, and then names the key.
    """
    table = dynamodb.TableV2(
        scope,
        "Events",
        partition_key=_text(keys.PARTITION_KEY),
        sort_key=_text(keys.SORT_KEY),
        billing=billing(capacity),
        warm_throughput=warm_throughput(capacity),
        time_to_live_attribute=keys.EXPIRES,
        global_secondary_indexes=[
            dynamodb.GlobalSecondaryIndexPropsV2(
                index_name=keys.INDEX_NAME,
                partition_key=_text(keys.INDEX_PARTITION_KEY),
                sort_key=_text(keys.SORT_KEY),
                projection_type=dynamodb.ProjectionType[projection],
                non_key_attributes=list(projected) or None,
                **index_capacity(capacity),
            )
        ],
        contributor_insights_specification=_THROTTLED_KEYS,
        point_in_time_recovery_specification=_recovery(keeping),
        deletion_protection=keeping.deletion_protection,
        removal_policy=keeping.removal_policy,
    )
    state_cooldowns(table, capacity)
    return table


def layout_table(scope: Construct, *, keeping: RetentionPolicy) -> dynamodb.TableV2:
    """Return the table of layouts: without it no reader finds its shards, so it is kept like events.

    The sparse index lists series with more than one shard under one partition key. It carries keys
    only, so that a layout which changes and stays sharded writes nothing to that key.
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
                projection_type=dynamodb.ProjectionType.KEYS_ONLY,
            )
        ],
        point_in_time_recovery_specification=_recovery(keeping),
        deletion_protection=keeping.deletion_protection,
        removal_policy=keeping.removal_policy,
    )


def usage_table(scope: Construct, *, keeping: RetentionPolicy) -> dynamodb.TableV2:
    """Return the table of what writers consumed, by series and window; rows expire."""
    return dynamodb.TableV2(
        scope,
        "Usage",
        partition_key=_text(keys.USAGE_KEY),
        sort_key=_number(keys.USAGE_SORT_KEY),
        billing=dynamodb.Billing.on_demand(),
        time_to_live_attribute=keys.USAGE_EXPIRES,
        point_in_time_recovery_specification=_recovery(keeping),
        deletion_protection=keeping.deletion_protection,
        removal_policy=keeping.removal_policy,
    )
