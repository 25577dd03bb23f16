"""What reads cost: DynamoDB's units of reading, the budget of a read, and its actual cost."""

import math
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from spillway.errors import InvalidInputError
from spillway.runtime import Runtime

__all__ = [
    "MAX_PAGE_ITEMS",
    "PAGE_BYTES",
    "UNIT_BYTES",
    "ReadBudget",
    "ReadCost",
    "read_units",
    "units_per_started_unit",
]

UNIT_BYTES: Final = 4_096  # of items read, for which a Query pays one unit
PAGE_BYTES: Final = 1_000_000  # about what one Query reads at most
MAX_PAGE_ITEMS: Final = 10_000  # more than a page holds


def units_per_started_unit(*, consistent: bool) -> float:
    """Return the read units that each started `UNIT_BYTES` of a Query cost."""
    return 1.0 if consistent else 0.5


def read_units(items_bytes: float, *, consistent: bool) -> float:
    """Return the read units that a Query of about so many bytes is expected to cost.

    Each started 4 KB costs half a unit, 1 if consistent. The last 4 KB are taken to be half filled.
    """
    units = items_bytes / UNIT_BYTES
    started = math.ceil(units) if units <= 1 else units + 0.5
    return max(1.0, started) * units_per_started_unit(consistent=consistent)


@dataclass(frozen=True, slots=True)
class ReadBudget:
    """Bounds of one read. Times are seconds of `Runtime.monotonic`.

    Attributes:
        deadline: requests are tried again until then.
        soft_deadline: no further round of requests begins after then.
        read_units: read units that the read may cost; None for any. A round may exceed them if its
            items are larger than those seen before.
    """

    deadline: float
    soft_deadline: float
    read_units: float | None = None

    @classmethod
    def lasting(
        cls, timeout: float, runtime: Runtime, read_units: float | None = None
    ) -> "ReadBudget":
        """Return a budget that ends `timeout` seconds from now.

        New rounds begin in its first half only. The other half is for retries of their requests.

        Raises:
            InvalidInputError: `read_units` is not above 0.
        """
        if read_units is not None and not read_units > 0:
            raise InvalidInputError("invalid_query", "max_rcu", "must be greater than 0")
        now = runtime.monotonic()
        return cls(now + timeout, now + timeout / 2, read_units)


class ReadCost:
    """What one read has cost. Thread-safe.

    Attributes:
        requests: answered queries and batch reads of events, without the layout's own GetItem.
        read_units: read capacity units that DynamoDB reported for them. A cache's answers cost 0.
        items: items in the answers, including copies and expired events.
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
        with self._lock:
            self.requests += 1
            self.read_units += units
            self.items += len(response.get("Items", ()))

    def begin_round(self) -> None:
        """Count a round."""
        with self._lock:
            self.rounds += 1
