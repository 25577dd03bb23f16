"""Where writers and readers get layouts from.

The process cache while a snapshot is young, else the layout table.
"""

from contextlib import suppress
from typing import Final

from spillway.dynamodb.port import Call, StorageError
from spillway.layouts.cache import LayoutCache, StaleLayouts
from spillway.layouts.model import GrowthStop, Layout, Snapshot
from spillway.layouts.repository import LayoutChange, LayoutRepository
from spillway.layouts.transitions import (
    BY_HAND,
    ChangeReason,
    begin_epoch,
    extend_low,
    record_decision,
    record_remark,
)
from spillway.runtime import Runtime
from spillway.settings import Settings
from spillway.timestamps import format_epoch

__all__ = ["LayoutSource"]

_CLOSE_AFTER_SECONDS: Final = (
    5.0  # seconds in which whoever begins an epoch also closes the one before
)


class LayoutSource:
    """Layouts by series.

    Thread-safe; every method but `cached_layout` may send requests and raise StorageError.

    `stale_layouts` may serve reads that may lag by minutes; nothing else asks it.
    """

    def __init__(
        self,
        call: Call,
        table: str,
        settings: Settings,
        runtime: Runtime,
        *,
        stale_layouts: StaleLayouts | None = None,
    ) -> None:
        self._store = LayoutRepository(call, table, settings, runtime.now)
        self._cache = LayoutCache(settings.layout_ttl, runtime.now)
        self._stale_layouts = stale_layouts
        self._settings = settings
        self._now = runtime.now

    def cached_layout(self, series: str) -> Layout | None:
        """Return the layout that was seen last, however old: good for a guess. No request."""
        snapshot = self._cache.latest(series)
        seen = None if snapshot is None else snapshot.layout
        return (
            seen
            if self._stale_layouts is None
            else _newer(seen, self._stale_layouts.cached_layout(series))
        )

    def load_for_write(self, series: str) -> Snapshot:
        """Return a snapshot young enough to write by; creates the layout of a new series.

        ClockSkewError where this process's clock is too far off to write by.
        """
        snapshot = self._cache.fresh(series)
        if snapshot is None or abs(snapshot.clock_offset) > self._settings.clock_error:
            return self.reload(series)  # the clock may have been set right since
        return snapshot

    def reload(self, series: str) -> Snapshot:
        """Return a snapshot to write by, read strongly; creates the layout of a new series.

        Closes what its author left open, and lets an epoch begin now that begins in the future,
        since its author's clock was fast. So only writers call it: where the endpoint tells no
        date, their clock decides. ClockSkewError as for `load_for_write`.
        """
        snapshot = self._store.read_or_create(series)
        since_change = abs(snapshot.loaded_at - snapshot.layout.last_updated)  # or a fast clock's
        if not snapshot.layout.has_closed_retired and since_change > _CLOSE_AFTER_SECONDS:
            snapshot = self._store.close_retired(series, by_own_clock=True)
        latest_start = snapshot.loaded_at + 2 * self._settings.clock_error
        if snapshot.layout.current.low > format_epoch(latest_start):
            start = format_epoch(snapshot.loaded_at - self._settings.slack)
            return self.extend_low(series, snapshot.layout.current.id, start)
        return self._remember(snapshot)

    def read_snapshot(self, series: str) -> Snapshot | None:
        """Return a snapshot by a strongly consistent read, None where the series has no layout."""
        snapshot = self._store.read(series)
        return None if snapshot is None else self._remember(snapshot)

    def read(self, series: str) -> Layout | None:
        """Return the layout by a strongly consistent read, None where the series has none."""
        snapshot = self.read_snapshot(series)
        return None if snapshot is None else snapshot.layout

    def read_eventually(self, series: str) -> Layout | None:
        """Return a layout that lags by at most `Settings.layout_ttl`.

        A series that is not cached is read strongly.
        """
        snapshot = self._cache.fresh(series)
        return self.read(series) if snapshot is None else snapshot.layout

    def read_cached(self, series: str) -> Layout | None:
        """Return a layout that may lag by minutes.

        A series of which no cache has one is read strongly.

        It lags by at most `Settings.layout_ttl`, the TTL of the cache that `stale_layouts` asks
        (DAX: 5 min by default), and what DynamoDB's eventually consistent reads lag.
        """
        if self._stale_layouts is None or self._cache.fresh(series) is not None:
            return self.read_eventually(series)
        found = self._stale_layouts.read(series)
        return self.read(series) if found is None else _newer(found, self.cached_layout(series))

    def extend_low(self, series: str, epoch_id: int, time: str) -> Snapshot:
        """Lower the mark of the epoch in force to `time`, if it is still the one named.

        Return what is in force.
        """

        def change(layout: Layout, now: float) -> Layout:
            return extend_low(layout, epoch_id, time, now)

        return self._remember(self._store.change(series, change))

    def set_counts(self, series: str, *, shards: int | None, index_shards: int | None) -> Snapshot:
        """Begin an epoch with these counts, up or down; None keeps a count.

        No change where they are in force.

        Two changes where there is one: the succession, and the close of the epoch that it retires.
        The second is left to writers where the endpoint tells no date. ClockSkewError where this
        process's clock is too far off.
        """
        self._remember(self._store.change(series, self._succession(shards, index_shards, BY_HAND)))
        return self._remember(self._store.close_retired(series))

    def try_set_counts(
        self,
        snapshot: Snapshot,
        reason: ChangeReason,
        *,
        shards: int | None,
        index_shards: int | None,
    ) -> Snapshot | None:
        """Begin an epoch with these counts unless the layout has changed since the snapshot.

        None where it has.
        """
        succession = self._succession(shards, index_shards, reason)
        changed = self._store.try_change(snapshot, succession)
        if changed is None:
            return None
        with suppress(StorageError):  # it has changed: a writer that loads it later closes it
            changed = self._store.close_retired(snapshot.layout.series)
        return self._remember(changed)

    def _succession(
        self, shards: int | None, index_shards: int | None, reason: ChangeReason
    ) -> LayoutChange:
        def change(layout: Layout, now: float) -> Layout:
            after = begin_epoch(
                layout, self._settings, now, shards=shards, index_shards=index_shards
            )
            return record_decision(layout, after, reason)

        return change

    def record_remark(self, series: str, reason: ChangeReason) -> None:
        """Note a decision about a series that leaves its layout as it is."""
        self._store.change(series, lambda layout, now: record_remark(layout, now, reason))

    def record_stop(self, series: str, stop: GrowthStop) -> None:
        """Note on the layout, for all writers and for people, that growth does not help."""
        self._store.record_stop(series, stop)

    def _remember(self, snapshot: Snapshot) -> Snapshot:
        self._cache.keep(snapshot)
        return snapshot


def _newer(one: Layout | None, other: Layout | None) -> Layout | None:
    """Return the later version of a layout."""
    if one is None or other is None:
        return one or other
    return max(one, other, key=lambda layout: layout.version)
