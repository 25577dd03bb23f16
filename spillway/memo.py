"""What a process remembers of many series, within a bound, and how often it acts on them."""

import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import Final, Generic, TypeVar

__all__ = ["IntervalLimiter", "Memo", "RateLimiter"]

V = TypeVar("V")

_MAX_ENTRIES: Final = 10_000


class Memo(Generic[V]):
    """Values by key, evicting the least recently used. Thread-safe."""

    def __init__(self, max_entries: int = _MAX_ENTRIES) -> None:
        self._max = max_entries
        self._values: OrderedDict[str, V] = OrderedDict()
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._values)

    def get(self, key: str) -> V | None:
        """Return the value of a key, None where there is none."""
        with self._lock:
            if key not in self._values:
                return None
            self._values.move_to_end(key)
            return self._values[key]

    def update(self, key: str, change: Callable[[V | None], V]) -> V:
        """Set the value of a key to `change(old value)`, atomically, and return it."""
        with self._lock:
            value = self._values[key] = change(self._values.get(key))
            self._values.move_to_end(key)
            if len(self._values) > self._max:
                self._values.popitem(last=False)
            return value

    def put(self, key: str, value: V) -> None:
        """Set the value of a key."""
        self.update(key, lambda _: value)

    def discard(self, key: str) -> None:
        """Forget a key."""
        with self._lock:
            self._values.pop(key, None)


class IntervalLimiter:
    """Lets each key pass once in so many seconds. Thread-safe, bounded memory.

    An evicted key may pass early.
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
