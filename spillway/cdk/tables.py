"""The three tables of an event store as a construct: events, layouts, usage."""

from dataclasses import dataclass
from typing import Any, Final, TypedDict

import jsii
from aws_cdk import RemovalPolicy, Stack
from aws_cdk import aws_dynamodb as dynamodb
from aws_cdk import aws_iam as iam
from constructs import Construct, IValidation

from spillway import keys
from spillway.cdk.access import ACCESS, Access, statements
from spillway.cdk.environment import table_environment
from spillway.cdk.settings import (
    EVENTS,
    ON_DEMAND,
    Capacity,
    EventSettings,
    OnDemand,
    ScaledUnits,
    Units,
)

__all__ = ["ShardedEventTable"]

_THROTTLED_KEYS: Final = dynamodb.ContributorInsightsSpecification(
    enabled=True, mode=dynamodb.ContributorInsightsMode.THROTTLED_KEYS
)

_REPLICAS: Final = (
    "Spillway's tables can't have replicas. Between regions the last writer wins, so two regions"
    " that change the layout of one series lose an epoch, and readers no longer find the events"
    " that were written under it. Deploy a stack in each region instead."
)
_PROJECTION: Final = (
    f"The index {keys.INDEX_NAME} must project ALL attributes. Reads from the index need whole"
    " events: with KEYS_ONLY or INCLUDE nothing reads it, and it still costs up to a write unit an"
    " event."
)


class ShardedEventTable(Construct):
    """A table that takes any number of writes for one series, with what its shards need.

    Attributes:
        events: the table of events, with its index `index_name`.
        layouts: how many shards each series has. Without it no reader finds events, so it is
            retained like they are.
        usage: what writers consumed lately.
        environment: variables of a function that opens an `EventStore` on the tables.
    """

    index_name = keys.INDEX_NAME

    def __init__(  # noqa: PLR0913  what may be set of the tables
        self,
        scope: Construct,
        construct_id: str,
        *,
        settings: EventSettings = EVENTS,
        capacity: Capacity = ON_DEMAND,
        removal_policy: RemovalPolicy = RemovalPolicy.RETAIN,
        deletion_protection: bool = False,
        point_in_time_recovery: bool = True,
    ) -> None:
        """Build the tables; `capacity` is that of events and of their index.

        Synthesis fails where a table gets replicas, or the index of events another projection.
        """
        super().__init__(scope, construct_id)
        retention = _RetentionPolicy(
            removal_policy=removal_policy,
            deletion_protection=deletion_protection,
            point_in_time_recovery=point_in_time_recovery,
        )
        self.events = _event_table(self, retention, capacity)
        self.layouts = _layout_table(self, retention)
        self.usage = _usage_table(self, retention)
        for table in (self.events, self.layouts, self.usage):
            table.node.add_validation(_NoReplicas(table))
        self.events.node.add_validation(_WholeEventsInIndex(self.events))
        self.environment = table_environment(
            events=self.events, layouts=self.layouts, usage=self.usage, settings=settings
        )

    def grant_write(self, grantee: iam.IGrantable) -> None:
        """Allow the calls of `EventStore.write`, its growth of layouts included."""
        self.grant(grantee, ACCESS["ingest"])

    def grant_read(self, grantee: iam.IGrantable) -> None:
        """Allow the calls of `EventStore.read` and `EventStore.aggregate`."""
        self.grant(grantee, ACCESS["query"])

    def grant(self, grantee: iam.IGrantable, access: Access) -> None:
        """Allow exactly the listed actions."""
        for statement in statements(
            access, events=self.events, layouts=self.layouts, usage=self.usage
        ):
            grantee.grant_principal.add_to_principal_policy(statement)


@jsii.implements(IValidation)
class _NoReplicas:
    """Refuse a table with replicas in other regions."""

    def __init__(self, table: dynamodb.TableV2) -> None:
        self._table = table

    def validate(self) -> list[str]:
        replicas = _resolved(self._table, _resource(self._table).replicas)
        if len(replicas) <= 1:  # the table itself is the first
            return []
        return [_REPLICAS]


@jsii.implements(IValidation)
class _WholeEventsInIndex:
    """Refuse a projection of the index of events that leaves attributes out."""

    def __init__(self, table: dynamodb.TableV2) -> None:
        self._table = table

    def validate(self) -> list[str]:
        indexes = _resolved(self._table, _resource(self._table).global_secondary_indexes)
        kinds = [
            each["projection"]["projectionType"]
            for each in indexes
            if each["indexName"] == keys.INDEX_NAME
        ]
        if kinds == ["ALL"]:
            return []
        return [_PROJECTION]


def _resource(table: dynamodb.TableV2) -> dynamodb.CfnGlobalTable:
    resource = table.node.default_child
    if not isinstance(resource, dynamodb.CfnGlobalTable):
        raise TypeError(f"{table.node.path} is no global table")
    return resource


def _resolved(table: dynamodb.TableV2, value: object) -> list[Any]:
    resolved: list[Any] = Stack.of(table).resolve(value)
    return resolved


@dataclass(frozen=True, kw_only=True, slots=True)
class _RetentionPolicy:
    """What becomes of a table's data when something is deleted."""

    removal_policy: RemovalPolicy
    deletion_protection: bool
    point_in_time_recovery: bool

    @property
    def recovery(self) -> dynamodb.PointInTimeRecoverySpecification:
        return dynamodb.PointInTimeRecoverySpecification(
            point_in_time_recovery_enabled=self.point_in_time_recovery
        )


