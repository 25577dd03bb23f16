"""Layouts kept in the process: snapshots for writers, and stale layouts for reads that may lag."""

import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import Final

from spillway.dynamodb.port import Call, StorageError
from spillway.keys import LAYOUT_KEY
from spillway.layouts.model import Layout, Snapshot
from spillway.layouts.repository import decode_stored

__all__ = ["MAX_WEIGHT", "LayoutCache", "StaleLayouts"]


_MAX_SERIES: Final = 10_000
MAX_WEIGHT: Final = 100_000  # about 30 MB


class LayoutCache:
    """Snapshots by series, the least recently used given up first; thread-safe, no requests.

    A series that is not here is not known to be new: a cached miss is never proof of absence.

    Args:
        ttl: seconds for which a snapshot is fresh.
        now: wall clock, epoch seconds.
        max_series: most series whose snapshots are kept.
        max_weight: most that all snapshots weigh together; the latest is kept whatever it weighs.
            Each epoch, decision and entry of the history weighs one, a few hundred bytes, and so
            does the rest of a layout.
    """

    def __init__(
        self,
        ttl: float,
        now: Callable[[], float],
        max_series: int = _MAX_SERIES,
        max_weight: int = MAX_WEIGHT,
    ) -> None:
        self._ttl = ttl
        self._now = now
        self._max_series = max_series
        self._max_weight = max_weight
        self._weight = 0
        self._snapshots: OrderedDict[str, Snapshot] = OrderedDict()
        self._lock = threading.Lock()

    def fresh(self, series: str) -> Snapshot | None:
        """Return the snapshot where it is younger than the time to live, by the wall clock."""
        found = self.latest(series)
        if found is None or not 0 <= self._now() - found.loaded_at < self._ttl:
            return None
        return found

    def latest(self, series: str) -> Snapshot | None:
        """Return the snapshot however old it is: good for a guess, not for a write."""
        with self._lock:
            found = self._snapshots.get(series)
            if found is not None:
                self._snapshots.move_to_end(series)
            return found

    def keep(self, snapshot: Snapshot) -> None:
        """Keep a snapshot, unless a later version is here and still fresh.

        Answers may arrive out of order.
        """
        series = snapshot.layout.series
        known = self.fresh(series)
        if known is not None and known.layout.version > snapshot.layout.version:
            return
        with self._lock:
            self._drop(series)
            self._snapshots[series] = snapshot
            self._weight += _weight(snapshot)
            while self._is_full():
                self._drop(next(iter(self._snapshots)))

    def _is_full(self) -> bool:
        count = len(self._snapshots)
        return count > self._max_series or (count > 1 and self._weight > self._max_weight)

    def _drop(self, series: str) -> None:
        dropped = self._snapshots.pop(series, None)
        if dropped is not None:
            self._weight -= _weight(dropped)


def _weight(snapshot: Snapshot) -> int:
    layout = snapshot.layout
    return 1 + len(layout.epochs) + len(layout.history) + len(layout.decisions)


class StaleLayouts:
    """Layouts by way of a cache such as DAX, at most `ttl` seconds and that cache's own TTL old.

    Thread-safe.

    Nobody knows when such a layout was in force, so none may reach a writer: this class gives out
    no snapshots.

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

    def cached_layout(self, series: str) -> Layout | None:
        """Return the layout that was seen last, however old: good for a guess. No request."""
        snapshot = self._cache.latest(series)
        return None if snapshot is None else snapshot.layout

    def read(self, series: str) -> Layout | None:
        """Return a layout of the past; None says nothing about whether the series has one.

        Costs at most one eventually consistent GetItem (0.5 RCU up to 4 KB where the cache has no
        copy).
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
