"""The aggregated mode: rates a time step instead of single requests. See `dynamoheat.aggregated` for the whole."""

from collections.abc import Iterator, Mapping
from math import floor
from random import Random
from typing import Any, Final, TypeVar

from dynamoheat.aggregated.demand import TrafficDemand
from dynamoheat.aggregated.flows import TrafficFlow
from dynamoheat.aggregated.outcome import StepOutcome
from dynamoheat.aggregated.step import StepSpan, TableStep
from dynamoheat.aggregated.traffic import Reads, Traffic, Writes
from dynamoheat.model import Heat
from dynamoheat.parameters import ModelParameters
from dynamoheat.resources import Resource
from dynamoheat.settings import TableSettings
from dynamoheat.tables import Table

__all__ = ["AggregatedHeat"]

_Offered = TypeVar("_Offered", bound=Traffic)

_CRUMB: Final = 1e-9  # of a step or a period: rounding


class AggregatedHeat:
    """DynamoDB's partitions, buckets and limits under rates that are constant within a time step.

    Tables, limits, splits and counters are those of `Heat`, whose methods of the same names these follow;
    the clock is its own: `offer` moves it by `step` seconds. Equal seeds and offers give equal results.
    A step costs about 2 µs of CPU a partition with traffic, more where it throttles.
    """

    def __init__(
        self,
        parameters: ModelParameters | None = None,
        *,
        step: float = 1.0,
        seed: int = 0,
        start: float = 0.0,
    ) -> None:
        if step <= 0:
            raise ValueError("a step must last some time")
        self._heat = Heat(parameters, seed=seed)
        self.step = step
        self.now = self._start = start
        self._steps = 0
        limits = self._heat.parameters
        self._window_end = start + limits.heat_window_seconds
        self._demand = TrafficDemand()
        # Chance of its own, so that the model's draws, how long splits take, are the event mode's.
        chance = Random(seed)  # noqa: S311  # a simulation's, not a secret
        self._passage = TableStep(limits.index_buffer_seconds * limits.partition_wcu, chance)

    @property
    def heat(self) -> Heat:
        """The model underneath, for what works on one, such as `dynamoheat.autoscaling`; give it this `now`."""
        return self._heat

    @property
    def parameters(self) -> ModelParameters:
        """The parameters in force, in real time."""
        return self._heat.parameters

    def create_table(self, settings: TableSettings) -> None:
        """Add a table now, empty but for `settings.stored_bytes`; one of the same name is replaced."""
        self.delete_table(settings.name)
        self._heat.create_table(settings, self.now)

    def update_table(self, settings: TableSettings) -> None:
        """Change mode, throughput or indexes now. UnknownTableError for a table that is not there."""
        before = set(self._heat.table(settings.name).indexes)
        self._heat.update_table(settings, self.now)
        for index in before - {index.name for index in settings.indexes}:
            self._demand.forget(settings.name, index)

    def delete_table(self, name: str) -> None:
        """Remove a table, and what waits for it; nothing happens if it is not there."""
        self._heat.delete_table(name)
        self._demand.forget(name)

    def resource(self, table: str, index: str | None = None) -> Resource:
        """Return a table's or a global index's partitions, splits and counters."""
        return self._heat.resource(table, index)

    def snapshot(self) -> dict[str, Any]:
        """Return partitions, rates, throttles and splits of all tables, ready for JSON."""
        return self._heat.snapshot(self.now)

    def waiting(self, traffic: Traffic) -> float:
        """Return the units of a retried traffic that come again with the next step, offered or not."""
        return self._demand.waiting(traffic)

    def offer(self, rates: Mapping[_Offered, float]) -> StepOutcome:
        """Let one step pass under these rates, in units a second, and return what became of them.

        Raises:
            UnknownTableError: A table or an index is not there. Nothing has happened then.
            ValueError: A rate is below zero, or index entries are a local index's. Likewise.
        """
        if any(rate < 0 for rate in rates.values()):
            raise ValueError("a rate is not below zero")
        outcome = StepOutcome(self.now, self.step)
        offered: dict[Traffic, float] = dict(rates.items())
        for span in self._spans():
            self._pass(offered, span, outcome)
            self.now = span.stop
            if span.stop >= self._window_end:
                self._heat.advance(span.stop)
                self._window_end = span.stop + self.parameters.heat_window_seconds
        self._steps += 1
        return outcome

    def _spans(self) -> Iterator[StepSpan]:
        """Divide a step where a heat window or a metric period ends, so that each sees what was its own."""
        end = self._start + (self._steps + 1) * self.step
        period = self.parameters.metric_period_seconds
        while self.now < end:
            stop = min(end, self._window_end, (floor(self.now / period + _CRUMB) + 1) * period)
            yield StepSpan(self.now, end if end - stop < _CRUMB * self.step else stop)

    def _pass(self, rates: Mapping[Traffic, float], span: StepSpan, outcome: StepOutcome) -> None:
        writes: dict[Table, list[TrafficFlow]] = {}
        reads: dict[Resource, list[TrafficFlow]] = {}
        for traffic in self._demand.offered(rates):
            table = self._heat.table(traffic.table)
            units = rates.get(traffic, 0.0) * (span.stop - span.start)
            if isinstance(traffic, Writes):
                flow = self._demand.writes(traffic, table, units, span.start)
                writes.setdefault(table, []).append(flow)
            elif isinstance(traffic, Reads):
                flow = self._demand.reads(traffic, table, units, span.start)
                resource = self._heat.resource(traffic.table, traffic.index)
                reads.setdefault(resource, []).append(flow)
        for table, flows in writes.items():
            self._passage.write(table, flows, span, outcome)
        for resource, flows in reads.items():
            self._passage.read(resource, flows, span, outcome)
        for flow in (one for flows in (*writes.values(), *reads.values()) for one in flows):
            self._demand.keep(flow)
            outcome.count(flow)
