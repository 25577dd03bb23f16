"""What a read may cost, and what it did cost."""

import threading
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from spillway.errors import InvalidInputError
from spillway.runtime import Runtime

__all__ = ["ReadBudget", "ReadCost"]


@dataclass(frozen=True, slots=True)
class ReadBudget:
    """Bounds of one read; times in seconds of `Runtime.monotonic`.

    Attributes:
        deadline: requests are tried again until here.
        patience: no further round of requests begins after this.
        read_units: read units it may spend; None does not bound them. Items larger than those seen before may take a
            round beyond it.
    """

    deadline: float
    patience: float
    read_units: float | None = None

    @classmethod
    def lasting(
        cls, timeout: float, runtime: Runtime, read_units: float | None = None
    ) -> "ReadBudget":
        """Return a budget that ends `timeout` seconds from now.

        New rounds begin in its first half only, so that their requests, which may need retries, have the other half.
        InvalidInputError where there are no units to spend.
        """
        if read_units is not None and not read_units > 0:
            raise InvalidInputError("invalid_query", "max_rcu", "must be greater than 0")
        began = runtime.monotonic()
        return cls(began + timeout, began + timeout / 2, read_units)


class ReadCost:
    """Counts of one read. Thread-safe.

    Attributes:
        requests: answered queries and batch reads of events; the layout's own GetItem is not among them.
        read_units: read capacity units that DynamoDB reported for them. What a cache answered costs none.
        items: items that the answers held, copies and expired events among them.
        rounds: times that the read waited for requests sent together.
    """

    __slots__ = ("_lock", "items", "read_units", "requests", "rounds")

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.requests = 0
        self.read_units = 0.0
        self.items = 0
        self.rounds = 0

    def count(self, response: Mapping[str, Any]) -> None:
        """Count an answer to a Query that asked for its consumed capacity."""
        units = float(response.get("ConsumedCapacity", {}).get("CapacityUnits", 0))
        self.add(units, len(response.get("Items", ())))

    def add(self, read_units: float, items: int) -> None:
        """Count one answered request."""
        with self._lock:
            self.requests += 1
            self.read_units += read_units
            self.items += items

    def begin_round(self) -> None:
        """Count a round."""
        with self._lock:
            self.rounds += 1
