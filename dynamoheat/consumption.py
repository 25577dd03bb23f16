"""Consuming what was admitted: tokens, counters, samples of keys. Nothing is refused here."""

from collections.abc import Iterable, Sequence

from dynamoheat.charges import SCAN, Charge, Sums, by_partition
from dynamoheat.partitions import Partition, position
from dynamoheat.resources import Resource

__all__ = [
    "Totals",
    "consume_reads",
    "consume_summed_reads",
    "consume_summed_writes",
    "consume_writes",
    "totals_of",
]

Totals = dict[Resource, list[float]]  # units, items


def consume_writes(charges: Sequence[Charge], now: float, *, corrects: bool = False) -> None:
    """Consume charges whatever the buckets hold: what happened must be paid for, with debt if need be.

    With `corrects` they correct what was taken before, and count no items.
    """
    sums = by_partition(charges)
    if corrects:
        _fill(sums, now)
    consume_summed_writes(charges, sums, totals_of(sums, count=not corrects), now)


def consume_reads(charges: Sequence[Charge], now: float, *, corrects: bool = False) -> None:
    """Consume read charges whatever the buckets hold, as `consume_writes`."""
    sums = by_partition(charges)
    totals = totals_of(sums, count=not corrects)
    for partition in sums:
        partition.read.fill(now)
    for resource in totals:
        for limit in resource.reads.limits:
            limit.bucket.fill(now)
    consume_summed_reads(charges, sums, totals, now)


def consume_summed_reads(charges: Sequence[Charge], sums: Sums, totals: Totals, now: float) -> None:
    """Consume read charges that are summed already; the buckets must be filled up to `now`.

    Sums without their charges leave the samples' credit to the caller, as `consume_summed_writes` does.
    """
    for partition, (units, tokens, _) in sums.items():
        partition.read.tokens -= tokens
        partition.read_tokens += tokens
        partition.consumed_read += units
        partition.observed.credit += units
        if partition.observed.credit >= partition.observed.stride:
            _observe(partition, units, charges)
    for resource, (units, items) in totals.items():
        for limit in resource.reads.limits:
            limit.bucket.tokens -= units
        resource.meter.advance(now)
        resource.meter.consume_read(units, int(items))
        if resource.insights.accessed:
            _count_accessed(resource, charges, 1.0, now)


def consume_summed_writes(
    charges: Sequence[Charge], sums: Sums, totals: Totals, now: float
) -> None:
    """Consume charges that are summed already; the buckets must be filled up to `now`."""
    for partition, (units, growth, _) in sums.items():
        bucket = partition.write
        bucket.tokens -= units
        if bucket.tokens < 0 and partition.owner.index is not None:
            partition.owner.indebted[partition] = None
        partition.write_units += units
        partition.bytes += growth
        observed = partition.observed
        observed.credit += units
        if observed.credit >= observed.stride:
            _observe(partition, units, charges)
    for resource, (units, items) in totals.items():
        for limit in resource.writes.limits:
            limit.bucket.tokens -= units
        resource.meter.advance(now)
        resource.meter.consume_write(units, int(items))
        if resource.insights.accessed:
            _count_accessed(resource, charges, 3.0, now)


def _observe(partition: Partition, units: float, charges: Iterable[Charge]) -> None:
    """Sample the key whose units complete the sample's stride: evenly by units, not by request."""
    observed = partition.observed
    credit = observed.credit - units
    for _, where, some, key, sort, _ in charges:
        if where is partition:
            credit += some
            if credit >= observed.stride and key != SCAN:
                observed.add(position(key, sort))
                return


def _count_accessed(
    resource: Resource, charges: Iterable[Charge], weight: float, now: float
) -> None:
    for arm, _, units, key, sort, _ in charges:
        if arm.resource is resource and key != SCAN:
            resource.insights.consumed(key, _text(sort), units * weight, now)


def _text(sort: object) -> str | None:
    return None if sort is None else str(sort)


def _fill(sums: Sums, now: float) -> None:
    for partition in sums:
        partition.write.fill(now)
        for limit in partition.owner.writes.limits:
            limit.bucket.fill(now)


def totals_of(sums: Sums, *, count: bool = True) -> Totals:
    """Sum by table and index; without `count` no items."""
    totals: Totals = {}
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
