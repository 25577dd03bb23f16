"""What was measured in one stretch of time, and the statistics of it."""

from collections.abc import Iterable
from typing import Final, Self

__all__ = ["STATISTICS", "Samples", "is_percentile"]

STATISTICS: Final = ("SampleCount", "Sum", "Average", "Minimum", "Maximum")

_MAX_VALUES: Final = 1000


class Samples:
    """Counted values: how many, their sum, their bounds, and as far as known the values themselves.

    Beyond a thousand different values they are kept to four digits. A statistic set hides its values
    unless they are all the same; then, and with values below zero, there are no percentiles.
    """

    __slots__ = ("count", "greatest", "least", "total", "values")

    def __init__(self) -> None:
        self.count = 0.0
        self.total = 0.0
        self.least = float("inf")
        self.greatest = float("-inf")
        self.values: dict[float, float] | None = {}

    @classmethod
    def of(cls, *values: float) -> Self:
        """Return samples of some values."""
        made = cls()
        for value in values:
            made.add(value)
        return made

    @classmethod
    def of_set(cls, count: float, total: float, least: float, greatest: float) -> Self:
        """Return samples of a statistic set."""
        made = cls()
        made.add_set(count, total, least, greatest)
        return made

    def add(self, value: float, count: float = 1.0) -> None:
        """Count a value, or `count` times the same."""
        self._widen(count, value * count, value, value)
        if self.values is not None:
            key = value if len(self.values) < _MAX_VALUES else float(f"{value:.3e}")
            self.values[key] = self.values.get(key, 0.0) + count

    def add_set(self, count: float, total: float, least: float, greatest: float) -> None:
        """Count a statistic set."""
        if count <= 0:
            return
        if count == 1 or (least == greatest and total == least * count):
            self.add(least, count)
        else:
            self._widen(count, total, least, greatest)
            self.values = None

    def merge(self, others: Iterable["Samples"]) -> Self:
        """Count what others counted."""
        for other in others:
            if other.values is None:
                self._widen(other.count, other.total, other.least, other.greatest)
                self.values = None
            else:
                for value, count in other.values.items():
                    self.add(value, count)
        return self

    def statistic(self, name: str) -> float | None:
        """Return a statistic: one of `STATISTICS`, or a percentile such as `p99.9`.

        None without samples, for a percentile that CloudWatch would not have, and for anything else.
        """
        if self.count <= 0:
            return None
        if is_percentile(name):
            return self._percentile(float(name[1:]) / 100)
        known = {
            "SampleCount": self.count,
            "Sum": self.total,
            "Average": self.total / self.count,
            "Minimum": self.least,
            "Maximum": self.greatest,
        }
        return known.get(name)

    def _widen(self, count: float, total: float, least: float, greatest: float) -> None:
        self.count += count
        self.total += total
        self.least = min(self.least, least)
        self.greatest = max(self.greatest, greatest)

    def _percentile(self, share: float) -> float | None:
        """Interpolate between the two nearest ranks."""
        if self.values is None or self.least < 0:
            return None
        rank = share * max(self.count - 1, 0.0)
        low, high = self._at(rank // 1), self._at(rank // 1 + 1)
        return low + (high - low) * (rank % 1)

    def _at(self, rank: float) -> float:
        seen = 0.0
        for value in sorted(self.values or ()):
            seen += (self.values or {})[value]
            if rank < seen:
                return value
        return self.greatest


def is_percentile(name: str) -> bool:
    """Say whether a statistic's name is a percentile, p0 to p100."""
    digits = name[1:]
    return name[:1] == "p" and digits.replace(".", "", 1).isdecimal() and float(digits) <= 100
