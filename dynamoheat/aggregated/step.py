"""One step of one table: fill its buckets, admit its flows, consume what passed, count the rest."""

from collections.abc import Hashable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain
from random import Random

from dynamoheat.aggregated.admission import admit_reads, admit_writes, divide_flow, entry_amounts
from dynamoheat.aggregated.flows import Amounts, FlowRefusal, KeyRoute, TrafficFlow
from dynamoheat.aggregated.outcome import StepOutcome
from dynamoheat.consumption import (
    PartitionSums,
    ResourceSums,
    consume_summed_reads,
    consume_summed_writes,
)
from dynamoheat.limits import ThroughputLimits, TokenBucket
from dynamoheat.metrics import Meter
from dynamoheat.partitions import Partition, Position
from dynamoheat.resources import Resource
from dynamoheat.tables import Table

__all__ = ["ConsumedPortion", "StepConsumption", "StepSpan", "TableStep"]


@dataclass(frozen=True, slots=True)
class StepSpan:
    """A step or a part of one, in seconds."""

    start: float
    stop: float

    @property
    def middle(self) -> float:
        """A moment surely within the span, however its ends were rounded."""
        return (self.start + self.stop) / 2


@dataclass(slots=True, eq=False)
class ConsumedPortion:
    """Units of one flow that a resource's partitions consume."""

    resource: Resource
    route: KeyRoute
    units_by_partition: Amounts
    extra_per_unit: float  # bytes of growth of a write, tokens of a read
    item_units: float


class TableStep:
    """Admits flows within a table's limits. An index may have `buffer` units of updates pending."""

    def __init__(self, buffer: float, chance: Random) -> None:
        self._buffer_units = buffer
        self._consumption = StepConsumption(chance)

    def admit_writes(
        self, table: Table, flows: Sequence[TrafficFlow], span: StepSpan, outcome: StepOutcome
    ) -> None:
        """Admit all writes of a table."""
        indexes = list(table.index_resources())
        with _filled_over(_write_buckets(table.resource, indexes, flows), span):
            verdict = admit_writes(table.resource, indexes, flows, self._buffer_units)
            for flow in flows:
                divide_flow(flow, verdict)
            portions = [
                portion for flow in flows for portion in _consumed_portions(table.resource, flow)
            ]
            self._consumption.consume_writes(portions, span.middle)
        for index in indexes:
            index.pending_updates(span.stop)
        meters = {index.index: index.meter for index in (table.resource, *indexes)}
        for flow in flows:
            for refusal in flow.refusals:
                meter = meters[refusal.throttle.index]
                self._consumption.count_refusal(flow, refusal, meter, span.middle)
                outcome.count_throttled(table.resource, refusal.amounts)
        for portion in portions:
            outcome.count_consumed(portion.resource, portion.units_by_partition, write=True)

    def admit_reads(
        self, resource: Resource, flows: Sequence[TrafficFlow], span: StepSpan, outcome: StepOutcome
    ) -> None:
        """Admit all reads of a table or a global index."""
        with _filled_over(_read_buckets(resource, flows), span):
            verdict = admit_reads(resource, flows)
            for flow in flows:
                divide_flow(flow, verdict)
            self._consumption.consume_reads(
                [_table_portion(resource, flow) for flow in flows], span.middle
            )
        for flow in flows:
            outcome.count_consumed(resource, flow.admitted_units, write=False)
            for refusal in flow.refusals:
                self._consumption.count_refusal(flow, refusal, resource.meter, span.middle)
                outcome.count_throttled(resource, refusal.amounts)


