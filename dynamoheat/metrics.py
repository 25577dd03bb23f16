"""CloudWatch metrics and Contributor Insights of a table or an index, by metric period."""

from collections import Counter, deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from math import floor
from typing import Final

from dynamoheat.reasons import Throttle, ThrottleReason

__all__ = ["Contributor", "KeyInsights", "Meter", "Rule", "Slot"]

_KEPT_SLOTS: Final = 1440
_KEPT_INSIGHT_SLOTS: Final = 180

Keys = tuple[str, ...]  # partition key, or partition and sort key
Counts = dict[Keys, float]


@dataclass(slots=True)
class Slot:
    """The figures of one metric period that starts at `start`.

    Counts are of items (SampleCount).
    """

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
    """The current period, a day of closed periods, and totals since the start."""

    def __init__(self, period: float, now: float) -> None:
        self.period = period
        self.closed: deque[Slot] = deque(maxlen=_KEPT_SLOTS)
        self.total = Slot(now)
        self.slot = Slot(floor(now / period) * period)
        self.peak_write = 0.0  # of closed slots, units a second
        self.peak_read = 0.0

    def advance(self, now: float) -> None:
        """Close the current period if it is over. Periods without traffic are left out."""
        if now < self.slot.start + self.period:
            return
        self._close()
        self.slot = Slot(floor(now / self.period) * self.period)

    def count_writes(self, units: float, items: int) -> None:
        """Count consumed write units of `items` items."""
        self.slot.consumed_write += units
        self.slot.writes += items
        self.total.consumed_write += units
        self.total.writes += items

    def count_reads(self, units: float, items: int) -> None:
        """Count consumed read units of `items` items or pages."""
        self.slot.consumed_read += units
        self.slot.reads += items
        self.total.consumed_read += units
        self.total.reads += items

    def count_throttled(self, throttle: Throttle, units: float, items: int = 1) -> None:
        """Count throttled items, and the units that they requested in all."""
        for slot in (self.slot, self.total):
            slot.throttled[throttle.reason] += items
            if throttle.is_write:
                slot.refused_write += units
            else:
                slot.refused_read += units

    def count_rejected_request(self, operation: str) -> None:
        """Count a request that was throttled as a whole."""
        self.slot.requests[operation] += 1
        self.total.requests[operation] += 1

    def _close(self) -> None:
        slot = self.slot
        self.peak_write = max(self.peak_write, slot.consumed_write / self.period)
        self.peak_read = max(self.peak_read, slot.consumed_read / self.period)
        if slot.writes or slot.reads or slot.throttled or slot.requests:
            self.closed.append(slot)


class Rule:
    """Names of the four rules: partition keys or whole keys, consumed or throttled."""

    CONSUMED: Final = "PKC"
    THROTTLED: Final = "PKT"
    CONSUMED_ITEMS: Final = "SKC"
    THROTTLED_ITEMS: Final = "SKT"


@dataclass(frozen=True, slots=True)
class Contributor:
    """A key and its count: throttled items, or consumed units (3 a write unit, 1 a read unit)."""

    keys: Keys
    total: float
    datapoints: tuple[tuple[float, float], ...]  # start of the period, count


class KeyInsights:
    """Counts by key.

    Throttled keys are always counted; accessed keys if `counts_accessed_keys` is set.

    As in DynamoDB, writes that an index's buffer refused are not counted. Counting accessed keys
    costs about half a microsecond an item.
    """

    def __init__(self, period: float, max_keys: int, now: float) -> None:
        self.counts_accessed_keys = False
        self._period = period
        self._max_keys = max_keys
        self._start = floor(now / period) * period
        self._counts: dict[str, Counts] = {}
        self._closed: deque[tuple[float, dict[str, Counts]]] = deque(maxlen=_KEPT_INSIGHT_SLOTS)

    def count_throttled(self, partition_key: str, sort_key: str | None, now: float) -> None:
        """Count a throttled item."""
        self._advance(now)
        self._count(Rule.THROTTLED, (partition_key,), 1)
        if sort_key is not None:
            self._count(Rule.THROTTLED_ITEMS, (partition_key, sort_key), 1)

    def count_consumed(
        self, partition_key: str, sort_key: str | None, units: float, now: float
    ) -> None:
        """Count the units that a key consumed, weighted as ConsumedThroughputUnits."""
        self._advance(now)
        self._count(Rule.CONSUMED, (partition_key,), units)
        if sort_key is not None:
            self._count(Rule.CONSUMED_ITEMS, (partition_key, sort_key), units)

    def report(self, rule: str, start: float, end: float, max_count: int = 10) -> list[Contributor]:
        """Return the top contributors of the periods that start in [start, end), highest first."""
        slots = [(at, counts.get(rule)) for at, counts in self._slots() if start <= at < end]
        totals: Counts = {}
        for _, counts in slots:
            for keys, count in (counts or {}).items():
                totals[keys] = totals.get(keys, 0.0) + count
        greatest = sorted(totals.items(), key=lambda entry: (-entry[1], entry[0]))[:max_count]
        return [
            Contributor(keys, total, tuple((at, c[keys]) for at, c in slots if c and keys in c))
            for keys, total in greatest
        ]

    def _slots(self) -> Iterable[tuple[float, dict[str, Counts]]]:
        yield from self._closed
        yield self._start, self._counts

    def _advance(self, now: float) -> None:
        if now < self._start + self._period:
            return
        if self._counts:
            self._closed.append((self._start, self._counts))
        self._start = floor(now / self._period) * self._period
        self._counts = {}

    def _count(self, rule: str, keys: Keys, units: float) -> None:
        counts = self._counts.setdefault(rule, {})
        if keys in counts or len(counts) < self._max_keys:
            counts[keys] = counts.get(keys, 0.0) + units
