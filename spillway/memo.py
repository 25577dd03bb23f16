"""A bounded memory of what a process knows of its series."""

import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import Final, Generic, TypeVar

__all__ = ["Memo"]

V = TypeVar("V")

_MAX_ENTRIES: Final = 10_000


class Memo(Generic[V]):
    """Values by key, the least recently used given up first. Thread-safe."""

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
        """Replace the value of a key by what `change` makes of it, atomically, and return that."""
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
