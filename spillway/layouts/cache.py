"""Layout snapshots kept in the process for a few seconds."""

import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import Final

from spillway.layouts.model import Snapshot

__all__ = ["LayoutCache"]

_MOST_SERIES: Final = 10_000


class LayoutCache:
    """Snapshots by series, the least recently used given up first; thread-safe, no requests.

    A series that is not here is not known to be new: a cached miss is never proof of absence.
    """

    def __init__(
        self, ttl: float, now: Callable[[], float], most_series: int = _MOST_SERIES
    ) -> None:
        self._ttl = ttl
        self._now = now
        self._most = most_series
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
        """Keep a snapshot, unless a later version is here and still fresh: answers may arrive out of order."""
        series = snapshot.layout.series
        known = self.fresh(series)
        if known is not None and known.layout.version > snapshot.layout.version:
            return
        with self._lock:
            self._snapshots[series] = snapshot
            self._snapshots.move_to_end(series)
            if len(self._snapshots) > self._most:
                self._snapshots.popitem(last=False)
