"""Admission: check charges against all limits, and give each item a verdict with its reason.

Limits are checked in DynamoDB's order: the table's rate, its partitions, then the indexes. An index
has the same kinds of buckets but applies updates later: what it cannot take at once waits in a
finite buffer (buckets below zero). While that is full, every write to the table is refused, and
the reason names the index. Each item is admitted or refused as a whole.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, Final

from dynamoheat.consumption import (
    Charge,
    ItemCharges,
    PartitionSums,
    ResourceSums,
    consume_reads,
    consume_summed_writes,
    consume_writes,
    consumed_capacity,
    sum_by_partition,
    sum_by_resource,
    total_units,
)
from dynamoheat.limits import ThroughputLimits, TokenBucket
from dynamoheat.reasons import Throttle, ThrottleCause
from dynamoheat.requests import RequestCost, split_batch
from dynamoheat.resources import Resource

__all__ = ["Admission", "AdmissionController"]

_BATCHES: Final = ("BatchGetItem", "BatchWriteItem")

Lacks = dict[Resource, float]
Verdicts = list[Throttle | None]


@dataclass(slots=True)
class Admission:
    """The model's answer to one request. Pass it on to `settle`, `fail` or `cancel`."""

    operation: str
    request: Mapping[str, Any]
    cost: RequestCost
    verdicts: list[Throttle | None]  # one an item, in the request's order
    final_charges: list[ItemCharges] = field(
        default_factory=list
    )  # of admitted items, once settled

    @property
    def throttles(self) -> list[Throttle]:
        """The throttled items' reasons, in order. Empty if everything was admitted."""
        return [verdict for verdict in self.verdicts if verdict is not None]

    @property
    def is_rejected(self) -> bool:
        """Whether nothing was admitted, so that the request fails with an exception."""
        refused = len(self.throttles)
        return bool(refused) and (self.cost.atomic or refused == len(self.verdicts))

    @property
    def admitted_charges(self) -> list[ItemCharges]:
        """The charges of the admitted items, as they were taken."""
        if self.cost.atomic and self.throttles:
            return []
        return [
            charges
            for charges, verdict in zip(self.cost.item_charges, self.verdicts, strict=True)
            if verdict is None
        ]

    @property
    def forwarded_request(self) -> Mapping[str, Any]:
        """The request to forward to the engine: a batch without its throttled items."""
        if self.cost.atomic or not self.throttles or self.operation not in _BATCHES:
            return self.request
        return split_batch(self.request, self.verdicts)[0]

    @property
    def unprocessed(self) -> dict[str, Any]:
        """A batch's throttled items, as UnprocessedItems or UnprocessedKeys."""
        if not self.throttles or self.operation not in _BATCHES:
            return {}
        return split_batch(self.request, self.verdicts)[1]

    @property
    def units(self) -> float:
        """The units consumed on all tables and indexes."""
        return sum(map(total_units, self.final_charges or self.admitted_charges))

    def consumed_capacity(self, form: str) -> list[dict[str, Any]]:
        """Return one ConsumedCapacity a table; `form` is TOTAL or INDEXES."""
        return consumed_capacity(
            self.final_charges or self.admitted_charges,
            form,
            write=self.cost.is_write,
            transactional=self.operation.startswith("Transact"),
        )


