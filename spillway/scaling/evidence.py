"""Evidence: what a process's own throttled writes tell about the cause. Costs no requests."""

import math
import threading
from collections.abc import Callable
from typing import Final

from spillway.memo import Memo

__all__ = ["Crowding", "ThrottledRates"]

_SPAN: Final = 1.0  # seconds that a rate is averaged over
_MAX_PAUSE: Final = 5.0  # seconds without a throttled write after which crowding is over
_MIN_DURATION: Final = 10.0  # seconds: a hot neighbour is relieved long before


class ThrottledRates:
    """Units a second of each series that key ranges throttled in this process. Thread-safe.

    Exponentially weighted sums over about a second, so that one request that comes at once counts in full.
    """

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self._sums: Memo[tuple[float, float]] = Memo()  # the sum, and when it was that

    def __len__(self) -> int:
        return len(self._sums)

    def add(self, series: str, units: float) -> float:
        """Count units that have just throttled for the first time; return the series' rate with them."""
        now = self._monotonic()

        def add_decayed(before: tuple[float, float] | None) -> tuple[float, float]:
            total, at = before or (0.0, now)
            return total * math.exp(-max(0.0, now - at) / _SPAN) + units, now

        return self._sums.update(series, add_decayed)[0] / _SPAN


class Crowding:
    """Tells when series that write too little to be the cause go on throttling. Thread-safe.

    Where a hot neighbour is the cause, that ends once the neighbour has grown. Where it lasts, the table is short of
    partitions, or one of them holds too many busy keys.
    """

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self._since = self._last = -math.inf
        self._lock = threading.Lock()

    def is_lasting(self) -> bool:
        """Count one such series that throttles now; return whether that has gone on for ten seconds."""
        with self._lock:
            now = self._monotonic()
            if now - self._last > _MAX_PAUSE:
                self._since = now
            self._last = now
            return now - self._since >= _MIN_DURATION
