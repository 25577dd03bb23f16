"""Capacity of a table and of its index as CDK states it; both alike."""

from typing import Final, TypedDict

from aws_cdk import aws_dynamodb as dynamodb

from stacks.settings import Capacity, OnDemand, ScaledUnits, Units

__all__ = ["IndexCapacity", "billing", "index_capacity", "state_cooldowns", "warm_throughput"]

_WRITES: Final = "WriteProvisionedThroughputSettings.WriteCapacityAutoScalingSettings"
_READS: Final = "ReadProvisionedThroughputSettings.ReadCapacityAutoScalingSettings"
_POLICY: Final = "TargetTrackingScalingPolicyConfiguration"


class IndexCapacity(TypedDict, total=False):
    """What an index states of its own capacity."""

    max_read_request_units: int
    max_write_request_units: int
    read_capacity: dynamodb.Capacity
    write_capacity: dynamodb.Capacity
    warm_throughput: dynamodb.WarmThroughput


def billing(capacity: Capacity) -> dynamodb.Billing:
    """Return how the table is paid for, and what bounds it."""
    if isinstance(capacity, OnDemand):
        maximum = capacity.maximum
        return dynamodb.Billing.on_demand(
            max_read_request_units=maximum.read, max_write_request_units=maximum.write
        )
    return dynamodb.Billing.provisioned(
        read_capacity=_scaled(capacity.read), write_capacity=_scaled(capacity.write)
    )


def warm_throughput(capacity: Capacity) -> dynamodb.WarmThroughput | None:
    """Return what the table is ready for at once; None, and nothing in the template, unless it is set."""
    warm = capacity.warm if isinstance(capacity, OnDemand) else Units()
    if warm == Units():
        return None
    return dynamodb.WarmThroughput(
        read_units_per_second=warm.read, write_units_per_second=warm.write
    )


def index_capacity(capacity: Capacity) -> IndexCapacity:
    """Return what the index states: it has a capacity of its own, and throttles the table by it."""
    if not isinstance(capacity, OnDemand):
        return IndexCapacity(
            read_capacity=_scaled(capacity.index_read), write_capacity=_scaled(capacity.index_write)
        )
    stated = IndexCapacity()
    if capacity.maximum.read is not None:
        stated["max_read_request_units"] = capacity.maximum.read
    if capacity.maximum.write is not None:
        stated["max_write_request_units"] = capacity.maximum.write
    warm = warm_throughput(capacity)
    if warm is not None:
        stated["warm_throughput"] = warm
    return stated


def state_cooldowns(table: dynamodb.TableV2, capacity: Capacity) -> None:
    """Add the cooldowns of auto scaling, which `dynamodb.Capacity` does not know, to a table with one index."""
    if isinstance(capacity, OnDemand):
        return
    stated = (
        (_WRITES, capacity.write),
        (f"Replicas.0.{_READS}", capacity.read),
        (f"GlobalSecondaryIndexes.0.{_WRITES}", capacity.index_write),
        (f"Replicas.0.GlobalSecondaryIndexes.0.{_READS}", capacity.index_read),
    )
    resource = table.node.default_child
    if not isinstance(resource, dynamodb.CfnGlobalTable):
        raise TypeError(f"{table.node.path} is no global table")
    for path, units in stated:
        resource.add_property_override(f"{path}.{_POLICY}.ScaleOutCooldown", units.cooldown_up)
        resource.add_property_override(f"{path}.{_POLICY}.ScaleInCooldown", units.cooldown_down)


def _scaled(units: ScaledUnits) -> dynamodb.Capacity:
    return dynamodb.Capacity.autoscaled(
        min_capacity=units.minimum,
        max_capacity=units.maximum,
        seed_capacity=units.start or units.minimum,
        target_utilization_percent=units.target,
    )
