"""One step of one table: its buckets opened, its flows admitted, what passed consumed, the rest counted."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain
from random import Random

from dynamoheat.aggregated.admission import admit_reads, admit_writes, entries, settle
from dynamoheat.aggregated.consumption import Consumption, Portion
from dynamoheat.aggregated.flows import TrafficFlow
from dynamoheat.aggregated.outcome import StepOutcome
from dynamoheat.buckets import TokenBucket
from dynamoheat.rates import Rates
from dynamoheat.resources import Resource
from dynamoheat.tables import Table

__all__ = ["StepSpan", "TableStep"]


@dataclass(frozen=True, slots=True)
class StepSpan:
    """A step or a part of one."""

    start: float
    stop: float

    @property
    def middle(self) -> float:
        """A moment that is surely within, however the ends were rounded."""
        return (self.start + self.stop) / 2


class TableStep:
    """Takes flows through a table's limits. `buffer` is how many units of updates an index may have waiting."""

    def __init__(self, buffer: float, chance: Random) -> None:
        self._buffer = buffer
        self._consumption = Consumption(chance)

    def write(
        self, table: Table, flows: Sequence[TrafficFlow], span: StepSpan, outcome: StepOutcome
    ) -> None:
        """Pass all writes of a table."""
        indexes = list(table.index_resources())
        with _poured(_write_buckets(table.resource, indexes, flows), span):
            verdict = admit_writes(table.resource, indexes, flows, self._buffer)
            for flow in flows:
                settle(flow, verdict)
            portions = [portion for flow in flows for portion in _written(table.resource, flow)]
            self._consumption.write(portions, span.middle)
        for index in indexes:
            index.behind(span.stop)
        meters = {index.index: index.meter for index in (table.resource, *indexes)}
        for flow in flows:
            for refusal in flow.refusals:
                meter = meters[refusal.throttle.index]
                self._consumption.refuse(flow, refusal, meter, span.middle)
                outcome.count_throttled(table.resource, refusal.amounts)
        for portion in portions:
            outcome.count_consumed(portion.resource, portion.amounts, write=True)

    def read(
        self, resource: Resource, flows: Sequence[TrafficFlow], span: StepSpan, outcome: StepOutcome
    ) -> None:
        """Pass all reads of a table or a global index."""
        with _poured(_read_buckets(resource, flows), span):
            verdict = admit_reads(resource, flows)
            for flow in flows:
                settle(flow, verdict)
            self._consumption.read([_own(resource, flow) for flow in flows], span.middle)
        for flow in flows:
            outcome.count_consumed(resource, flow.passed, write=False)
            for refusal in flow.refusals:
                self._consumption.refuse(flow, refusal, resource.meter, span.middle)
                outcome.count_throttled(resource, refusal.amounts)


@contextmanager
def _poured(buckets: Iterable[TokenBucket], span: StepSpan) -> Iterator[None]:
    """Let buckets run in over a whole span, and lose what is left above their depth."""
    open_ones = list(buckets)
    for bucket in open_ones:
        bucket.pour(span.start, span.stop)
    yield
    for bucket in open_ones:
        bucket.level()


def _write_buckets(
    resource: Resource, indexes: Iterable[Resource], flows: Iterable[TrafficFlow]
) -> Iterator[TokenBucket]:
    branches = chain.from_iterable(flow.branches for flow in flows)
    partitions = dict.fromkeys(
        chain(
            *(flow.asked for flow in flows),
            *(branch.route.shares for branch in branches),
            *(index.indebted for index in indexes),
        )
    )
    yield from (partition.write for partition in partitions)
    for each in (resource, *indexes):
        yield from _limits(each.writes)


def _read_buckets(resource: Resource, flows: Iterable[TrafficFlow]) -> Iterator[TokenBucket]:
    yield from (part.read for part in dict.fromkeys(chain(*(flow.asked for flow in flows))))
    yield from _limits(resource.reads)


def _limits(rates: Rates) -> Iterator[TokenBucket]:
    return (limit.bucket for limit in rates.limits)


def _written(resource: Resource, flow: TrafficFlow) -> Iterator[Portion]:
    """Yield what a flow takes of the table and of its indexes."""
    yield _own(resource, flow)
    size = flow.traffic.item_units
    passed = sum(flow.passed.values())
    for branch in flow.branches:
        amounts = entries(branch, passed)
        yield Portion(branch.resource, branch.route, amounts, branch.growth, size * branch.units)


def _own(resource: Resource, flow: TrafficFlow) -> Portion:
    return Portion(resource, flow.route, flow.passed, flow.extra, flow.traffic.item_units)
