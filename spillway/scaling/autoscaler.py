"""Growth of layouts by writers, so that of many throttled writers about one changes a layout.

A throttled writer waits a short random time, then reads the layout again. If another writer has
changed it meanwhile, nothing is left to do. Otherwise it reads the fleet's demand, decides, and
changes the layout on condition of the version that it has just read.

A series that shares a partition with a hot one throttles just as the hot one does. So a series
grows only where it writes enough to be the cause: by the fleet's usage record, or by the units of
this process alone that throttled.
"""

import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
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
    decide_ahead_of_demand,
    writes_enough,
)
from spillway.scaling.updates import (
    LayoutGrower,
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

_REFRESH_SECONDS: Final = 1.0  # between two reads of a layout that others may have changed
_FINDING_SECONDS: Final = 10.0  # for which a finding waits to be confirmed
_MAX_READS_PER_SECOND: Final = 5.0  # of usage, by one process, for series that may not be the cause
_HOT_SECONDS: Final = 10.0  # for which usage of a series found to be the cause is read freely
_PROCESSES: Final = 10.0  # assumed to write a series where the fleet's rate can't be read


@dataclass(frozen=True, slots=True)
class _Finding:
    """When growth was first found futile, and under which epoch."""

    epoch_id: int
    at: float


@dataclass(slots=True)
class WriterAutoscaler:
    """Grows layouts of series that throttle or soon will.

    Thread-safe. A process works on one growth of a series at a time. Failures to reach the layout
    or usage table are not raised: the write goes on retrying.
    """

    layouts: LayoutSource
    recorder: UsageRecorder | None
    growth: Growth
    runtime: Runtime
    observe: Observer
    _busy: set[str] = field(default_factory=set)
    _findings: Memo[_Finding] = field(default_factory=Memo)
    _limited: Memo[float] = field(default_factory=Memo)
    _hot: Memo[float] = field(default_factory=Memo)
    _refreshes: IntervalLimiter = field(init=False)
    _read_limit: RateLimiter = field(init=False)
    _throttled: ThrottledRates = field(init=False)
    _crowding: Crowding = field(init=False)
    _reporter: Reporter = field(init=False)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        monotonic = self.runtime.monotonic
        self._refreshes = IntervalLimiter(_REFRESH_SECONDS, monotonic)
        self._read_limit = RateLimiter(_MAX_READS_PER_SECOND, _MAX_READS_PER_SECOND, monotonic)
        self._throttled = ThrottledRates(monotonic)
        self._crowding = Crowding(monotonic)
        self._reporter = Reporter(self.observe, monotonic)

    def grow_on_throttle(self, series: str, throttles: ThrottleSummary, deadline: float) -> None:
        """Grow a series whose writes throttle on key ranges, where that helps.

        Waits a little, by `deadline` at the latest. Returns with the layout in force in the cache,
        whoever changed it. Costs a GetItem of the layout and two of usage, and an UpdateItem where
        it grows. A series that does not write enough in this process to be the cause is looked up
        once a second, and at most five of them a second in a process.
        """
        if self.growth.policy is None:
            return
        own_units = self._throttled.add(series, throttles.new_units)
        if writes_enough(self._assumed_units(own_units), self.growth) or self._may_read(series):
            self._run_exclusively(
                series, lambda: self._grow_on_throttle(series, throttles, own_units, deadline)
            )

    def grow_ahead(self, series: str, demand: WriteDemand) -> None:
        """Grow a series whose demand nears its layout's capacity, before anything throttles."""
        cached = self.layouts.cached_layout(series)
        if cached is None or self._is_limited(series):
            return
        if self._decide_ahead(cached, demand).grows:
            self._run_exclusively(series, lambda: self._grow_ahead(series, demand))

    def refresh_layout(self, series: str) -> None:
        """Read the layout of a throttling series again, at most once a second."""
        if self._refreshes.may_pass(series):
            self._run_exclusively(series, lambda: self.layouts.reload(series))

    def report_capacity_limit(self, series: str, throttles: ThrottleSummary) -> None:
        """Report that capacity limits a series, and hold its growth ahead of demand meanwhile."""
        self._limited.put(series, self.runtime.monotonic())
        self._reporter.report(
            ScalingEvent(
                kind=ScalingKind.CAPACITY_LIMITED,
                series=series,
                reason="the table's, index's or account's capacity, which no shard adds to",
                throttling=tuple(sorted(throttles.capacity)),
            )
        )

    def _grow_on_throttle(
        self, series: str, throttles: ThrottleSummary, own_units: float, deadline: float
    ) -> None:
        cached = self.layouts.cached_layout(series)
        if cached is None or throttles.epoch_id not in {None, cached.current.id}:
            return  # another layout is in force than the one that throttled
        if not self._wait(cached, deadline):
            return
        snapshot = self.layouts.reload(series)
        if snapshot.layout.version != cached.version:
            self._hot.put(series, self.runtime.monotonic())  # it is the cause, as others found
            return
        grower = self._grower
        if grower.is_stopped(snapshot.layout):
            return
        demand, units = self._read_demand(series, throttles, own_units)
        if not writes_enough(units, self.growth):
            self._report_crowding()
            return
        self._hot.put(series, self.runtime.monotonic())
        applied = grower.decide_and_apply(
            snapshot,
            throttles,
            demand,
            why="throttled",
            review_stop=partial(self._confirm_stop, snapshot.layout),
        )
        if applied.stop is not None:
            self._findings.discard(series)

    def _wait(self, layout: Layout, deadline: float) -> bool:
        """Wait out the cooldown and a random time; return False where the deadline comes first."""
        cooldown = self._grower.cooldown_seconds_left(layout)
        seconds = cooldown + self.growth.wait(self.runtime.random())
        if self.runtime.monotonic() + seconds >= deadline:
            return False
        self.runtime.sleep(seconds)
        return True

    def _may_read(self, series: str) -> bool:
        """Return whether to read layout and usage of a series that may not be the cause."""
        if self._is_recent(self._hot, series, _HOT_SECONDS):
            return True
        return (
            self._refreshes.is_due(series)
            and self._read_limit.may_pass()
            and self._refreshes.may_pass(series)
        )

    def _read_demand(
        self, series: str, throttles: ThrottleSummary, own_units: float
    ) -> tuple[WriteDemand | None, float]:
        """Return the fleet's demand where it is known, and the units a second to assume."""
        if self.recorder is None:
            return None, self._assumed_units(own_units)
        try:
            demand = self.recorder.demand(series)
        except StorageError:
            return None, _PROCESSES * own_units
        if demand is None:
            return None, own_units
        return demand, max(own_units, throttles.demand_on_throttled(demand))

    def _assumed_units(self, own_units: float) -> float:
        """Return the units a second to assume of a series, by what throttled in this process."""
        return own_units if self.recorder else _PROCESSES * own_units

    def _confirm_stop(
        self, layout: Layout, _: ScalingObservation, decision: ScalingDecision
    ) -> ScalingDecision | None:
        """Return the decision to stop once growth has been found futile for a while, else None.

        Recorded usage lags by a second, so a rate that has just risen looks too low at first.
        """
        now = self.runtime.monotonic()
        max_age = self.growth.confirm_seconds + _FINDING_SECONDS

        def keep_or_begin(finding: _Finding | None) -> _Finding:
            if (
                finding is None
                or finding.epoch_id != layout.current.id
                or now - finding.at > max_age
            ):
                return _Finding(layout.current.id, now)
            return finding

        first = self._findings.update(layout.series, keep_or_begin)
        return decision if now - first.at >= self.growth.confirm_seconds else None

    def _report_crowding(self) -> None:
        """Report, once that has lasted, that series throttle of which none is the cause."""
        if self._crowding.is_lasting():
            self._reporter.report(
                ScalingEvent(
                    kind=ScalingKind.STOPPED,
                    reason=str(GrowthStopReason.TOO_FEW_PARTITIONS),
                    evidence="series throttle that write too little to be the cause",
                )
            )

    def _grow_ahead(self, series: str, demand: WriteDemand) -> None:
        snapshot = self.layouts.reload(series)
        layout, grower = snapshot.layout, self._grower
        if not self._decide_ahead(layout, demand).grows or grower.cooldown_seconds_left(layout) > 0:
            return
        # The steady rate says that it must grow; the rate it has risen to says how far.
        with suppress(StorageError):
            rising = self.recorder.demand(series) if self.recorder else None
            if rising is not None and rising.events > demand.events:
                demand = rising
        decision = self._decide_ahead(layout, demand)
        if decision.grows:
            observation = ThrottleSummary().observation(layout, demand, self.runtime.now())
            reason = ChangeReason("ahead of demand", describe_evidence(observation))
            grower.updater.change(snapshot, decision, reason)

    def _decide_ahead(self, layout: Layout, demand: WriteDemand) -> ScalingDecision:
        observation = ThrottleSummary().observation(layout, demand.lower_bound, self.runtime.now())
        return decide_ahead_of_demand(observation, self.growth)

    @property
    def _grower(self) -> LayoutGrower:
        updater = LayoutUpdater(self.layouts, self._reporter.report, self.runtime.now)
        return LayoutGrower(updater, self.growth)

    def _run_exclusively(self, series: str, work: Callable[[], object]) -> None:
        """Run work unless another thread works on the series; storage failures are dropped."""
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

    def _is_limited(self, series: str) -> bool:
        return self._is_recent(self._limited, series, self.growth.stop_seconds)

    def _is_recent(self, memo: Memo[float], series: str, seconds: float) -> bool:
        since = memo.get(series)
        return since is not None and self.runtime.monotonic() - since < seconds
