"""Charges: what requests consume, on which partitions, and how that is consumed and reported.

A `Charge` is a plain tuple, since 25 items make 50 of them in a few microseconds:
`(target, partition, units, partition key, sort key, extra)`. `target` is the table or index that a
ConsumedCapacity names. `extra` is, for a write, the bytes by which the partition grows; for a read,
the tokens it takes (eventually consistent reads take fewer than units). A scan has no key: its
partition key is `SCAN`, its sort key the hash at which the page starts.

`ItemCharges` are all charges of one item, which are admitted or refused together. Nothing is
refused here: see `dynamoheat.admission`.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from dynamoheat.partitions import Partition, position
from dynamoheat.resources import Resource

__all__ = [
    "SCAN",
    "Charge",
    "IndexTarget",
    "ItemCharges",
    "PartitionSums",
    "ResourceSums",
    "consume_reads",
    "consume_summed_reads",
    "consume_summed_writes",
    "consume_writes",
    "consumed_capacity",
    "difference",
    "sum_by_partition",
    "sum_by_resource",
    "total_units",
]

SCAN: Final = ""  # no partition key is empty


@dataclass(frozen=True, slots=True, eq=False)
class IndexTarget:
    """A table, a global index (with its own `resource`) or a local index (with its table's)."""

    resource: Resource
    name: str | None  # None: the table
    is_local: bool = False


Charge = tuple[IndexTarget, Partition, float, str, Any, float]
ItemCharges = Sequence[Charge]
PartitionSums = dict[Partition, list[float]]  # units, extra, charges
ResourceSums = dict[Resource, list[float]]  # units, items


def sum_by_partition(charges: Iterable[Charge]) -> PartitionSums:
    """Sum charges by partition."""
    sums: PartitionSums = {}
    for _, partition, units, _, _, extra in charges:
        entry = sums.get(partition)
        if entry is None:
            sums[partition] = [units, extra, 1]
        else:
            entry[0] += units
            entry[1] += extra
            entry[2] += 1
    return sums


def sum_by_resource(sums: PartitionSums, *, count: bool = True) -> ResourceSums:
    """Sum by table and index; without `count`, no items."""
    totals: ResourceSums = {}
    for partition, (units, _, items) in sums.items():
        entry = totals.get(partition.owner)
        if entry is None:
            totals[partition.owner] = [units, items if count else 0]
        elif count:
            entry[0] += units
            entry[1] += items
        else:
            entry[0] += units
    return totals


def total_units(charges: ItemCharges) -> float:
    """Return the units of an item on all targets."""
    return sum(charge[2] for charge in charges)


def difference(old: Iterable[ItemCharges], new: Iterable[ItemCharges]) -> list[Charge]:
    """Return the charges that turn `old` into `new`; the units of `old` are negative.

    Partitions that were split in between are replaced by their current children.
    """
    charges = [
        (target, part, -units, key, sort, -extra)
        for charges in old
        for target, part, units, key, sort, extra in charges
    ]
    charges.extend(charge for charges in new for charge in charges)
    return [
        (target, _today(target, part, key, sort), units, key, sort, extra)
        for target, part, units, key, sort, extra in charges
    ]


def _today(target: IndexTarget, partition: Partition, key: str, sort: Any) -> Partition:
    if not partition.is_split:
        return partition
    partitions = target.resource.partitions
    return partitions.at((sort,)) if key == SCAN else partitions.find(key, sort)


def consume_writes(charges: Sequence[Charge], now: float, *, corrects: bool = False) -> None:
    """Consume write charges whatever the buckets hold, leaving debts if need be.

    With `corrects` they correct an earlier consumption, and no items are counted.
    """
    sums = sum_by_partition(charges)
    if corrects:
        _fill(sums, now)
    consume_summed_writes(charges, sums, sum_by_resource(sums, count=not corrects), now)


def consume_reads(charges: Sequence[Charge], now: float, *, corrects: bool = False) -> None:
    """Consume read charges whatever the buckets hold, as `consume_writes`."""
    sums = sum_by_partition(charges)
    totals = sum_by_resource(sums, count=not corrects)
    for partition in sums:
        partition.read.fill(now)
    for resource in totals:
        for limit in resource.reads.limits:
            limit.bucket.fill(now)
    consume_summed_reads(charges, sums, totals, now)


def consume_summed_writes(
    charges: Sequence[Charge], sums: PartitionSums, totals: ResourceSums, now: float
) -> None:
    """Consume summed write charges. The buckets must be filled up to `now`."""
    for partition, (units, growth, _) in sums.items():
        bucket = partition.write
        bucket.tokens -= units
        if bucket.tokens < 0 and partition.owner.index is not None:
            partition.owner.partitions_in_debt[partition] = None
        partition.write_units += units
        partition.bytes += growth
        observed = partition.traffic_sample
        observed.pending_units += units
        if observed.pending_units >= observed.stride:
            _observe(partition, units, charges)
    for resource, (units, items) in totals.items():
        for limit in resource.writes.limits:
            limit.bucket.tokens -= units
        resource.meter.advance(now)
        resource.meter.count_writes(units, int(items))
        if resource.insights.counts_accessed_keys:
            _count_accessed(resource, charges, 3.0, now)


def consume_summed_reads(
    charges: Sequence[Charge], sums: PartitionSums, totals: ResourceSums, now: float
) -> None:
    """Consume summed read charges. The buckets must be filled up to `now`.

    As `consume_summed_writes`: without the charges themselves the caller samples the traffic.
    """
    for partition, (units, tokens, _) in sums.items():
        partition.read.tokens -= tokens
        partition.tokens_read += tokens
        partition.consumed_read += units
        partition.traffic_sample.pending_units += units
        if partition.traffic_sample.pending_units >= partition.traffic_sample.stride:
            _observe(partition, units, charges)
    for resource, (units, items) in totals.items():
        for limit in resource.reads.limits:
            limit.bucket.tokens -= units
        resource.meter.advance(now)
        resource.meter.count_reads(units, int(items))
        if resource.insights.counts_accessed_keys:
            _count_accessed(resource, charges, 1.0, now)


def _fill(sums: PartitionSums, now: float) -> None:
    for partition in sums:
        partition.write.fill(now)
        for limit in partition.owner.writes.limits:
            limit.bucket.fill(now)


def _observe(partition: Partition, units: float, charges: Iterable[Charge]) -> None:
    """Sample the key whose units complete the stride: evenly by units, not by requests."""
    observed = partition.traffic_sample
    credit = observed.pending_units - units
    for _, where, some, key, sort, _ in charges:
        if where is partition:
            credit += some
            if credit >= observed.stride and key != SCAN:
                observed.add(position(key, sort))
                return


def _count_accessed(
    resource: Resource, charges: Iterable[Charge], weight: float, now: float
) -> None:
    for target, _, units, key, sort, _ in charges:
        if target.resource is resource and key != SCAN:
            resource.insights.count_consumed(key, _text(sort), units * weight, now)


def _text(sort: object) -> str | None:
    return None if sort is None else str(sort)


def consumed_capacity(
    item_charges: Iterable[ItemCharges], form: str, *, write: bool, transactional: bool = False
) -> list[dict[str, Any]]:
    """Return ConsumedCapacity as DynamoDB shapes it: one a table, in the order of first use.

    `form` is TOTAL or INDEXES, as in ReturnConsumedCapacity. Single-table operations answer with
    the only element. Transactions also name the kind of units. Indexes without consumption are left
    out.
    """
    kind = ("WriteCapacityUnits" if write else "ReadCapacityUnits") if transactional else None
    return [
        _table_shape(table, units_by_target, kind, detailed=form == "INDEXES")
        for table, units_by_target in _sum_by_table(item_charges).items()
    ]


def _sum_by_table(item_charges: Iterable[ItemCharges]) -> dict[str, dict[IndexTarget, float]]:
    tables: dict[str, dict[IndexTarget, float]] = {}
    for charges in item_charges:
        for target, _, units, *_ in charges:
            units_by_target = tables.setdefault(target.resource.table, {})
            units_by_target[target] = units_by_target.get(target, 0.0) + units
    return tables


def _table_shape(
    table: str, units_by_target: Mapping[IndexTarget, float], kind: str | None, *, detailed: bool
) -> dict[str, Any]:
    shape: dict[str, Any] = {
        "TableName": table,
        **_units_shape(sum(units_by_target.values()), kind),
    }
    if not detailed:
        return shape
    own = sum(units for target, units in units_by_target.items() if target.name is None)
    shape["Table"] = _units_shape(own, kind)
    for group, local in (("GlobalSecondaryIndexes", False), ("LocalSecondaryIndexes", True)):
        indexes = {
            target.name: _units_shape(units, kind)
            for target, units in units_by_target.items()
            if target.name is not None and target.is_local is local
        }
        if indexes:
            shape[group] = indexes
    return shape


def _units_shape(units: float, kind: str | None) -> dict[str, float]:
    return {"CapacityUnits": units} if kind is None else {"CapacityUnits": units, kind: units}