def _event_table(
    scope: Construct, retention: _RetentionPolicy, capacity: Capacity
) -> dynamodb.TableV2:
    """Return the table of events with its index by time bucket.

    Contributor Insights counts throttled keys only, on the table and on the index. It costs nothing
    until something throttles, and then names the key.
    """
    table = dynamodb.TableV2(
        scope,
        "Events",
        partition_key=_text(keys.PARTITION_KEY),
        sort_key=_text(keys.SORT_KEY),
        billing=_billing(capacity),
        warm_throughput=_warm_throughput(capacity),
        time_to_live_attribute=keys.EXPIRES,
        global_secondary_indexes=[
            dynamodb.GlobalSecondaryIndexPropsV2(
                index_name=keys.INDEX_NAME,
                partition_key=_text(keys.INDEX_PARTITION_KEY),
                sort_key=_text(keys.SORT_KEY),
                projection_type=dynamodb.ProjectionType.ALL,
                **_index_capacity(capacity),
            )
        ],
        contributor_insights_specification=_THROTTLED_KEYS,
        point_in_time_recovery_specification=retention.recovery,
        deletion_protection=retention.deletion_protection,
        removal_policy=retention.removal_policy,
    )
    _set_cooldowns(table, capacity)
    return table


def _layout_table(scope: Construct, retention: _RetentionPolicy) -> dynamodb.TableV2:
    """Return the table of layouts.

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
        point_in_time_recovery_specification=retention.recovery,
        deletion_protection=retention.deletion_protection,
        removal_policy=retention.removal_policy,
    )


def _usage_table(scope: Construct, retention: _RetentionPolicy) -> dynamodb.TableV2:
    """Return the table of what writers consumed, by series and window; rows expire."""
    return dynamodb.TableV2(
        scope,
        "Usage",
        partition_key=_text(keys.USAGE_KEY),
        sort_key=_number(keys.USAGE_SORT_KEY),
        billing=dynamodb.Billing.on_demand(),
        time_to_live_attribute=keys.USAGE_EXPIRES,
        point_in_time_recovery_specification=retention.recovery,
        deletion_protection=retention.deletion_protection,
        removal_policy=retention.removal_policy,
    )


def _text(name: str) -> dynamodb.Attribute:
    return dynamodb.Attribute(name=name, type=dynamodb.AttributeType.STRING)


def _number(name: str) -> dynamodb.Attribute:
    return dynamodb.Attribute(name=name, type=dynamodb.AttributeType.NUMBER)


def _billing(capacity: Capacity) -> dynamodb.Billing:
    """Return how the table is paid for, and its maximum."""
    if isinstance(capacity, OnDemand):
        maximum = capacity.maximum
        return dynamodb.Billing.on_demand(
            max_read_request_units=maximum.read, max_write_request_units=maximum.write
        )
    return dynamodb.Billing.provisioned(
        read_capacity=_scaled(capacity.read), write_capacity=_scaled(capacity.write)
    )


def _warm_throughput(capacity: Capacity) -> dynamodb.WarmThroughput | None:
    """Return what the table is ready for at once, or None where that is not set."""
    warm = capacity.warm if isinstance(capacity, OnDemand) else Units()
    if warm == Units():
        return None
    return dynamodb.WarmThroughput(
        read_units_per_second=warm.read, write_units_per_second=warm.write
    )


class _IndexCapacity(TypedDict, total=False):
    """Arguments of an index for a capacity of its own."""

    max_read_request_units: int
    max_write_request_units: int
    read_capacity: dynamodb.Capacity
    write_capacity: dynamodb.Capacity
    warm_throughput: dynamodb.WarmThroughput


def _index_capacity(capacity: Capacity) -> _IndexCapacity:
    """Return the capacity of the index, which throttles the table where it is too small."""
    if not isinstance(capacity, OnDemand):
        return _IndexCapacity(
            read_capacity=_scaled(capacity.index_read), write_capacity=_scaled(capacity.index_write)
        )
    arguments = _IndexCapacity()
    if capacity.maximum.read is not None:
        arguments["max_read_request_units"] = capacity.maximum.read
    if capacity.maximum.write is not None:
        arguments["max_write_request_units"] = capacity.maximum.write
    warm = _warm_throughput(capacity)
    if warm is not None:
        arguments["warm_throughput"] = warm
    return arguments


_WRITES: Final = "WriteProvisionedThroughputSettings.WriteCapacityAutoScalingSettings"
_READS: Final = "ReadProvisionedThroughputSettings.ReadCapacityAutoScalingSettings"
_POLICY: Final = "TargetTrackingScalingPolicyConfiguration"


def _set_cooldowns(table: dynamodb.TableV2, capacity: Capacity) -> None:
    """Add the cooldowns of auto scaling, which `dynamodb.Capacity` lacks.

    The table must have one index and no replica.
    """
    if isinstance(capacity, OnDemand):
        return
    resource = _resource(table)
    for path, units in (
        (_WRITES, capacity.write),
        (f"Replicas.0.{_READS}", capacity.read),
        (f"GlobalSecondaryIndexes.0.{_WRITES}", capacity.index_write),
        (f"Replicas.0.GlobalSecondaryIndexes.0.{_READS}", capacity.index_read),
    ):
        resource.add_property_override(f"{path}.{_POLICY}.ScaleOutCooldown", units.cooldown_up)
        resource.add_property_override(f"{path}.{_POLICY}.ScaleInCooldown", units.cooldown_down)


def _scaled(units: ScaledUnits) -> dynamodb.Capacity:
    return dynamodb.Capacity.autoscaled(
        min_capacity=units.minimum,
        max_capacity=units.maximum,
        seed_capacity=units.start or units.minimum,
        target_utilization_percent=units.target,
    )
