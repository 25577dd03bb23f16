"""What a read has spent: requests, read units, items, rounds."""

import threading
from collections.abc import Mapping
from typing import Any

__all__ = ["Spent"]


class Spent:
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
