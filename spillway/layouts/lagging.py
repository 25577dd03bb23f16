"""Layouts for reads that may lag: kept apart from those that writers go by."""

from collections.abc import Callable

from spillway.keys import LAYOUT_KEY
from spillway.layouts.cache import LayoutCache
from spillway.layouts.model import Layout, Snapshot
from spillway.layouts.store import decode_stored
from spillway.storage.port import Call, StorageError

__all__ = ["LaggingLayouts"]


class LaggingLayouts:
    """Layouts by way of a cache such as DAX, at most `ttl` seconds and that cache's own TTL old. Thread-safe.

    Nobody knows when such a layout was in force, so none may reach a writer: this class gives out no snapshots.

    Args:
        call: answers GetItem from copies that may be old, "no such item" included.
        table: name of the layout table.
        ttl: seconds for which a layout is kept in the process.
        now: wall clock, epoch seconds.
    """

    def __init__(self, call: Call, table: str, ttl: float, now: Callable[[], float]) -> None:
        self._call = call
        self._table = table
        self._now = now
        self._cache = LayoutCache(ttl, now)

    def known(self, series: str) -> Layout | None:
        """Return the layout that was seen last, however old: good for a guess. No request."""
        snapshot = self._cache.latest(series)
        return None if snapshot is None else snapshot.layout

    def read(self, series: str) -> Layout | None:
        """Return a layout of the past; None says nothing about whether the series has one.

        Costs at most one eventually consistent GetItem (0.5 RCU up to 4 KB where the cache has no copy).
        """
        kept = self._cache.fresh(series)
        if kept is not None:
            return kept.layout
        asked_at = self._now()
        layout = self._fetch(series)
        if layout is not None:
            self._cache.keep(Snapshot(layout, asked_at))
        return layout

    def _fetch(self, series: str) -> Layout | None:
        request = {"TableName": self._table, "Key": {LAYOUT_KEY: {"S": series}}}
        item = self._call("GetItem", request).get("Item")
        if item is None:
            return None
        try:
            return decode_stored(item)
        except StorageError:  # the table itself will tell whether its item is damaged
            return None
