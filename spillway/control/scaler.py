"""The scaler: answers alarms, goes on while they last, and shrinks layouts nobody needs so large.

| what throttles | what is done |
|---|---|
| writes, on key ranges of the table | the series that Contributor Insights names grow |
| writes, on key ranges of the index | series that demand more than their index shards take grow |
| the same, with shards that suffice on paper | warm throughput is raised, within a bound |
| writes, on provisioned capacity | provisioned throughput is raised, within a bound |
| writes, on other limits; reads; the layout table | it is reported: no layout helps |
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, Final

from spillway.control.capacity import CapacityBounds, CapacityManager
from spillway.control.hot_series import (
    IndexCandidate,
    IndexCandidates,
    ShardThrottles,
    ThrottleInsights,
    evidence_since,
    overloaded,
)
from spillway.control.monitoring import MonitoringPort, Signal, SignalKind, parse_signal
from spillway.control.resharding import Resharder
from spillway.control.shrinking import ShrinkSettings, ShrinkSweep
from spillway.dynamodb.boto import call_through
from spillway.dynamodb.port import Call, StorageError
from spillway.layouts.repository import ShardedSeries
from spillway.layouts.source import LayoutSource
from spillway.runtime import Runtime
from spillway.scaling.policy import ThrottleTarget
from spillway.scaling.updates import (
    LayoutGrower,
    LayoutUpdater,
    Observer,
    ScalingEvent,
    ScalingKind,
)
from spillway.scaling.usage import UsageReader
from spillway.settings import Settings

if TYPE_CHECKING:
    from types_boto3_dynamodb import DynamoDBClient

__all__ = ["Scaler", "ScalerOptions", "TableNames", "open_scaler"]


_WINDOW_SECONDS: Final = 300.0  # before now, in which throttles count
_ADVICE: Final = {
    SignalKind.LIMIT: (
        "a limit of the account or the on-demand maximum:"
        " ask AWS for a higher quota, or raise the maximum"
    ),
    SignalKind.READS: (
        "no layout helps reads: read closed ranges through DAX,"
        " spread others by source=index, raise read capacity"
    ),
    SignalKind.LAYOUTS: (
        "the layout table: keep functions' layout caches and DAX on, raise its limits"
    ),
}
_REPORTED: Final = {
    SignalKind.LIMIT: ScalingKind.CAPACITY_LIMITED,
    SignalKind.READS: ScalingKind.READS_THROTTLED,
    SignalKind.LAYOUTS: ScalingKind.LAYOUTS_THROTTLED,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class TableNames:
    """Names of the tables."""

    events: str
    layouts: str
    usage: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ScalerOptions:
    """Settings of the scaler.

    Attributes:
        dry_run: decide and report, but change nothing.
        shrink_window: how long usage must be low before a layout shrinks; None never shrinks.
        bounds: how far throughput is raised.
    """

    dry_run: bool = False
    shrink_window: timedelta | None = timedelta(hours=36)
    bounds: CapacityBounds = field(default_factory=CapacityBounds)


@dataclass(frozen=True, slots=True, kw_only=True)
class Scaler:
    """Acts on alarms and on the schedule. `open_scaler` makes one.

    Methods raise the first StorageError after all other work is done.
    """

    events: str
    layouts_table: str
    monitoring: MonitoringPort
    insights: ThrottleInsights
    layouts: LayoutSource
    usage: UsageReader
    candidates: IndexCandidates
    resharder: Resharder
    capacity: CapacityManager
    shrink_sweep: ShrinkSweep | None
    observe: Observer
    now: Callable[[], float]

    def on_alarm(self, signal: Signal) -> None:
        """Act on a signal, or report it where no layout helps."""
        if signal.kind in _REPORTED:
            self._report(_REPORTED[signal.kind], _ADVICE[signal.kind], signal.metric)
        elif signal.kind is SignalKind.PROVISIONED:
            if not self.capacity.provision(signal.target, signal.metric):
                self._report(ScalingKind.CAPACITY_LIMITED, "capacity", signal.metric)
        else:
            self._handle_key_ranges(signal.target)

    def on_schedule(self, deadline: float) -> None:
        """Act on what is still in ALARM, then shrink layouts until `deadline` (monotonic)."""
        found = (
            parse_signal(alarm, events=self.events, layouts=self.layouts_table)
            for alarm in self.monitoring.in_alarm()
        )
        # Signals that are only reported were reported when the alarm went off.
        lasting = {each for each in found if each is not None and each.kind not in _REPORTED}
        tasks: list[_Task] = [
            partial(self.on_alarm, signal)
            for signal in sorted(lasting, key=lambda each: (each.kind, each.target))
        ]
        if self.shrink_sweep is not None:
            tasks.append(partial(self.shrink_sweep.run, deadline))
        _run_all(tasks)

    def _handle_key_ranges(self, target: ThrottleTarget) -> None:
        """Reshard the series that key ranges of the table or its index throttled lately."""
        now = self.now()
        if target is ThrottleTarget.TABLE:
            self._reshard_table(now - _WINDOW_SECONDS, now)
        else:
            self._reshard_index(now - _WINDOW_SECONDS, now)

    def _reshard_table(self, since: float, now: float) -> None:
        throttled = self.insights.throttled(since, now)
        _run_all(
            partial(self._reshard_series, series, shards, since, now)
            for series, shards in throttled.items()
        )

    def _reshard_series(
        self, series: str, throttles: ShardThrottles, since: float, now: float
    ) -> None:
        snapshot = self.layouts.read_snapshot(series)
        if snapshot is None:
            return
        layout = snapshot.layout
        by_shard = throttles.since(evidence_since(layout), layout.current.shards)
        if by_shard:
            self.resharder.reshard_table(snapshot, by_shard, self.usage.recent(series, since, now))

    def _reshard_index(self, since: float, now: float) -> None:
        throttles = self.monitoring.index_throttles(since, now)
        candidates = self.candidates.find(throttles, since, now) if throttles else ()
        _run_all(
            partial(self._reshard_candidate, candidate)
            for candidate in overloaded(candidates, self.resharder.grower.growth, now)
        )

    def _reshard_candidate(self, candidate: IndexCandidate) -> None:
        snapshot = self.layouts.read_snapshot(candidate.layout.series)
        if snapshot is not None and snapshot.layout.version == candidate.layout.version:
            self.resharder.reshard_index(snapshot, candidate.throttles, candidate.demand)

    def _report(self, kind: ScalingKind, reason: str, metric: str) -> None:
        self.observe(ScalingEvent(kind=kind, reason=reason, evidence=metric))


_Task = Callable[[], object]


def _run_all(tasks: Iterable[_Task]) -> None:
    """Run all tasks, then raise the first StorageError: one bad series holds no other up."""
    failed: StorageError | None = None
    for task in tasks:
        try:
            task()
        except StorageError as error:
            failed = failed or error
    if failed is not None:
        raise failed


def open_scaler(  # noqa: PLR0913  all parts meet here
    client: "DynamoDBClient | Call",
    monitoring: MonitoringPort,
    tables: TableNames,
    *,
    settings: Settings,
    options: ScalerOptions,
    observe: Observer,
    runtime: Runtime | None = None,
) -> Scaler:
    """Return a scaler; make one a process. `settings` are those of the writers, growth included.

    `client` is a boto3 DynamoDB client, or an implementation of the port.
    """
    call: Call = client if callable(client) else call_through(client)
    runtime = runtime or Runtime()
    layouts = LayoutSource(call, tables.layouts, settings, runtime)
    listing = ShardedSeries(call, tables.layouts, runtime)
    usage = UsageReader(call, tables.usage)
    updater = LayoutUpdater(layouts, observe, runtime.now, options.dry_run)
    capacity = CapacityManager(
        call, tables.events, options.bounds, observe, runtime.now, options.dry_run
    )
    shrink = _shrink_settings(options, settings)
    return Scaler(
        events=tables.events,
        layouts_table=tables.layouts,
        monitoring=monitoring,
        insights=ThrottleInsights(call, monitoring, tables.events, runtime.monotonic),
        layouts=layouts,
        usage=usage,
        candidates=IndexCandidates(listing, usage, runtime.parallel),
        resharder=Resharder(layouts, LayoutGrower(updater, settings.growth), capacity),
        capacity=capacity,
        shrink_sweep=None
        if shrink is None
        else ShrinkSweep(
            listing,
            layouts,
            usage,
            updater,
            shrink,
            settings.growth,
            runtime.now,
            runtime.monotonic,
        ),
        observe=observe,
        now=runtime.now,
    )


def _shrink_settings(options: ScalerOptions, settings: Settings) -> ShrinkSettings | None:
    if options.shrink_window is None:
        return None
    window = options.shrink_window.total_seconds()
    return ShrinkSettings(
        window_seconds=window,
        peak_window_seconds=max(window, ShrinkSettings().peak_window_seconds),
        min_shards=settings.shards,
        min_index_shards=settings.index_shards,
    )
