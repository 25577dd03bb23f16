"""The grower: carries out what the scaling policy decides, so that of many throttled writers about one does.

Whoever throttles waits a short random time, then reads the layout anew. If someone changed it meanwhile, that is the relief;
else it reads the fleet's demand, decides, and changes the layout on the version it has just read.

A series that shares a partition with the cause throttles as the cause does. So a series grows only where it writes
enough: by the usage record of the fleet, or by what this process alone had throttled.
"""

import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final

from spillway.dynamodb.port import StorageError
from spillway.layouts.model import Layout
from spillway.layouts.source import LayoutSource
from spillway.layouts.transitions import ChangeReason
from spillway.memo import IntervalLimiter, Memo, RateLimiter
from spillway.runtime import Runtime
from spillway.scaling.evidence import Crowding, ThrottledRates, ThrottleSummary
from spillway.scaling.policy import (
    GrowthStopReason,
    ScalingDecision,
    ScalingObservation,
    cooldown_left,
    decide_ahead_of_demand,
    decide_on_throttle,
    is_stopped,
    writes_enough,
)
from spillway.scaling.updates import (
    LayoutUpdater,
    Observer,
    Reporter,
    ScalingEvent,
    ScalingKind,
    describe_evidence,
)
from spillway.scaling.usage import UsageRecorder, WriteDemand
from spillway.settings import Growth

__all__ = ["WriterAutoscaler"]

_FOLLOW_EVERY: Final = 1.0  # seconds between two looks for what others did, a series and process
_DOUBTED_FOR: Final = 10.0  # seconds for which a finding waits to be found again
_MAX_LOOKS: Final = 5.0  # a second and process, at series that may not be the cause
_HOT_FOR: Final = 10.0  # seconds for which one that was found to be the cause is looked at freely
_PROCESSES: Final = 10.0  # that are taken to write a series where the fleet's rate can't be read


@dataclass(frozen=True, slots=True)
class _Doubt:
    """When growth was first found not to help, and under which epoch."""

    epoch_id: int
    at: float


