"""The grower: carries out what the scaling policy decides, so that of many throttled writers about one does.

Whoever throttles waits a short random time, then reads the layout anew. If someone changed it meanwhile, that is the relief;
else it reads the fleet's demand, decides, and changes the layout on the version it has just read.
"""

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from spillway.dynamodb.port import StorageError
from spillway.layouts.model import Layout
from spillway.layouts.source import LayoutSource
from spillway.layouts.transitions import ChangeReason
from spillway.runtime import Runtime
from spillway.scaling.evidence import ThrottleSummary
from spillway.scaling.policy import (
    ScalingDecision,
    ScalingObservation,
    cooldown_left,
    decide_ahead_of_demand,
    decide_on_throttle,
    is_stopped,
)
from spillway.scaling.updates import (
    LayoutUpdater,
    Observer,
    ScalingEvent,
    ScalingKind,
    describe_evidence,
)
from spillway.scaling.usage import UsageRecorder, WriteDemand
from spillway.settings import Growth

__all__ = ["WriterAutoscaler"]

_FOLLOW_EVERY: Final = 1.0  # seconds between two looks for what others did, a series and process
_DOUBTED_FOR: Final = 10.0  # seconds for which a finding waits to be found again


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
    _doubts: dict[str, _Doubt] = field(default_factory=dict)
    _limited: dict[str, float] = field(default_factory=dict)
    _followed: dict[str, float] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def relieve(self, series: str, pressure: ThrottleSummary, deadline: float) -> None:
        """Do what helps a series whose writes throttle on key ranges; waits a little, sends a few requests.

        Returns with the layout in force in the cache, whoever changed it. Failures to reach the layout or usage table pass:
        the write goes on retrying.
        """
        if self.growth.policy is None:
            return
        self._alone(series, lambda: self._relieve(series, pressure, deadline))

    def follow(self, series: str) -> None:
        """Look, once a second at most, whether somebody else has changed the layout of a series that throttles."""
        now = self.runtime.monotonic()
        if now - self._followed.get(series, -_FOLLOW_EVERY) >= _FOLLOW_EVERY:
            self._followed[series] = now
            self._alone(series, lambda: self.layouts.reload(series))

    def _relieve(self, series: str, pressure: ThrottleSummary, deadline: float) -> None:
        seen = self.layouts.known(series)
        if seen is None or pressure.epoch_id not in {None, seen.current.id}:
            return  # another layout is in force than the one that throttled
        if not self._wait(seen, deadline):
            return
        snapshot = self.layouts.reload(series)
        if snapshot.layout.version != seen.version or is_stopped(
            snapshot.layout, self.growth.stop_for, self.runtime.now()
        ):
            return
        demand = self.recorder.demand(series) if self.recorder else None
        observed = self._observed(snapshot.layout, pressure, demand)
        decision = decide_on_throttle(observed, self.growth)
        if decision.grows:
            self._enactor.change(
                snapshot, decision, ChangeReason("throttled", describe_evidence(observed))
            )
        elif decision.stop is not None and self._is_sure(snapshot.layout):
            self._enactor.stop(snapshot.layout, decision, describe_evidence(observed))
            self._doubts.pop(series, None)

    def report_capacity(self, series: str, pressure: ThrottleSummary) -> None:
        """Tell that capacity limits a series, which no shard adds to; until that is over it does not grow ahead either."""
        self._limited[series] = self.runtime.monotonic()
        self.observe(
            ScalingEvent(
                kind=ScalingKind.CAPACITY_LIMITED,
                series=series,
                reason="the table's, index's or account's capacity, which no shard adds to",
                throttling=tuple(sorted(pressure.capacity)),
            )
        )

    def prepare_for(self, series: str, demand: WriteDemand) -> None:
        """Grow a series whose demand comes near what its layout carries, before anything throttles."""
        seen = self.layouts.known(series)
        if seen is None or self._is_limited(series) or not self._ahead(seen, demand).grows:
            return
        self._alone(series, lambda: self._prepare_for(series, demand))

    def _prepare_for(self, series: str, demand: WriteDemand) -> None:
        snapshot = self.layouts.reload(series)
        if not self._ahead(snapshot.layout, demand).grows or self._cooldown(snapshot.layout) > 0:
            return
        # The steady rate says that it must grow; how far, the rate it has risen to.
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
        return LayoutUpdater(self.layouts, self.observe, self.runtime.now)

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
        since = self._limited.get(series)
        if since is None:
            return False
        if self.runtime.monotonic() - since < self.growth.stop_for:
            return True
        self._limited.pop(series, None)
        return False

    def _is_sure(self, layout: Layout) -> bool:
        """Tell whether that growth does not help has been found for a while: what a rate rose to is known a second later."""
        now = self.runtime.monotonic()
        doubt = self._doubts.get(layout.series)
        remembered = self.growth.sure_after + _DOUBTED_FOR
        if doubt is None or doubt.epoch_id != layout.current.id or now - doubt.at > remembered:
            self._doubts[layout.series] = doubt = _Doubt(layout.current.id, now)
        return now - doubt.at >= self.growth.sure_after