class AdmissionController:
    """Admits charges. An index may have `buffer` units of updates pending."""

    def __init__(self, buffer: float) -> None:
        self._buffer_units = buffer

    def admit_writes(
        self, item_charges: Sequence[ItemCharges], indexes: Iterable[Resource], now: float
    ) -> Verdicts:
        """Admit each item by itself, in order. A refused item consumes nothing.

        `indexes` are all global indexes of the tables that are written to.
        """
        indexes = tuple(indexes)
        if (
            self._try_writes(list(chain.from_iterable(item_charges)), indexes, now, whole=False)
            is None
        ):
            return [None] * len(item_charges)
        return [self._try_writes(charges, indexes, now, whole=True) for charges in item_charges]

    def admit_write_transaction(
        self, item_charges: Sequence[ItemCharges], indexes: Iterable[Resource], now: float
    ) -> Verdicts:
        """Admit all items or none. The first item that no longer fits carries the reason."""
        indexes = tuple(indexes)

        def refusal(charges: Sequence[Charge]) -> Throttle | None:
            sums = sum_by_partition(charges)
            return self._write_refusal(sums, sum_by_resource(sums), indexes, now, whole=True)

        return _together(item_charges, refusal, lambda charges: consume_writes(charges, now))

    def admit_reads(self, item_charges: Sequence[ItemCharges], now: float) -> Verdicts:
        """Admit each item's read by itself, in order."""
        return [self._try_reads(charges, now) for charges in item_charges]

    def admit_read_transaction(self, item_charges: Sequence[ItemCharges], now: float) -> Verdicts:
        """Admit all reads or none, as `admit_write_transaction`."""
        return _together(
            item_charges,
            lambda charges: _read_refusal(sum_by_partition(charges), now),
            lambda charges: consume_reads(charges, now),
        )

    def _try_writes(
        self, charges: Sequence[Charge], indexes: Sequence[Resource], now: float, *, whole: bool
    ) -> Throttle | None:
        sums = sum_by_partition(charges)
        totals = sum_by_resource(sums)
        refusal = self._write_refusal(sums, totals, indexes, now, whole=whole)
        if refusal is None:
            consume_summed_writes(charges, sums, totals, now)
        return refusal

    def _try_reads(self, charges: ItemCharges, now: float) -> Throttle | None:
        sums = sum_by_partition(charges)
        refusal = _read_refusal(sums, now)
        if refusal is None:
            consume_reads(charges, now)
        return refusal

    def _write_refusal(
        self,
        sums: PartitionSums,
        totals: ResourceSums,
        indexes: Sequence[Resource],
        now: float,
        *,
        whole: bool,
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
            and not bucket.may_take(entry[0], whole=whole)
        ]
        lacks: Lacks = {}
        for partition, units in short:
            owner: Resource = partition.owner
            if owner.index is None:
                partition.throttled_items += whole  # a batch is tried again item by item
                return owner.throttle(ThrottleCause.KEY_RANGE, write=True)
            lacks[owner] = lacks.get(owner, 0.0) + _lack(partition.write, units, whole=whole)
        return self._back_pressure(totals, lacks, indexes, now, whole=whole)

    def _back_pressure(
        self,
        totals: ResourceSums,
        lacks: Lacks,
        indexes: Sequence[Resource],
        now: float,
        *,
        whole: bool,
    ) -> Throttle | None:
        for index in indexes:
            units = totals[index][0] if index in totals else 0.0
            cause = self._overflow_cause(index, units, lacks.get(index, 0.0), now, whole=whole)
            if cause is not None:
                return index.throttle(cause, write=True)
        return None

    def _overflow_cause(
        self, index: Resource, units: float, lack: float, now: float, *, whole: bool
    ) -> ThrottleCause | None:
        """Return the limit that overflows an index's buffer with `units` more, or None.

        `lack` is what its partitions lack of them.
        """
        before = index.pending_updates(now) if index.partitions_in_debt else 0.0
        cause, after = ThrottleCause.KEY_RANGE, before + lack
        for limit in index.writes.limits:
            tokens = limit.bucket.fill(now)
            if tokens < units or tokens < 0:
                owed = max(-tokens, 0.0)
                before = max(before, owed)
                if owed + _lack(limit.bucket, units, whole=whole) > after:
                    cause, after = limit.cause, owed + _lack(limit.bucket, units, whole=whole)
        if before > 0:
            after = max(after, before + 1.0)  # no room for any update: refuse all writes
        # A batch is admitted at once only if its items would be in any order.
        return (
            cause if after > (self._buffer_units if whole else self._buffer_units - 1.0) else None
        )


def _read_refusal(sums: PartitionSums, now: float) -> Throttle | None:
    for resource, (units, _) in sum_by_resource(sums).items():
        cause = _short(resource.reads, units, now, whole=True)
        if cause is not None:
            return resource.throttle(cause, write=False)
    for partition, (_, tokens, _) in sums.items():
        partition.read.fill(now)
        if not partition.read.may_take(tokens, whole=True):
            owner: Resource = partition.owner
            partition.throttled_items += 1
            return owner.throttle(ThrottleCause.KEY_RANGE, write=False)
    return None


def _short(
    rates: ThroughputLimits, units: float, now: float, *, whole: bool
) -> ThrottleCause | None:
    for limit in rates.limits:
        if limit.bucket.fill(now) < units and not limit.bucket.may_take(units, whole=whole):
            return limit.cause
    return None


def _together(
    item_charges: Sequence[ItemCharges],
    refusal: Callable[[Sequence[Charge]], Throttle | None],
    take: Callable[[Sequence[Charge]], None],
) -> Verdicts:
    charges = list(chain.from_iterable(item_charges))
    if refusal(charges) is None:
        take(charges)
        return [None] * len(item_charges)
    verdicts: Verdicts = [None] * len(item_charges)
    for end in range(1, len(item_charges) + 1):
        found = refusal(list(chain.from_iterable(item_charges[:end])))
        if found is not None:
            verdicts[end - 1] = found
            break
    return verdicts


def _lack(bucket: TokenBucket, units: float, *, whole: bool) -> float:
    """Return how many of `units` a bucket lacks, not counting what it owes already."""
    wanted = min(units, bucket.depth) if whole else units
    return max(wanted - max(bucket.tokens, 0.0), 0.0)
