"""The scaler: answers alarms, goes on while they last, and takes shards back that nobody needs.

| what throttles | what is done |
|---|---|
| writes, on key ranges of the table | the series that Contributor ThrottleInsights names grow |
| writes, on key ranges of the index | the series grow that want more of it than their index shards carry |
| the same, with shards that suffice on paper | warm throughput is raised, within a bound |
| writes, on provisioned capacity | that is raised, within a bound |
| writes, on other limits; reads; the layout table | it is reported: no layout helps |
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Final

from spillway.control.capacity import CapacityManager
from spillway.control.index_candidates import IndexCandidate, IndexCandidates, overloaded
from spillway.control.insights import ShardThrottles, ThrottleInsights
from spillway.control.monitoring import MonitoringPort, Signal, SignalKind, parse_signal
from spillway.control.resharding import Resharder, evidence_since
from spillway.control.shrinking import ShrinkSweep
from spillway.dynamodb.port import StorageError
from spillway.layouts.source import LayoutSource
from spillway.scaling.policy import ThrottleTarget
from spillway.scaling.updates import Observer, ScalingEvent, ScalingKind
from spillway.scaling.usage import UsageReader

__all__ = ["Scaler"]

_WINDOW: Final = 300.0  # seconds before now in which throttles count
_ADVICE: Final = {
    SignalKind.LIMIT: "a limit of the account or the on-demand maximum: ask AWS for a higher quota, or raise the maximum",
    SignalKind.READS: "no layout helps reads: read closed ranges through DAX, spread others by source=index, raise read capacity",
    SignalKind.LAYOUTS: "the layout table: keep functions' layout caches and DAX on, raise its limits",
}
_REPORTED: Final = {
    SignalKind.LIMIT: ScalingKind.CAPACITY_LIMITED,
    SignalKind.READS: ScalingKind.READS_THROTTLED,
    SignalKind.LAYOUTS: ScalingKind.LAYOUTS_THROTTLED,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Scaler:
    """Acts on signals. Clocks as in `Runtime`; names as of the tables. Raises the first StorageError after all else is done."""

    events: str
    layouts_table: str
    watching: MonitoringPort
    insights: ThrottleInsights
    layouts: LayoutSource
    usage: UsageReader
    suspects: IndexCandidates
    relief: Resharder
    raiser: CapacityManager
    rounds: ShrinkSweep | None
    observe: Observer
    now: Callable[[], float]

    def on_alarm(self, signal: Signal) -> None:
        """Do what a signal asks for; what no layout helps is reported."""
        if signal.kind in _REPORTED:
            self._report(_REPORTED[signal.kind], _ADVICE[signal.kind], signal.metric)
        elif signal.kind is SignalKind.PROVISIONED:
            if not self.raiser.provision(signal.target, signal.metric):
                self._report(ScalingKind.CAPACITY_LIMITED, "capacity", signal.metric)
        else:
            self.relieve(signal.target)

    def on_schedule(self, deadline: float) -> None:
        """Go on with what is in ALARM, then look whether layouts may shrink, until `deadline` (monotonic)."""
        found = (
            parse_signal(alarm, events=self.events, layouts=self.layouts_table)
            for alarm in self.watching.in_alarm()
        )
        # What is only reported was, when its alarm went off.
        lasting = {each for each in found if each is not None and each.kind not in _REPORTED}
        tasks: list[_Task] = [
            partial(self.on_alarm, signal)
            for signal in sorted(lasting, key=lambda each: (each.kind, each.target))
        ]
        if self.rounds is not None:
            tasks.append(partial(self.rounds.run, deadline))
        _all(tasks)

    def relieve(self, target: ThrottleTarget) -> None:
        """Relieve the series whose writes key ranges of the table or its index throttled in the last minutes."""
        now = self.now()
        if target is ThrottleTarget.TABLE:
            self._relieve_table(now - _WINDOW, now)
        else:
            self._relieve_index(now - _WINDOW, now)

    def _relieve_table(self, since: float, now: float) -> None:
        throttled = self.insights.throttled(since, now)
        _all(
            partial(self._relieve_series, series, shards, since, now)
            for series, shards in throttled.items()
        )

    def _relieve_series(
        self, series: str, throttles: ShardThrottles, since: float, now: float
    ) -> None:
        snapshot = self.layouts.find(series)
        if snapshot is None:
            return
        layout = snapshot.layout
        by_shard = throttles.since(evidence_since(layout), layout.current.shards)
        if by_shard:
            self.relief.of_table(snapshot, by_shard, self.usage.recent(series, since, now))

    def _relieve_index(self, since: float, now: float) -> None:
        throttles = self.watching.index_throttles(since, now)
        suspects = self.suspects.of(throttles, since, now) if throttles else ()
        _all(
            partial(self._relieve_suspect, suspect)
            for suspect in overloaded(suspects, self.relief.growth, now)
        )

    def _relieve_suspect(self, suspect: IndexCandidate) -> None:
        snapshot = self.layouts.find(suspect.layout.series)
        if snapshot is not None and snapshot.layout.version == suspect.layout.version:
            self.relief.of_index(snapshot, suspect.throttles, suspect.demand)

    def _report(self, kind: ScalingKind, reason: str, metric: str) -> None:
        self.observe(ScalingEvent(kind=kind, reason=reason, evidence=metric))


_Task = Callable[[], object]


def _all(tasks: Iterable[_Task]) -> None:
    """Run all tasks; raise the first StorageError once all have ended, so that one bad series holds no other up."""
    failed: StorageError | None = None
    for task in tasks:
        try:
            task()
        except StorageError as error:
            failed = failed or error
    if failed is not None:
        raise failed
