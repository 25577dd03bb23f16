"""The grower: carries out what the scaling policy decides, so that of many throttled writers about one does.

Whoever throttles waits a short random time, then reads the layout anew. If someone changed it meanwhile, that is the relief;
else it reads the fleet's demand, decides, and changes the layout on the version it has just read.
"""

import math
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from spillway.layouts.model import GrowthStop, Layout, Snapshot
from spillway.layouts.source import LayoutSource
from spillway.runtime import Runtime
from spillway.scaling.growth import Growth
from spillway.scaling.observation import Decision, Observation
from spillway.scaling.policy import ahead_of_demand, on_throttle
from spillway.scaling.pressure import Pressure
from spillway.scaling.recorder import UsageRecorder
from spillway.scaling.report import Observer, ScalingEvent, ScalingKind
from spillway.scaling.usage import Demand
from spillway.sharding import Mode
from spillway.storage.port import StorageError

__all__ = ["Grower"]

_DOUBTED_FOR: Final = 10.0  # seconds for which a finding waits to be found again


@dataclass(frozen=True, slots=True)
class _Doubt:
    """When growth was first found not to help, and under which epoch."""

    epoch_id: int
    at: float


@dataclass(slots=True)
class Grower:
    """Grows the layouts of series that throttle, or soon will. Thread-safe; one growth of a series at a time a process."""

    layouts: LayoutSource
    recorder: UsageRecorder | None
    growth: Growth
    runtime: Runtime
    observe: Observer
    _busy: set[str] = field(default_factory=set)
    _doubts: dict[str, _Doubt] = field(default_factory=dict)
    _limited: dict[str, float] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def relieve(self, series: str, pressure: Pressure, deadline: float) -> None:
        """Do what helps a series whose writes throttle on key ranges; waits a little, sends a few requests.

        Returns with the layout in force in the cache, whoever changed it. Failures to reach the layout or usage table pass:
        the write goes on retrying.
        """
        if self.growth.policy is None:
            return
        self._alone(series, lambda: self._relieve(series, pressure, deadline))

    def _relieve(self, series: str, pressure: Pressure, deadline: float) -> None:
        seen = self.layouts.known(series)
        if seen is None or pressure.epoch_id not in {None, seen.current.id}:
            return  # another layout is in force than the one that throttled
        if not self._wait(seen, deadline):
            return
        snapshot = self.layouts.reload(series)
        if snapshot.layout.version != seen.version or self._is_stopped(snapshot.layout):
            return
        demand = self.recorder.demand(series) if self.recorder else None
        seen_now = self._observation(snapshot.layout, pressure, demand)
        decision = on_throttle(seen_now, self.growth)
        if decision.grows:
            self._grow(snapshot, decision, "throttled")
        elif decision.stop is not None and self._is_sure(snapshot.layout):
            self._stop(snapshot.layout, decision)

    def report_capacity(self, series: str, pressure: Pressure) -> None:
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

    def prepare_for(self, series: str, demand: Demand) -> None:
        """Grow a series whose demand comes near what its layout carries, before anything throttles."""
        seen = self.layouts.known(series)
        if seen is None or self._is_limited(series) or not self._ahead(seen, demand).grows:
            return
        self._alone(series, lambda: self._prepare_for(series, demand))

    def _prepare_for(self, series: str, demand: Demand) -> None:
        snapshot = self.layouts.reload(series)
        if not self._ahead(snapshot.layout, demand).grows or self._cooldown(snapshot.layout) > 0:
            return
        # The steady rate says that it must grow; how far, the rate it has risen to.
        rising = self.recorder.demand(series) if self.recorder else None
        if rising is not None and rising.events > demand.events:
            demand = rising
        self._grow(snapshot, self._ahead(snapshot.layout, demand), "ahead of demand")

    def _ahead(self, layout: Layout, demand: Demand) -> Decision:
        seen = self._observation(layout, Pressure(), demand.surely)
        return ahead_of_demand(seen, self.growth)

    def _alone(self, series: str, work: Callable[[], None]) -> None:
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
        """Return seconds until the layout may change again; a layout that never changed may at once."""
        if layout.version == 1:
            return 0.0
        passed = self.runtime.now() - layout.last_updated
        # Clocks differ: whoever changed it may be ahead.
        return min(max(0.0, self.growth.cooldown - passed), self.growth.cooldown)

    def _is_limited(self, series: str) -> bool:
        since = self._limited.get(series)
        if since is None:
            return False
        if self.runtime.monotonic() - since < self.growth.stop_for:
            return True
        self._limited.pop(series, None)
        return False

    def _is_stopped(self, layout: Layout) -> bool:
        if layout.stop is None or layout.stop.at < layout.last_updated:
            return False
        return self.runtime.now() - layout.stop.at < self.growth.stop_for

    def _is_sure(self, layout: Layout) -> bool:
        """Tell whether that growth does not help has been found for a while: what a rate rose to is known a second later."""
        now = self.runtime.monotonic()
        doubt = self._doubts.get(layout.series)
        remembered = self.growth.sure_after + _DOUBTED_FOR
        if doubt is None or doubt.epoch_id != layout.current.id or now - doubt.at > remembered:
            self._doubts[layout.series] = doubt = _Doubt(layout.current.id, now)
        return now - doubt.at >= self.growth.sure_after

    def _grow(self, snapshot: Snapshot, decision: Decision, reason: str) -> None:
        """Change the layout, unless it changed while the decision was made: a look is cheaper than a refused write."""
        if not decision.grows:
            return
        latest = self.layouts.reload(snapshot.layout.series)
        if latest.layout.version != snapshot.layout.version:
            return
        before = snapshot.layout.current
        grown = self.layouts.grow(
            snapshot, shards=decision.shards, index_shards=decision.index_shards
        )
        self.observe(
            ScalingEvent(
                kind=ScalingKind.LOST_RACE if grown is None else ScalingKind.GREW,
                series=snapshot.layout.series,
                shards=before.shards,
                index_shards=before.index_shards,
                new_shards=decision.shards or before.shards,
                new_index_shards=decision.index_shards or before.index_shards,
                reason=reason,
            )
        )
        if grown is None:
            self.layouts.reload(snapshot.layout.series)

    def _stop(self, layout: Layout, decision: Decision) -> None:
        keys, reason = decision.hot_sharding_keys, str(decision.stop)
        stop = GrowthStop(reason=reason, at=self.runtime.now(), hot_sharding_keys=keys)
        self.layouts.note_stop(layout.series, stop)
        self._doubts.pop(layout.series, None)
        self.observe(
            ScalingEvent(
                kind=ScalingKind.STOPPED,
                series=layout.series,
                shards=layout.current.shards,
                index_shards=layout.current.index_shards,
                reason=reason,
                hot_sharding_keys=keys,
            )
        )

    def _observation(
        self, layout: Layout, pressure: Pressure, demand: Demand | None
    ) -> Observation:
        current = layout.current
        table = demand.table_units if demand else None
        index = demand.index_units if demand else None
        never = layout.version == 1
        return Observation(
            table=pressure.table_side(current.shards, table),
            index=pressure.index_side(current.index_shards, index),
            any_count=current.mode is Mode.RANDOM,
            since_change=math.inf if never else self.runtime.now() - layout.last_updated,
        )