@dataclass(slots=True)
class WriterAutoscaler:
    """Grows the layouts of series that throttle, or soon will. Thread-safe; one growth of a series at a time a process."""

    layouts: LayoutSource
    recorder: UsageRecorder | None
    growth: Growth
    runtime: Runtime
    observe: Observer
    _busy: set[str] = field(default_factory=set)
    _doubts: Memo[_Doubt] = field(default_factory=Memo)
    _limited: Memo[float] = field(default_factory=Memo)
    _hot: Memo[float] = field(default_factory=Memo)
    _followed: IntervalLimiter = field(init=False)
    _looks: RateLimiter = field(init=False)
    _throttled: ThrottledRates = field(init=False)
    _crowding: Crowding = field(init=False)
    _reporter: Reporter = field(init=False)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        monotonic = self.runtime.monotonic
        self._followed = IntervalLimiter(_FOLLOW_EVERY, monotonic)
        self._looks = RateLimiter(_MAX_LOOKS, _MAX_LOOKS, monotonic)
        self._throttled = ThrottledRates(monotonic)
        self._crowding = Crowding(monotonic)
        self._reporter = Reporter(self.observe, monotonic)

    def relieve(self, series: str, pressure: ThrottleSummary, deadline: float) -> None:
        """Do what helps a series whose writes throttle on key ranges; waits a little, sends a few requests.

        Returns with the layout in force in the cache, whoever changed it. Failures to reach the layout or usage table pass:
        the write goes on retrying. Of a series that does not write enough in this process to be the cause, the fleet's
        rate must show that it does: a process looks for that once a second for each series, a few times for all.
        """
        if self.growth.policy is None:
            return
        own = self._throttled.add(series, pressure.new_units)
        if writes_enough(self._assumed(own), self.growth) or self._may_look(series):
            self._alone(series, lambda: self._relieve(series, pressure, own, deadline))

    def _may_look(self, series: str) -> bool:
        """Tell whether the layout and usage of a series may be read that need not be the cause."""
        if self._is_recent(self._hot, series, _HOT_FOR):
            return True
        return (
            self._followed.is_due(series)
            and self._looks.may_pass()
            and self._followed.may_pass(series)
        )

    def _assumed(self, own: float) -> float:
        """Return what a series is taken to write by what this process alone had throttled of it."""
        return own if self.recorder else _PROCESSES * own

    def follow(self, series: str) -> None:
        """Look, once a second at most, whether somebody else has changed the layout of a series that throttles."""
        if self._followed.may_pass(series):
            self._alone(series, lambda: self.layouts.reload(series))

    def _relieve(self, series: str, pressure: ThrottleSummary, own: float, deadline: float) -> None:
        seen = self.layouts.cached_layout(series)
        if seen is None or pressure.epoch_id not in {None, seen.current.id}:
            return  # another layout is in force than the one that throttled
        if not self._wait(seen, deadline):
            return
        snapshot = self.layouts.reload(series)
        if snapshot.layout.version != seen.version:
            self._hot.put(series, self.runtime.monotonic())  # it is the cause, as others found
            return
        if is_stopped(snapshot.layout, self.growth.stop_for, self.runtime.now()):
            return
        demand, units = self._written(series, pressure, own)
        if not writes_enough(units, self.growth):
            self._report_crowding()
            return
        self._hot.put(series, self.runtime.monotonic())
        observed = self._observed(snapshot.layout, pressure, demand)
        decision = decide_on_throttle(observed, self.growth)
        if decision.grows:
            self._enactor.change(
                snapshot, decision, ChangeReason("throttled", describe_evidence(observed))
            )
        elif decision.stop is not None and self._is_sure(snapshot.layout):
            self._enactor.stop(snapshot.layout, decision, describe_evidence(observed))
            self._doubts.discard(series)

    def _written(
        self, series: str, pressure: ThrottleSummary, own: float
    ) -> tuple[WriteDemand | None, float]:
        """Return the fleet's demand where it is known, and the units a second that the series is taken to write."""
        if self.recorder is None:
            return None, self._assumed(own)
        try:
            demand = self.recorder.demand(series)
        except StorageError:
            return None, _PROCESSES * own
        return demand, own if demand is None else max(own, pressure.on_its_sides(demand))

    def _report_crowding(self) -> None:
        """Tell, once that has lasted, that key ranges throttle series of which none is the cause."""
        if self._crowding.is_lasting():
            self._reporter.report(
                ScalingEvent(
                    kind=ScalingKind.STOPPED,
                    reason=str(GrowthStopReason.TOO_FEW_PARTITIONS),
                    evidence="series throttle that write too little to be the cause",
                )
            )

    def report_capacity(self, series: str, pressure: ThrottleSummary) -> None:
        """Tell that capacity limits a series, which no shard adds to; until that is over it does not grow ahead either."""
        self._limited.put(series, self.runtime.monotonic())
        self._reporter.report(
            ScalingEvent(
                kind=ScalingKind.CAPACITY_LIMITED,
                series=series,
                reason="the table's, index's or account's capacity, which no shard adds to",
                throttling=tuple(sorted(pressure.capacity)),
            )
        )

    def prepare_for(self, series: str, demand: WriteDemand) -> None:
        """Grow a series whose demand comes near what its layout carries, before anything throttles."""
        seen = self.layouts.cached_layout(series)
        if seen is None or self._is_limited(series) or not self._ahead(seen, demand).grows:
            return
        self._alone(series, lambda: self._prepare_for(series, demand))

    def _prepare_for(self, series: str, demand: WriteDemand) -> None:
        snapshot = self.layouts.reload(series)
        if not self._ahead(snapshot.layout, demand).grows or self._cooldown(snapshot.layout) > 0:
            return
        # The steady rate says that it must grow; how far, the rate it has risen to.
        with suppress(StorageError):
            rising = self.recorder.demand(series) if self.recorder else None
            if rising is not None and rising.events > demand.events:
                demand = rising
        decision = self._ahead(snapshot.layout, demand)
        if decision.grows:
            observed = self._observed(snapshot.layout, ThrottleSummary(), demand)
            self._enactor.change(
                snapshot, decision, ChangeReason("ahead of demand", describe_evidence(observed))
            )

    def _ahead(self, layout: Layout, demand: WriteDemand) -> ScalingDecision:
        return decide_ahead_of_demand(
            self._observed(layout, ThrottleSummary(), demand.surely), self.growth
        )

    def _observed(
        self, layout: Layout, pressure: ThrottleSummary, demand: WriteDemand | None
    ) -> ScalingObservation:
        return pressure.observation(layout, demand, self.runtime.now())

    @property
    def _enactor(self) -> LayoutUpdater:
        return LayoutUpdater(self.layouts, self._reporter.report, self.runtime.now)

    def _alone(self, series: str, work: Callable[[], object]) -> None:
        """Run work unless another thread is at it for the series; storage failures pass."""
        with self._lock:
            if series in self._busy:
                return
            self._busy.add(series)
        try:
            work()
        except StorageError:
            pass
        finally:
            with self._lock:
                self._busy.discard(series)

    def _wait(self, layout: Layout, deadline: float) -> bool:
        """Wait out the cooldown and a random time; False where the deadline comes first."""
        seconds = self._cooldown(layout) + self.growth.wait(self.runtime.random())
        if self.runtime.monotonic() + seconds >= deadline:
            return False
        self.runtime.sleep(seconds)
        return True

    def _cooldown(self, layout: Layout) -> float:
        return cooldown_left(layout, self.growth.cooldown, self.runtime.now())

    def _is_limited(self, series: str) -> bool:
        return self._is_recent(self._limited, series, self.growth.stop_for)

    def _is_recent(self, memo: Memo[float], series: str, seconds: float) -> bool:
        since = memo.get(series)
        return since is not None and self.runtime.monotonic() - since < seconds

    def _is_sure(self, layout: Layout) -> bool:
        """Tell whether that growth does not help has been found for a while: what a rate rose to is known a second later."""
        now = self.runtime.monotonic()
        remembered = self.growth.sure_after + _DOUBTED_FOR

        def found(doubt: _Doubt | None) -> _Doubt:
            if doubt is None or doubt.epoch_id != layout.current.id or now - doubt.at > remembered:
                return _Doubt(layout.current.id, now)
            return doubt

        return now - self._doubts.update(layout.series, found).at >= self.growth.sure_after
