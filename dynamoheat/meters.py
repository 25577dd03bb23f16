"""What a table or an index consumed and refused, by metric period: the `AWS/DynamoDB` figures."""

from collections import Counter, deque
from dataclasses import dataclass, field
from math import floor
from typing import Final

from dynamoheat.reasons import Throttle, ThrottleReason

__all__ = ["Meter", "Slot"]

_KEPT_SLOTS: Final = 1440


@dataclass(slots=True)
class Slot:
    """One metric period that starts at `start`. Requests count items, as the metrics' SampleCount."""

    start: float
    consumed_write: float = 0.0
    consumed_read: float = 0.0
    writes: int = 0
    reads: int = 0
    refused_write: float = 0.0
    refused_read: float = 0.0
    throttled: Counter[ThrottleReason] = field(default_factory=Counter)  # events, one an item
    requests: Counter[str] = field(default_factory=Counter)  # ThrottledRequests by operation

    @property
    def write_throttle_events(self) -> int:
        """The metric WriteThrottleEvents: all write reasons together."""
        return sum(count for reason, count in self.throttled.items() if "Write" in reason)

    @property
    def read_throttle_events(self) -> int:
        """The metric ReadThrottleEvents."""
        return sum(count for reason, count in self.throttled.items() if "Read" in reason)


class Meter:
    """The current slot and the closed ones (a day of them at most); totals since the start."""

    def __init__(self, period: float, now: float) -> None:
        self.period = period
        self.closed: deque[Slot] = deque(maxlen=_KEPT_SLOTS)
        self.total = Slot(now)
        self.slot = Slot(floor(now / period) * period)
        self.peak_write = 0.0  # of closed slots, units a second
        self.peak_read = 0.0

    def advance(self, now: float) -> None:
        """Close the current slot if it is over. Slots without any traffic are left out."""
        if now < self.slot.start + self.period:
            return
        self._close()
        self.slot = Slot(floor(now / self.period) * self.period)

    def consume_write(self, units: float, items: int) -> None:
        """Count consumed write units of `items` items."""
        self.slot.consumed_write += units
        self.slot.writes += items
        self.total.consumed_write += units
        self.total.writes += items

    def consume_read(self, units: float, items: int) -> None:
        """Count consumed read units of `items` items or pages."""
        self.slot.consumed_read += units
        self.slot.reads += items
        self.total.consumed_read += units
        self.total.reads += items

    def refuse(self, throttle: Throttle, units: float, items: int = 1) -> None:
        """Count items that were throttled on this resource, and the units they wanted in all."""
        for slot in (self.slot, self.total):
            slot.throttled[throttle.reason] += items
            if throttle.write:
                slot.refused_write += units
            else:
                slot.refused_read += units

    def refuse_request(self, operation: str) -> None:
        """Count a request of which nothing got through."""
        self.slot.requests[operation] += 1
        self.total.requests[operation] += 1

    def _close(self) -> None:
        slot = self.slot
        self.peak_write = max(self.peak_write, slot.consumed_write / self.period)
        self.peak_read = max(self.peak_read, slot.consumed_read / self.period)
        if slot.writes or slot.reads or slot.throttled or slot.requests:
            self.closed.append(slot)
