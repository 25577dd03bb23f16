"""Deviations from the protocol of layouts, each of which must be noticed: they look harmless and lose events."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

import pytest
from msgspec import structs

from spillway.dynamodb.port import Call, ConditionFailedError, Item, ThrottledError
from spillway.layouts import repository as store
from spillway.layouts import source
from spillway.layouts import transitions as changes
from spillway.layouts.cache import LayoutCache, StaleLayouts
from spillway.layouts.clock import ClockReading, read_clocks
from spillway.layouts.codec import encode_layout
from spillway.layouts.model import OPEN, Epoch, Layout, Snapshot
from spillway.layouts.repository import LayoutRepository
from spillway.layouts.source import LayoutSource
from spillway.runtime import Runtime
from spillway.scanning.sources import ReadSources, Staleness
from spillway.settings import Settings
from spillway.timestamps import format_epoch
from spillway.writing import batches, routing
from spillway.writing.attempts import PendingEvent
from spillway.writing.conflicts import OnConflict
from spillway.writing.preparation import PreparedEvent
from spillway.writing.routing import EventRouter
from spillway.writing.writer import BackgroundTask, Writer

__all__ = ["MUTATIONS"]

# Private parts are replaced on purpose: a mutation is a change of the code under test.
# ruff: noqa: SLF001
Patch = pytest.MonkeyPatch


def condition_on_count(patch: Patch) -> None:
    """Condition a change on the count that was read instead of the version."""

    def conditionally(self: LayoutRepository, old: Layout, new: Layout) -> bool:
        known = {"N": str(old.current.shards)}
        try:
            self._update(encode_layout(new), condition="#number_of_shards = :known", known=known)
        except ConditionFailedError:
            return False
        return True

    patch.setattr(LayoutRepository, "_replace", conditionally)


def whole_item_rewritten(patch: Patch) -> None:
    """Put the whole item, as it was read and changed, without a condition."""

    def blindly(self: LayoutRepository, _: Layout, new: Layout) -> bool:
        self._call("PutItem", {"TableName": self._table, "Item": encode_layout(new)})
        return True

    patch.setattr(LayoutRepository, "_replace", blindly)


def newest_mark_lowered(patch: Patch) -> None:
    """Lower the mark of whatever epoch is in force, then write under the one that was known before."""

    def lower(self: LayoutSource, series: str, _: int, time: str) -> Snapshot:
        known = self.load_for_write(series)

        def change(layout: Layout, now: float) -> Layout:
            return changes.extend_low(layout, layout.current.id, time, now)

        self._store.change(series, change)
        assumed = changes.extend_low(known.layout, known.layout.current.id, time, known.loaded_at)
        snapshot = Snapshot(assumed, known.loaded_at)
        self._cache._snapshots[series] = snapshot
        return snapshot

    patch.setattr(LayoutSource, "extend_low", lower)


def monotonic_ttl(patch: Patch) -> None:
    """Trust a snapshot for its time to live by a monotonic clock, which stands still in a frozen process."""

    class MonotonicCache(LayoutCache):
        def fresh(self, series: str) -> Snapshot | None:
            found = self.latest(series)
            kept_at = self.kept_at.get(series, 0.0)
            return found if found is not None and self._now() - kept_at < self._ttl else None

        def keep(self, snapshot: Snapshot) -> None:
            series = snapshot.layout.series
            self._snapshots[series] = snapshot
            self.kept_at[series] = self._now()

        def __init__(self, ttl: float, now: Callable[[], float]) -> None:
            super().__init__(ttl, now)
            self.kept_at: dict[str, float] = {}

    original = LayoutSource.__init__

    def init(
        self: LayoutSource,
        call: Call,
        table: str,
        settings: Settings,
        runtime: Runtime,
        *,
        stale_layouts: StaleLayouts | None = None,
    ) -> None:
        original(self, call, table, settings, runtime, stale_layouts=stale_layouts)
        self._cache = MonotonicCache(settings.layout_ttl, runtime.monotonic)

    def epoch_for(self: Snapshot, time: str, _: str) -> Epoch | None:
        return next(self.layout.covering(time), None)

    patch.setattr(LayoutSource, "__init__", init)
    patch.setattr(Snapshot, "epoch_for", epoch_for)


def upper_end_recomputed(patch: Patch) -> None:
    """Close an epoch by the horizon of today's settings instead of the one its writers went by."""

    def close(layout: Layout, now: float) -> Layout:
        if layout.has_closed_retired:
            return layout
        closed = (
            replace(epoch, close=format_epoch(now + 40)) if epoch.close == OPEN else epoch
            for epoch in layout.epochs[:-1]
        )
        return replace(layout, epochs=(*closed, layout.current))

    patch.setattr(changes, "close_retired", close)


