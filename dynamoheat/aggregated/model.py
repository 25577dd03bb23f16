"""The aggregated mode's interface: offer rates step by step. See `dynamoheat.aggregated`."""

from collections.abc import Iterator, Mapping
from math import floor
from random import Random
from typing import Any, Final, TypeVar

from dynamoheat.aggregated.flows import TrafficDemand, TrafficFlow
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

_ROUNDING: Final = 1e-9  # of a step or a period: rounding


class AggregatedHeat:
    """DynamoDB's partitions, token buckets and limits under rates that are constant within a step.

    Its tables and metrics are those of `Heat`, whose methods of the same names it follows, except
    that it has a clock of its own: `offer` moves it by `step` seconds. Equal seeds and offers give
    equal results. A step costs about 2 µs of CPU a partition with traffic, more if it throttles.
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
        # A random source of its own: the model then draws the durations of splits as in event mode.
        chance = Random(seed)  # noqa: S311  # a simulation's, not a secret
        self._table_step = TableStep(limits.index_buffer_seconds * limits.partition_wcu, chance)

    @property
    def heat(self) -> Heat:
        """The model underneath, for parts that work on one, such as `dynamoheat.autoscaling`.

        Give them `now` of this object.
        """
        return self._heat

    @property
    def parameters(self) -> ModelParameters:
        """The parameters in force, in real time."""
        return self._heat.parameters

    def create_table(self, settings: TableSettings) -> None:
        """Add a table now, empty except for `settings.stored_bytes`.

        It replaces one of the same name.
        """
        self.delete_table(settings.name)
        self._heat.create_table(settings, self.now)

    def update_table(self, settings: TableSettings) -> None:
        """Change mode, throughput or indexes now. UnknownTableError if there is no such table."""
        before = set(self._heat.table(settings.name).indexes)
        self._heat.update_table(settings, self.now)
        for index in before - {index.name for index in settings.indexes}:
            self._demand.forget(settings.name, index)

    def delete_table(self, name: str) -> None:
        """Remove a table and its pending retries, if it exists."""
        self._heat.delete_table(name)
        self._demand.forget(name)

    def resource(self, table: str, index: str | None = None) -> Resource:
        """Return the partitions, splits and metrics of a table or a global index."""
        return self._heat.resource(table, index)

    def snapshot(self) -> dict[str, Any]:
        """Return partitions, limits, throttles and splits of all tables as plain JSON values."""
        return self._heat.snapshot(self.now)

    def waiting_units(self, traffic: Traffic) -> float:
        """Return the units of a traffic that are retried with the next step, offered or not."""
        return self._demand.waiting_units(traffic)

    def offer(self, rates: Mapping[_Offered, float]) -> StepOutcome:
        """Offer rates, in units a second, for one step, and return what became of them.

        Raises:
            UnknownTableError: A table or an index does not exist. Nothing has happened.
            ValueError: A rate is negative, or a local index gets entries. Nothing has happened.
        """
        if any(rate < 0 for rate in rates.values()):
            raise ValueError("a rate is not below zero")
        outcome = StepOutcome(self.now, self.step)
        offered: dict[Traffic, float] = dict(rates.items())
        for span in self._spans():
            self._admit(offered, span, outcome)
            self.now = span.stop
            if span.stop >= self._window_end:
                self._heat.advance(span.stop)
                self._window_end = span.stop + self.parameters.heat_window_seconds
        self._steps += 1
        return outcome

    def _spans(self) -> Iterator[StepSpan]:
        """Divide a step at the ends of heat windows and metric periods."""
        end = self._start + (self._steps + 1) * self.step
        period = self.parameters.metric_period_seconds
        while self.now < end:
            stop = min(end, self._window_end, (floor(self.now / period + _ROUNDING) + 1) * period)
            yield StepSpan(self.now, end if end - stop < _ROUNDING * self.step else stop)

    def _admit(self, rates: Mapping[Traffic, float], span: StepSpan, outcome: StepOutcome) -> None:
        writes: dict[Table, list[TrafficFlow]] = {}
        reads: dict[Resource, list[TrafficFlow]] = {}
        for traffic in self._demand.pending_and_new(rates):
            table = self._heat.table(traffic.table)
            units = rates.get(traffic, 0.0) * (span.stop - span.start)
            if isinstance(traffic, Writes):
                flow = self._demand.route_writes(traffic, table, units, span.start)
                writes.setdefault(table, []).append(flow)
            elif isinstance(traffic, Reads):
                flow = self._demand.route_reads(traffic, table, units, span.start)
                resource = self._heat.resource(traffic.table, traffic.index)
                reads.setdefault(resource, []).append(flow)
        for table, flows in writes.items():
            self._table_step.admit_writes(table, flows, span, outcome)
        for resource, flows in reads.items():
            self._table_step.admit_reads(resource, flows, span, outcome)
        for flow in (one for flows in (*writes.values(), *reads.values()) for one in flows):
            self._demand.keep_refused(flow)
            outcome.count(flow)
