"""May it pass? Charges against buckets, all or nothing for each item, and the reason where not.

In DynamoDB's order: the table's rate, its partitions, then the indexes' back-pressure. An index takes its
updates from the same kinds of buckets, but later: what it cannot take at once waits in a finite buffer
(buckets below zero). Once that is full every write to the table is refused, and the reason names the index.
"""

from collections.abc import Callable, Iterable, Sequence
from itertools import chain

from dynamoheat.buckets import TokenBucket
from dynamoheat.charges import Charge, Sums, Work, by_partition
from dynamoheat.consumption import (
    Totals,
    consume_reads,
    consume_summed_writes,
    consume_writes,
    totals_of,
)
from dynamoheat.rates import Rates
from dynamoheat.reasons import Throttle, ThrottleCause
from dynamoheat.resources import Resource

__all__ = ["AdmissionController"]

Lacks = dict[Resource, float]
Verdicts = list[Throttle | None]


class AdmissionController:
    """Admits works. `buffer` is how many units of updates an index may have waiting."""

    def __init__(self, buffer: float) -> None:
        self._buffer = buffer

    def writes(self, works: Sequence[Work], indexes: Iterable[Resource], now: float) -> Verdicts:
        """Admit each item by itself, in order; a refused one consumes nothing anywhere.

        `indexes` are all global indexes of the tables that are written to.
        """
        indexes = tuple(indexes)
        if self._take_writes(list(chain.from_iterable(works)), indexes, now, whole=False) is None:
            return [None] * len(works)
        return [self._take_writes(work, indexes, now, whole=True) for work in works]

    def writes_together(
        self, works: Sequence[Work], indexes: Iterable[Resource], now: float
    ) -> Verdicts:
        """Admit all items or none; the first that doesn't fit beside those before it carries the reason."""
        indexes = tuple(indexes)

        def refusal(charges: Sequence[Charge]) -> Throttle | None:
            sums = by_partition(charges)
            return self._write_refusal(sums, totals_of(sums), indexes, now, whole=True)

        return _together(works, refusal, lambda charges: consume_writes(charges, now))

    def reads(self, works: Sequence[Work], now: float) -> Verdicts:
        """Admit each item's read by itself, in order."""
        return [self._take_reads(work, now) for work in works]

    def reads_together(self, works: Sequence[Work], now: float) -> Verdicts:
        """Admit all reads or none, as `writes_together`."""
        return _together(
            works,
            lambda charges: _read_refusal(by_partition(charges), now),
            lambda charges: consume_reads(charges, now),
        )

    def _take_writes(
        self, charges: Sequence[Charge], indexes: Sequence[Resource], now: float, *, whole: bool
    ) -> Throttle | None:
        sums = by_partition(charges)
        totals = totals_of(sums)
        refusal = self._write_refusal(sums, totals, indexes, now, whole=whole)
        if refusal is None:
            consume_summed_writes(charges, sums, totals, now)
        return refusal

    def _take_reads(self, work: Work, now: float) -> Throttle | None:
        sums = by_partition(work)
        refusal = _read_refusal(sums, now)
        if refusal is None:
            consume_reads(work, now)
        return refusal

    def _write_refusal(
        self, sums: Sums, totals: Totals, indexes: Sequence[Resource], now: float, *, whole: bool
    ) -> Throttle | None:
        for resource, (units, _) in totals.items():
            if resource.index is None:
                cause = _short(resource.writes, units, now, whole=whole)
                if cause is not None:
                    return resource.throttle(cause, write=True)
        short = [
            (partition, entry[0])
            for partition, entry in sums.items()
            if (bucket := partition.write).fill(now) < entry[0]
            and not bucket.holds(entry[0], whole=whole)
        ]
        lacks: Lacks = {}
        for partition, units in short:
            owner: Resource = partition.owner
            if owner.index is None:
                partition.throttled += whole  # a batch is asked again item by item
                return owner.throttle(ThrottleCause.KEY_RANGE, write=True)
            lacks[owner] = lacks.get(owner, 0.0) + _lack(partition.write, units, whole=whole)
        return self._back_pressure(totals, lacks, indexes, now, whole=whole)

    def _back_pressure(
        self, totals: Totals, lacks: Lacks, indexes: Sequence[Resource], now: float, *, whole: bool
    ) -> Throttle | None:
        for index in indexes:
            units = totals[index][0] if index in totals else 0.0
            cause = self._overflow(index, units, lacks.get(index, 0.0), now, whole=whole)
            if cause is not None:
                return index.throttle(cause, write=True)
        return None

    def _overflow(
        self, index: Resource, units: float, lack: float, now: float, *, whole: bool
    ) -> ThrottleCause | None:
        """Return what makes an index's buffer overflow by `units` more, of which partitions lack some."""
        before = index.behind(now) if index.indebted else 0.0
        cause, after = ThrottleCause.KEY_RANGE, before + lack
        for limit in index.writes.limits:
            tokens = limit.bucket.fill(now)
            if tokens < units or tokens < 0:
                owed = max(-tokens, 0.0)
                before = max(before, owed)
                if owed + _lack(limit.bucket, units, whole=whole) > after:
                    cause, after = limit.cause, owed + _lack(limit.bucket, units, whole=whole)
        if before > 0:
            after = max(after, before + 1.0)  # no room for any update: no write at all
        # A batch passes at once only if there was room for every item of it in whatever order.
        return cause if after > (self._buffer if whole else self._buffer - 1.0) else None


def _read_refusal(sums: Sums, now: float) -> Throttle | None:
    for resource, (units, _) in totals_of(sums).items():
        cause = _short(resource.reads, units, now, whole=True)
        if cause is not None:
            return resource.throttle(cause, write=False)
    for partition, (_, tokens, _) in sums.items():
        partition.read.fill(now)
        if not partition.read.holds(tokens, whole=True):
            owner: Resource = partition.owner
            partition.throttled += 1
            return owner.throttle(ThrottleCause.KEY_RANGE, write=False)
    return None


def _short(rates: Rates, units: float, now: float, *, whole: bool) -> ThrottleCause | None:
    for limit in rates.limits:
        if limit.bucket.fill(now) < units and not limit.bucket.holds(units, whole=whole):
            return limit.cause
    return None


def _together(
    works: Sequence[Work],
    refusal: Callable[[Sequence[Charge]], Throttle | None],
    take: Callable[[Sequence[Charge]], None],
) -> Verdicts:
    charges = list(chain.from_iterable(works))
    if refusal(charges) is None:
        take(charges)
        return [None] * len(works)
    verdicts: Verdicts = [None] * len(works)
    for end in range(1, len(works) + 1):
        found = refusal(list(chain.from_iterable(works[:end])))
        if found is not None:
            verdicts[end - 1] = found
            break
    return verdicts


def _lack(bucket: TokenBucket, units: float, *, whole: bool) -> float:
    """Return what a bucket lacks for `units`, beside what it owes already."""
    wanted = min(units, bucket.depth) if whole else units
    return max(wanted - max(bucket.tokens, 0.0), 0.0)
