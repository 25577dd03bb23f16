"""Layout snapshots kept in the process for a few seconds."""

import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import Final

from spillway.layouts.model import Snapshot

__all__ = ["MAX_WEIGHT", "LayoutCache"]

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
        """Keep a snapshot, unless a later version is here and still fresh: answers may arrive out of order."""
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