class StepConsumption:
    """Consumes portions and counts refusals in whole items.

    Fractions carry over to the next step.
    """

    def __init__(self, random: Random) -> None:
        self._random = random
        self._item_fractions: dict[Hashable, float] = {}

    def consume_writes(self, portions: Sequence[ConsumedPortion], now: float) -> None:
        """Consume units written to a table and its indexes. Buckets must be filled."""
        sums, totals = self._sums(portions)
        consume_summed_writes((), sums, totals, now)
        self._observe(sums, portions, now)

    def consume_reads(self, portions: Sequence[ConsumedPortion], now: float) -> None:
        """Consume units read from a table or an index. Buckets must be filled."""
        sums, totals = self._sums(portions)
        consume_summed_reads((), sums, totals, now)
        self._observe(sums, portions, now)

    def count_refusal(
        self, flow: TrafficFlow, refusal: FlowRefusal, meter: Meter, now: float
    ) -> None:
        """Count what a flow was refused for one reason, on the `meter` of the limiting resource."""
        meter.advance(now)
        size = flow.traffic.item_units
        items = self._whole_items((meter, refusal.throttle.reason), refusal.units / size)
        wanted = refusal.units * (1 + sum(branch.units_per_table_unit for branch in flow.branches))
        meter.count_throttled(refusal.throttle, wanted, items)
        if refusal.is_by_partition:
            for partition, units in refusal.amounts.items():
                partition.throttled_items += self._whole_items(partition, units / size)

    def _sums(self, portions: Sequence[ConsumedPortion]) -> tuple[PartitionSums, ResourceSums]:
        sums: PartitionSums = {}
        totals: ResourceSums = {}
        items: dict[Resource, float] = {}
        for portion in portions:
            total = 0.0
            for partition, units in portion.units_by_partition.items():
                total += units
                entry = sums.setdefault(partition, [0.0, 0.0, 0])
                entry[0] += units
                entry[1] += units * portion.extra_per_unit
            resource = portion.resource
            totals.setdefault(resource, [0.0, 0])[0] += total
            items[resource] = items.get(resource, 0.0) + total / portion.item_units
        for resource, count in items.items():
            totals[resource][1] = self._whole_items(resource, count)
        return sums, totals

    def _whole_items(self, what: Hashable, count: float) -> int:
        """Return how many items are complete, and keep the fraction."""
        total = self._item_fractions.get(what, 0.0) + count
        whole = int(total + 1e-6)
        self._item_fractions[what] = total - whole
        return whole

    def _observe(
        self, sums: Iterable[Partition], portions: Sequence[ConsumedPortion], now: float
    ) -> None:
        """Record a sampled position of each partition for every stride of its units."""
        for partition in sums:
            observed = partition.traffic_sample
            while observed.pending_units >= observed.stride:
                left = observed.pending_units - observed.stride
                observed.add(self._sample(partition, portions, now))
                observed.pending_units = left

    def _sample(
        self, partition: Partition, portions: Sequence[ConsumedPortion], now: float
    ) -> Position:
        takers = [portion for portion in portions if portion.units_by_partition.get(partition)]
        weights = [portion.units_by_partition[partition] for portion in takers]
        taker = self._random.choices(takers, weights)[0] if len(takers) > 1 else takers[0]
        return taker.route.sample(partition, self._random, now)


@contextmanager
def _filled_over(buckets: Iterable[TokenBucket], span: StepSpan) -> Iterator[None]:
    """Fill buckets over a whole span, and afterwards drop tokens above their depth."""
    filled = list(buckets)
    for bucket in filled:
        bucket.fill_over(span.start, span.stop)
    yield
    for bucket in filled:
        bucket.trim()


def _write_buckets(
    resource: Resource, indexes: Iterable[Resource], flows: Iterable[TrafficFlow]
) -> Iterator[TokenBucket]:
    branches = chain.from_iterable(flow.branches for flow in flows)
    partitions = dict.fromkeys(
        chain(
            *(flow.offered_units for flow in flows),
            *(branch.route.shares for branch in branches),
            *(index.partitions_in_debt for index in indexes),
        )
    )
    yield from (partition.write for partition in partitions)
    for each in (resource, *indexes):
        yield from _limits(each.writes)


def _read_buckets(resource: Resource, flows: Iterable[TrafficFlow]) -> Iterator[TokenBucket]:
    yield from (part.read for part in dict.fromkeys(chain(*(flow.offered_units for flow in flows))))
    yield from _limits(resource.reads)


def _limits(rates: ThroughputLimits) -> Iterator[TokenBucket]:
    return (limit.bucket for limit in rates.limits)


def _consumed_portions(resource: Resource, flow: TrafficFlow) -> Iterator[ConsumedPortion]:
    """Yield what a flow consumes of the table and of its indexes."""
    yield _table_portion(resource, flow)
    size = flow.traffic.item_units
    passed = sum(flow.admitted_units.values())
    for branch in flow.branches:
        amounts = entry_amounts(branch, passed)
        yield ConsumedPortion(
            branch.resource,
            branch.route,
            amounts,
            branch.bytes_per_unit,
            size * branch.units_per_table_unit,
        )


def _table_portion(resource: Resource, flow: TrafficFlow) -> ConsumedPortion:
    return ConsumedPortion(
        resource, flow.route, flow.admitted_units, flow.extra_per_unit, flow.traffic.item_units
    )