def closed_by_whoever_retires(patch: Patch) -> None:
    """Close the retired epoch in the write that retires it, by a clock read before that write takes effect."""
    original = changes.begin_epoch

    def begin(layout: Layout, settings: Settings, now: float, **counts: int | None) -> Layout:
        changed = original(layout, settings, now, **counts)
        return changed if changed is layout else changes.close_retired(changed, now)

    patch.setattr(source, "begin_epoch", begin)


def loser_keeps_its_count(patch: Patch) -> None:
    """Go on with one's own first layout after losing the race to create it."""
    original = LayoutRepository._create

    def create(self: LayoutRepository, series: str) -> Snapshot:
        loaded_at = self._now()
        original(self, series)
        return Snapshot(changes.first_layout(series, self._settings, loaded_at), loaded_at)

    patch.setattr(LayoutRepository, "_create", create)


def fold_keeps_newer_count(patch: Patch) -> None:
    """Fold two epochs into one with the newer's count only."""
    original = changes._union

    def union(older: Epoch, newer: Epoch) -> Epoch:
        return replace(original(older, newer), earlier_shards=())

    patch.setattr(changes, "_union", union)


def cached_layout_on_strong_read(patch: Patch) -> None:
    """Take the layout of a consistent read from the process cache."""

    def layout(self: ReadSources, series: str, _age: Staleness) -> Layout | None:
        return self.layouts.read_eventually(series)

    patch.setattr(ReadSources, "layout", layout)


def written_before_lowered(patch: Patch) -> None:
    """Write an old event under the epoch in force, then lower its mark."""
    original_widen, original_attempt = EventRouter.widen, Writer._attempt
    late: dict[EventRouter, dict[PendingEvent, PendingEvent]] = {}

    def widen(self: EventRouter, pending: Sequence[PendingEvent], _deadline: float) -> None:
        for each in pending:
            known = self._layouts.cached_layout(each.event.series)
            if known is None or not isinstance(each.failure, ThrottledError):
                continue
            current = known.current
            if each.event.time < current.low:
                shard = self._choose_shard(each, current)
                item = batches.build_item(each.event, current, shard)
                late.setdefault(self, {})[each] = structs.replace(each, in_doubt=item)

    def attempt(
        self: Writer,
        pending: list[PendingEvent],
        deadline: float,
        tasks: list[BackgroundTask],
        on_conflict: OnConflict,
    ) -> list[PendingEvent]:
        early = late.pop(self._router, {})
        moved = [early.get(each, each) for each in pending]
        left = original_attempt(self, moved, deadline, tasks, on_conflict)
        original_widen(self._router, list(early), deadline)
        return left

    patch.setattr(EventRouter, "widen", widen)
    patch.setattr(Writer, "_attempt", attempt)


def closed_by_any_clock(patch: Patch) -> None:
    """Close what an operator retired by its own clock, which may be wrong."""
    original = LayoutRepository.close_retired

    def close(self: LayoutRepository, series: str, *, by_own_clock: bool = False) -> Snapshot:
        del by_own_clock
        return original(self, series, by_own_clock=True)

    patch.setattr(LayoutRepository, "close_retired", close)


def closed_by_the_clock_alone(patch: Patch) -> None:
    """Close a retired epoch by a right clock, even if the last change lies in the future."""
    original = changes.close_retired

    def close(layout: Layout, now: float) -> Layout:
        return replace(
            original(replace(layout, last_updated=0.0), now), last_updated=layout.last_updated
        )

    patch.setattr(changes, "close_retired", close)


def gap_not_covered(patch: Patch) -> None:
    """Wait for a layout that covers the event instead of lowering the mark."""

    def load(self: EventRouter, _: Sequence[str], series: str) -> Snapshot:
        return self._layouts.reload(series)

    patch.setattr(EventRouter, "_load_to_cover", load)


def clocks_never_compared(patch: Patch) -> None:
    """Take what DynamoDB's date says of a clock for right."""

    original = read_clocks

    def read(response: Mapping[str, Any], sent_at: float, received_at: float) -> ClockReading:
        return original(response, sent_at, received_at)._replace(offset=0.0)

    patch.setattr(store, "read_clocks", read)


def index_routed_by_table_count(patch: Patch) -> None:
    """Choose the index shard by the table's count."""
    original = batches.build_item

    def build(event: PreparedEvent, epoch: Epoch, shard: int) -> Item:
        return original(event, replace(epoch, index_shards=epoch.shards), shard)

    patch.setattr(routing, "build_item", build)


MUTATIONS: Final[dict[str, Callable[[Patch], None]]] = {
    mutation.__name__: mutation
    for mutation in (
        condition_on_count,
        whole_item_rewritten,
        newest_mark_lowered,
        monotonic_ttl,
        upper_end_recomputed,
        closed_by_whoever_retires,
        loser_keeps_its_count,
        fold_keeps_newer_count,
        cached_layout_on_strong_read,
        written_before_lowered,
        closed_by_any_clock,
        closed_by_the_clock_alone,
        gap_not_covered,
        clocks_never_compared,
        index_routed_by_table_count,
    )
}
