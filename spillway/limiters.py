"""Limiters: how often a process does something that costs requests or lines of a log."""

import threading
from collections.abc import Callable

from spillway.memo import Memo

__all__ = ["IntervalLimiter", "RateLimiter"]


class IntervalLimiter:
    """Lets each key pass once in so many seconds. Thread-safe, bounded memory.

    A key that was forgotten for want of room may pass early.
    """

    def __init__(self, seconds: float, monotonic: Callable[[], float]) -> None:
        self._seconds = seconds
        self._monotonic = monotonic
        self._passed: Memo[float] = Memo()

    def __len__(self) -> int:
        return len(self._passed)

    def is_due(self, key: str) -> bool:
        """Return whether a key may pass now."""
        last = self._passed.get(key)
        return last is None or self._monotonic() - last >= self._seconds

    def may_pass(self, key: str) -> bool:
        """Return whether a key may pass now; it has passed then."""
        now = self._monotonic()
        may_pass = False

        def pass_if_due(last: float | None) -> float:
            nonlocal may_pass
            if last is not None and now - last < self._seconds:
                return last
            may_pass = True
            return now

        self._passed.update(key, pass_if_due)
        return may_pass


class RateLimiter:
    """A token bucket: `burst` at once, and `per_second` in the long run. Thread-safe."""

    def __init__(self, per_second: float, burst: float, monotonic: Callable[[], float]) -> None:
        self._per_second = per_second
        self._burst = burst
        self._monotonic = monotonic
        self._tokens = burst
        self._filled_at = monotonic()
        self._lock = threading.Lock()

    def may_pass(self) -> bool:
        """Return whether one more may pass now; it has passed then."""
        with self._lock:
            now = self._monotonic()
            refill = (now - self._filled_at) * self._per_second
            self._tokens = min(self._burst, self._tokens + refill)
            self._filled_at = now
            if self._tokens < 1:
                return False
            self._tokens -= 1
            return True
