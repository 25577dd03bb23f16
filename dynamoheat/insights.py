"""Contributor KeyInsights: which keys were throttled and which accessed, by metric period."""

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from math import floor
from typing import Final

__all__ = ["Contributor", "KeyInsights", "Rule"]

_KEPT_SLOTS: Final = 180

Keys = tuple[str, ...]  # partition key, or partition and sort key
Counts = dict[Keys, float]


class Rule:
    """The four rules: partition keys or whole keys, consumed or throttled."""

    CONSUMED: Final = "PKC"
    THROTTLED: Final = "PKT"
    CONSUMED_ITEMS: Final = "SKC"
    THROTTLED_ITEMS: Final = "SKT"


@dataclass(frozen=True, slots=True)
class Contributor:
    """A key's count: throttled items, or consumed units (3 a write unit, 1 a read unit)."""

    keys: Keys
    total: float
    datapoints: tuple[tuple[float, float], ...]  # start of the period, count


class KeyInsights:
    """Counts by key. Throttled keys always (they are rare), accessed ones where `accessed` is set.

    Writes that an index held up are not counted, as in DynamoDB. Counting accessed keys costs about
    half a microsecond an item.
    """

    def __init__(self, period: float, most: int, now: float) -> None:
        self.accessed = False
        self._period = period
        self._max = most
        self._start = floor(now / period) * period
        self._counts: dict[str, Counts] = {}
        self._closed: deque[tuple[float, dict[str, Counts]]] = deque(maxlen=_KEPT_SLOTS)

    def throttled(self, partition_key: str, sort_key: str | None, now: float) -> None:
        """Count a throttled item."""
        self._advance(now)
        self._count(Rule.THROTTLED, (partition_key,), 1)
        if sort_key is not None:
            self._count(Rule.THROTTLED_ITEMS, (partition_key, sort_key), 1)

    def consumed(self, partition_key: str, sort_key: str | None, units: float, now: float) -> None:
        """Count the units that a key consumed, weighted as ConsumedThroughputUnits."""
        self._advance(now)
        self._count(Rule.CONSUMED, (partition_key,), units)
        if sort_key is not None:
            self._count(Rule.CONSUMED_ITEMS, (partition_key, sort_key), units)

    def report(self, rule: str, start: float, end: float, most: int = 10) -> list[Contributor]:
        """Return the greatest contributors of the periods that start in [start, end), greatest first."""
        slots = [(at, counts.get(rule)) for at, counts in self._slots() if start <= at < end]
        totals: Counts = {}
        for _, counts in slots:
            for keys, count in (counts or {}).items():
                totals[keys] = totals.get(keys, 0.0) + count
        greatest = sorted(totals.items(), key=lambda entry: (-entry[1], entry[0]))[:most]
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
        if keys in counts or len(counts) < self._max:
            counts[keys] = counts.get(keys, 0.0) + units
