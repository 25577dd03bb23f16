"""Shrink layouts whose recorded usage needs fewer shards."""

from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

from spillway.layouts.model import Layout
from spillway.layouts.repository import ShardedSeries
from spillway.layouts.source import LayoutSource
from spillway.layouts.transitions import ChangeReason
from spillway.scaling.policy import ScalingDecision, shards_needed
from spillway.scaling.updates import LayoutUpdater, ScalingKind
from spillway.scaling.usage import UsageReader, UsageWindow, WriteDemand, peak_demand
from spillway.settings import Growth

__all__ = ["ShrinkSettings", "ShrinkSweep", "decide_shrink"]


_MAX_UTILIZATION: Final = 0.7  # where growth waits for throttling
_HOUR: Final = 3_600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ShrinkSettings:
    """Settings of shrinking.

    Attributes:
        window_seconds: how long usage must have been low, and how long a growth is kept. Longer
            than a day, so that a daily peak that comes late still counts. The usage table keeps
            two days.
        peak_window_seconds: the time whose highest rate bounds how far a shorter window shrinks.
        max_factor_below_peak: largest factor below the shards that this highest rate needs.
        cooldown_seconds: time between two steps down.
        max_step: largest factor of one step.
        min_shards, min_index_shards: lower bounds of the counts.
    """

    window_seconds: float = 36 * _HOUR
    peak_window_seconds: float = 36 * _HOUR
    max_factor_below_peak: int = 4
    cooldown_seconds: float = 6 * _HOUR
    max_step: int = 4
    min_shards: int = 1
    min_index_shards: int = 1

    def __post_init__(self) -> None:
        if self.max_step < 2 or self.max_factor_below_peak < 1:
            raise ValueError("max_step must be 2 or more, max_factor_below_peak 1 or more")
        if min(self.min_shards, self.min_index_shards) < 1:
            raise ValueError("a layout has one shard at least")
        if not 0 < self.window_seconds <= self.peak_window_seconds <= 48 * _HOUR:
            raise ValueError(
                "0 < window_seconds <= peak_window_seconds <= 48 hours, which the usage table keeps"
            )


def decide_shrink(
    layout: Layout,
    windows: Sequence[UsageWindow],
    now: float,
    settings: ShrinkSettings,
    growth: Growth,
) -> ScalingDecision:
    """Decide whether a layout gives up shards, by the windows up to `now`, in order.

    For series all of whose writers record their usage: what is not recorded counts as idle.
    """
    if now - layout.last_updated < _hold_seconds(layout, settings):
        return ScalingDecision()
    max_utilization = growth.max_utilization or _MAX_UTILIZATION
    recent = _peak(windows, now - settings.window_seconds)
    peak = (
        recent
        if settings.window_seconds == settings.peak_window_seconds
        else _peak(windows, now - settings.peak_window_seconds)
    )

    def needed(recently: float, at_most: float) -> int:
        now_needed = shards_needed(recently / max_utilization, growth.partition_wcu)
        return max(
            now_needed,
            shards_needed(at_most / max_utilization, growth.partition_wcu)
            // settings.max_factor_below_peak,
        )

    current, step = layout.current, settings.max_step
    table = max(needed(recent.table_units, peak.table_units), settings.min_shards)
    index = max(needed(recent.index_units, peak.index_units), settings.min_index_shards)
    return ScalingDecision(
        shards=_step_down(current.shards, table, step),
        index_shards=_step_down(current.index_shards, index, step),
    )


def _peak(windows: Sequence[UsageWindow], since: float) -> WriteDemand:
    return peak_demand(windows[bisect_left(windows, since, key=lambda window: window.start) :])


def _hold_seconds(layout: Layout, settings: ShrinkSettings) -> float:
    """Return the seconds for which a layout stays: a window after growth, else the cooldown."""
    if len(layout.epochs) > 1:
        before, current = layout.epochs[-2:]
        if before.shards >= current.shards and before.index_shards >= current.index_shards:
            return settings.cooldown_seconds
    return max(settings.window_seconds, settings.cooldown_seconds)


def _step_down(count: int, needed: int, max_step: int) -> int | None:
    """Return the count after one step down, a power of two; None where it stays."""
    lowest = max(needed, -(-count // max_step))
    fewer = 1 << (lowest - 1).bit_length()
    return fewer if fewer < count else None


_PAGE: Final = 50  # layouts a run
_ROUND: Final = 3_600.0  # seconds between the beginnings of two rounds, at least
_CHUNKS: Final = (1_800.0, 6 * 3_600.0, 48 * 3_600.0)  # seconds back that usage is read in turn


@dataclass(slots=True)
class ShrinkSweep:
    """Shrinks idle layouts, 50 a run: 3,000 an hour at a run a minute.

    Remembers its place in the list, nothing by series. A new process begins a new round. `now` is
    the wall clock, `monotonic` the clock of deadlines.
    """

    listing: ShardedSeries
    layouts: LayoutSource
    usage: UsageReader
    updater: LayoutUpdater
    shrink: ShrinkSettings
    growth: Growth
    now: Callable[[], float]
    monotonic: Callable[[], float]
    _after: str | None = None
    _begun: float | None = field(default=None)
    _finished: bool = True

    def run(self, deadline: float) -> int:
        """Shrink idle layouts of the next page until `deadline`; return how many were checked.

        Costs a Query and a BatchGetItem. For each layout past its cooldown it costs one Query of
        usage, or three where usage is low: half a read unit each for an idle one, 8 for a busy one, up to 600
        for one that was in use for the whole window. Raises StorageError.
        """
        if not self._begin_or_continue():
            return 0
        page, following = self.listing.page(self._after, _PAGE)
        for looked, layout in enumerate(page):
            if self.monotonic() >= deadline:
                return looked
            self._shrink_if_idle(layout)
            self._after = layout.series
        self._after, self._finished = following, following is None
        return len(page)

    def _begin_or_continue(self) -> bool:
        """Return whether a round is under way, or begin one that is due."""
        now = self.monotonic()
        if self._finished and self._begun is not None and now - self._begun < _ROUND:
            return False
        if self._finished:
            self._begun, self._finished, self._after = now, False, None
        return True

    def _shrink_if_idle(self, listed: Layout) -> None:
        decision, evidence = self._decide(listed)
        if not decision.grows:
            return
        snapshot = self.layouts.read_snapshot(listed.series)
        if snapshot is None or snapshot.layout.version != listed.version:
            return  # it changed meanwhile: the next round sees that
        reason = ChangeReason("idle", evidence)
        self.updater.change(snapshot, decision, reason, ScalingKind.SHRANK)

    def _decide(self, layout: Layout) -> tuple[ScalingDecision, str]:
        """Decide by the least history that does.

        More history can only raise the count, so it stops once all shards are needed.
        """
        now = self.now()
        decision = decide_shrink(layout, (), now, self.shrink, self.growth)
        windows: list[UsageWindow] = []
        read_from = now
        for chunk in _CHUNKS:
            if not decision.grows:
                break
            since = now - min(chunk, self.shrink.peak_window_seconds)
            windows = self.usage.windows(layout.series, since, read_from) + windows
            read_from = since
            decision = decide_shrink(layout, windows, now, self.shrink, self.growth)
        return decision, self._describe_peak(windows)

    def _describe_peak(self, windows: list[UsageWindow]) -> str:
        peak, hours = peak_demand(windows), self.shrink.peak_window_seconds / 3_600
        return (
            f"at most {peak.table_units:,.0f} (table) and {peak.index_units:,.0f} (index) units/s"
            f" in {hours:g} hours"
        )
