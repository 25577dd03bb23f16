"""Consuming what was admitted and counting the rest, as `dynamoheat.consumption` and `dynamoheat.meters` do it for requests."""

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from random import Random

from dynamoheat.aggregated.flows import Amounts, FlowRefusal, TrafficFlow
from dynamoheat.aggregated.routes import Route
from dynamoheat.charges import Sums
from dynamoheat.consumption import Totals, consume_summed_reads, consume_summed_writes
from dynamoheat.meters import Meter
from dynamoheat.partitions import Partition, Position
from dynamoheat.resources import Resource

__all__ = ["Consumption", "Portion"]


@dataclass(slots=True, eq=False)
class Portion:
    """Units that a resource's partitions take of one flow."""

    resource: Resource
    route: Route
    amounts: Amounts
    extra: float  # for each unit: bytes of growth, or tokens of a read
    item_units: float


class Consumption:
    """Takes portions and counts refusals. Items are counted whole: what is left of one waits for the next step."""

    def __init__(self, random: Random) -> None:
        self._random = random
        self._rests: dict[Hashable, float] = {}

    def write(self, portions: Sequence[Portion], now: float) -> None:
        """Consume what is written to a table and its indexes; buckets must be filled."""
        sums, totals = self._sums(portions)
        consume_summed_writes((), sums, totals, now)
        self._observe(sums, portions, now)

    def read(self, portions: Sequence[Portion], now: float) -> None:
        """Consume what is read of a table or an index; buckets must be filled."""
        sums, totals = self._sums(portions)
        consume_summed_reads((), sums, totals, now)
        self._observe(sums, portions, now)

    def refuse(self, flow: TrafficFlow, refusal: FlowRefusal, meter: Meter, now: float) -> None:
        """Count what a flow did not get for one reason; `meter` is that of the table or index that was short."""
        meter.advance(now)
        size = flow.traffic.item_units
        items = self._whole((meter, refusal.throttle.reason), refusal.units / size)
        wanted = refusal.units * (1 + sum(branch.units for branch in flow.branches))
        meter.refuse(refusal.throttle, wanted, items)
        if refusal.by_partition:
            for partition, units in refusal.amounts.items():
                partition.throttled += self._whole(partition, units / size)

    def _sums(self, portions: Sequence[Portion]) -> tuple[Sums, Totals]:
        sums: Sums = {}
        totals: Totals = {}
        items: dict[Resource, float] = {}
        for portion in portions:
            total = 0.0
            for partition, units in portion.amounts.items():
                total += units
                entry = sums.setdefault(partition, [0.0, 0.0, 0])
                entry[0] += units
                entry[1] += units * portion.extra
            resource = portion.resource
            totals.setdefault(resource, [0.0, 0])[0] += total
            items[resource] = items.get(resource, 0.0) + total / portion.item_units
        for resource, count in items.items():
            totals[resource][1] = self._whole(resource, count)
        return sums, totals

    def _whole(self, what: Hashable, count: float) -> int:
        """Return how many items are complete, and keep the rest."""
        total = self._rests.get(what, 0.0) + count
        whole = int(total + 1e-6)
        self._rests[what] = total - whole
        return whole

    def _observe(self, sums: Iterable[Partition], portions: Sequence[Portion], now: float) -> None:
        """Sample as many positions of each partition as its units are due."""
        for partition in sums:
            observed = partition.observed
            while observed.credit >= observed.stride:
                left = observed.credit - observed.stride
                observed.add(self._sample(partition, portions, now))
                observed.credit = left

    def _sample(self, partition: Partition, portions: Sequence[Portion], now: float) -> Position:
        takers = [portion for portion in portions if portion.amounts.get(partition)]
        weights = [portion.amounts[partition] for portion in takers]
        taker = self._random.choices(takers, weights)[0] if len(takers) > 1 else takers[0]
        return taker.route.sample(partition, self._random, now)
