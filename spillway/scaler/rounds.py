"""Rounds: all layouts with more than one shard are looked at in turn, a page a run, and give up shards that nobody needs."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from spillway.layouts.decisions import Reason
from spillway.layouts.listing import ShardedSeries
from spillway.layouts.model import Layout
from spillway.layouts.source import LayoutSource
from spillway.scaling.enactor import Enactor
from spillway.scaling.growth import Growth
from spillway.scaling.observation import Decision
from spillway.scaling.recorded import RecordedUsage, UsageWindow, peak_of
from spillway.scaling.report import ScalingKind
from spillway.scaling.shrink import Shrink, shrunk

__all__ = ["Rounds"]

_PAGE: Final = 50  # layouts a run
_ROUND: Final = 3_600.0  # seconds between the beginnings of two rounds, at least
_CHUNKS: Final = (1_800.0, 6 * 3_600.0, 48 * 3_600.0)  # seconds back that usage is read in turn


@dataclass(slots=True)
class Rounds:
    """Shrinks idle layouts, 50 a run: 3,000 an hour at a run a minute.

    Where the process is replaced, a round begins anew. `now` is the wall clock, `monotonic` the clock of deadlines.
    """

    listing: ShardedSeries
    layouts: LayoutSource
    usage: RecordedUsage
    enactor: Enactor
    shrink: Shrink
    growth: Growth
    now: Callable[[], float]
    monotonic: Callable[[], float]
    _after: str | None = None
    _begun: float | None = field(default=None)
    _finished: bool = True

    def run(self, deadline: float) -> int:
        """Look at the next page of layouts until `deadline`, and return how many were looked at. Raises StorageError.

        Costs a Query and a BatchGetItem, and for each layout that may change again one of its usage, or three where that is low: half a read unit
        each for one that is idle, 8 for one that is busy, up to 600 for one that was in use for the whole window.
        """
        if not self._goes_on():
            return 0
        page, following = self.listing.page(self._after, _PAGE)
        for looked, layout in enumerate(page):
            if self.monotonic() >= deadline:
                return looked
            self._look_at(layout)
            self._after = layout.series
        self._after, self._finished = following, following is None
        return len(page)

    def _goes_on(self) -> bool:
        """Tell whether a round is under way, or a new one due."""
        now = self.monotonic()
        if self._finished and self._begun is not None and now - self._begun < _ROUND:
            return False
        if self._finished:
            self._begun, self._finished, self._after = now, False, None
        return True

    def _look_at(self, seen: Layout) -> None:
        decision, evidence = self._decide(seen)
        if not decision.grows:
            return
        snapshot = self.layouts.find(seen.series)
        if snapshot is None or snapshot.layout.version != seen.version:
            return  # it changed meanwhile: the next round sees that
        reason = Reason("idle", evidence)
        self.enactor.change(snapshot, decision, reason, ScalingKind.SHRANK)

    def _decide(self, layout: Layout) -> tuple[Decision, str]:
        """Decide by as little usage as does: more never takes more shards, so the first that needs all of them settles it."""
        now = self.now()
        decision = shrunk(layout, (), now, self.shrink, self.growth)
        windows: list[UsageWindow] = []
        read_from = now
        for chunk in _CHUNKS:
            if not decision.grows:
                break
            since = now - min(chunk, self.shrink.remembered)
            windows = self.usage.windows(layout.series, since, read_from) + windows
            read_from = since
            decision = shrunk(layout, windows, now, self.shrink, self.growth)
        return decision, self._evidence(windows)

    def _evidence(self, windows: list[UsageWindow]) -> str:
        peak, hours = peak_of(windows), self.shrink.remembered / 3_600
        return (
            f"at most {peak.table_units:,.0f} (table) and {peak.index_units:,.0f} (index) units/s"
            f" in {hours:g} hours"
        )
