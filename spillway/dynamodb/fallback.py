"""One port in front of another.

A faster way that may fail at any time, and the one that answers then.
"""

import threading
from collections.abc import Callable, Mapping
from typing import Any

from spillway.dynamodb.port import Call, StorageError

__all__ = ["Breaker", "Fallback"]


class Breaker:
    """Says when to leave alone what keeps failing.

    After `max_failures` in a row, for `pause` seconds.

    Then one attempt is let through, and its outcome decides: success ends the pause, failure begins
    another. Thread-safe; `clock` is monotonic, in seconds.
    """

    def __init__(
        self, clock: Callable[[], float], *, max_failures: int = 3, pause: float = 30
    ) -> None:
        self._clock = clock
        self._max = max_failures
        self._pause = pause
        self._in_a_row = 0
        self._again_at = 0.0
        self._lock = threading.Lock()

    def allows(self) -> bool:
        """Tell whether to make an attempt; report its outcome."""
        with self._lock:
            if self._in_a_row < self._max:
                return True
            if self._clock() < self._again_at:
                return False
            self._again_at = self._clock() + self._pause  # until this one attempt has an outcome
            return True

    def succeeded(self) -> None:
        """Take note of an attempt that worked."""
        with self._lock:
            self._in_a_row = 0

    def failed(self) -> None:
        """Take note of an attempt that failed."""
        with self._lock:
            self._in_a_row += 1
            if self._in_a_row >= self._max:
                self._again_at = self._clock() + self._pause


class Fallback:
    """A port that asks `first`, and `second` wherever that fails or is left alone; thread-safe.

    For requests that may be carried out twice, such as reads. What `second` raises is raised.

    Attributes:
        failures: how often `first` failed; requests that spared it are not counted.
    """

    def __init__(self, first: Call, second: Call, breaker: Breaker) -> None:
        self._first = first
        self._second = second
        self._breaker = breaker
        self._lock = threading.Lock()
        self.failures = 0

    def __call__(self, operation: str, request: Mapping[str, Any], /) -> dict[str, Any]:
        """Send a request; at most one attempt each way."""
        if self._breaker.allows():
            try:
                response = self._first(operation, request)
            except (StorageError, OSError):
                self._breaker.failed()
                with self._lock:
                    self.failures += 1
            else:
                self._breaker.succeeded()
                return response
        return self._second(operation, request)
