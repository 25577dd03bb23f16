"""The metrics of the local cloud: samples by metric, unit and minute, and statistics of them.

**Metric time** is wall time multiplied by the time scale, in whole seconds. With a scale of 60, a
minute of metric time lasts one second on the wall. All that CloudWatch documents about periods then
holds unchanged. Only the edges of this package convert.
"""

from bisect import bisect_left, insort
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final, Self

__all__ = [
    "MINUTE",
    "STATISTICS",
    "Metric",
    "MetricStore",
    "MetricTime",
    "PeriodGrid",
    "Samples",
    "is_percentile",
]

MINUTE: Final = 60
"""The resolution of a standard metric, in seconds of metric time."""

STATISTICS: Final = ("SampleCount", "Sum", "Average", "Minimum", "Maximum")

_MAX_EXACT_VALUES: Final = 1_000
_MAX_STARTS: Final = 10_000  # of each metric: a week of minutes, three hours of seconds


@dataclass(frozen=True, slots=True)
class MetricTime:
    """Conversion between wall time (seconds since the epoch) and metric time."""

    scale: float = 1.0

    def seconds(self, wall: float) -> int:
        """Return the metric second that contains a moment."""
        return int(wall * self.scale + 1e-6)

    def wall(self, seconds: float) -> float:
        """Return the moment at which a metric second begins."""
        return seconds / self.scale


@dataclass(frozen=True, slots=True)
class Metric:
    """The identity of a metric. Another set of dimensions is another metric."""

    namespace: str
    name: str
    dimensions: frozenset[tuple[str, str]] = field(default=frozenset())


@dataclass(frozen=True, slots=True)
class PeriodGrid:
    """`count` consecutive periods of `period` seconds, from `start` on."""

    start: int
    period: int
    count: int

    @property
    def end(self) -> int:
        """The end of the last period."""
        return self.start + self.period * self.count

    @property
    def starts(self) -> range:
        """The beginning of each period."""
        return range(self.start, self.end, self.period)


class MetricStore:
    """Samples by metric, unit and minute (or second, where put at high resolution)."""

    def __init__(self) -> None:
        self._series: dict[Metric, _MetricSeries] = {}

    def put(
        self,
        metric: Metric,
        at: int,
        samples: "Samples",
        *,
        unit: str = "None",
        resolution: int = MINUTE,
    ) -> None:
        """Add samples taken at a second of metric time."""
        series = self._series.setdefault(metric, _MetricSeries())
        series.samples_at(at // resolution * resolution, unit).merge(samples)

    def metrics(self) -> Iterable[Metric]:
        """Return every metric that has samples, oldest first."""
        return list(self._series)

    def unit(self, metric: Metric) -> str:
        """Return the unit of a metric's newest samples, or the text `None` without samples."""
        series = self._series.get(metric)
        return "None" if series is None else next(iter(series.samples[series.starts[-1]]))

    def windows(
        self, metric: Metric, grid: PeriodGrid, unit: str | None = None
    ) -> "list[Samples | None]":
        """Return the samples of each period, None where there are none."""
        windows: list[Samples | None] = [None] * grid.count
        series = self._series.get(metric)
        if series is not None:
            for start, samples in series.between(grid.start, grid.end, unit):
                position = (start - grid.start) // grid.period
                windows[position] = (windows[position] or Samples()).merge(samples)
        return windows

    def values(
        self, metric: Metric, statistic: str, grid: PeriodGrid, unit: str | None = None
    ) -> list[float | None]:
        """Return a statistic of each period, None where there is none."""
        windows = self.windows(metric, grid, unit)
        return [None if samples is None else samples.statistic(statistic) for samples in windows]


class Samples:
    """A multiset of values: count, sum, bounds, and the values themselves as far as known.

    From a thousand distinct values on, further ones are kept to four digits. A statistic set hides
    its values unless they are all equal. Without values, or with negative ones, there are no
    percentiles.
    """

    __slots__ = ("count", "maximum", "minimum", "total", "values")

    def __init__(self) -> None:
        self.count = 0.0
        self.total = 0.0
        self.minimum = float("inf")
        self.maximum = float("-inf")
        self.values: dict[float, float] | None = {}  # value → how often

    @classmethod
    def of(cls, *values: float) -> Self:
        """Return samples of some values."""
        samples = cls()
        for value in values:
            samples.add(value)
        return samples

    @classmethod
    def of_set(cls, count: float, total: float, minimum: float, maximum: float) -> Self:
        """Return samples of a statistic set."""
        samples = cls()
        samples.add_set(count, total, minimum, maximum)
        return samples

    def add(self, value: float, count: float = 1.0) -> None:
        """Add a value `count` times."""
        self._widen(count, value * count, value, value)
        if self.values is not None:
            key = value if len(self.values) < _MAX_EXACT_VALUES else float(f"{value:.3e}")
            self.values[key] = self.values.get(key, 0.0) + count

    def add_set(self, count: float, total: float, minimum: float, maximum: float) -> None:
        """Add a statistic set."""
        if count <= 0:
            return
        if count == 1 or (minimum == maximum and total == minimum * count):
            self.add(minimum, count)
        else:
            self._widen(count, total, minimum, maximum)
            self.values = None

    def merge(self, other: "Samples") -> Self:
        """Add all samples of another instance."""
        if other.values is None:
            self._widen(other.count, other.total, other.minimum, other.maximum)
            self.values = None
        else:
            for value, count in other.values.items():
                self.add(value, count)
        return self

    def statistic(self, name: str) -> float | None:
        """Return a statistic: one of `STATISTICS`, or a percentile such as `p99.9`.

        None without samples, for a percentile that CloudWatch would not have, and for other names.
        """
        if self.count <= 0:
            return None
        if is_percentile(name):
            return self._percentile(float(name[1:]) / 100)
        statistics = {
            "SampleCount": self.count,
            "Sum": self.total,
            "Average": self.total / self.count,
            "Minimum": self.minimum,
            "Maximum": self.maximum,
        }
        return statistics.get(name)

    def _widen(self, count: float, total: float, minimum: float, maximum: float) -> None:
        self.count += count
        self.total += total
        self.minimum = min(self.minimum, minimum)
        self.maximum = max(self.maximum, maximum)

    def _percentile(self, fraction: float) -> float | None:
        """Interpolate between the two nearest ranks."""
        if self.values is None or self.minimum < 0:
            return None
        rank = fraction * max(self.count - 1, 0.0)
        low, high = self._value_at(rank // 1), self._value_at(rank // 1 + 1)
        return low + (high - low) * (rank % 1)

    def _value_at(self, rank: float) -> float:
        cumulative = 0.0
        for value in sorted(self.values or ()):
            cumulative += (self.values or {})[value]
            if rank < cumulative:
                return value
        return self.maximum


def is_percentile(name: str) -> bool:
    """Return whether a statistic's name is a percentile, p0 to p100."""
    digits = name[1:]
    return name[:1] == "p" and digits.replace(".", "", 1).isdecimal() and float(digits) <= 100


class _MetricSeries:
    """The samples of one metric by their start, oldest first."""

    __slots__ = ("samples", "starts")

    def __init__(self) -> None:
        self.starts: list[int] = []
        self.samples: dict[int, dict[str, Samples]] = {}  # start → unit → samples

    def samples_at(self, start: int, unit: str) -> Samples:
        if start not in self.samples:
            insort(self.starts, start)
            self.samples[start] = {}
            if len(self.starts) > _MAX_STARTS:
                del self.samples[self.starts.pop(0)]
        return self.samples.setdefault(start, {}).setdefault(unit, Samples())

    def between(self, start: int, end: int, unit: str | None) -> Iterator[tuple[int, Samples]]:
        for at in self.starts[bisect_left(self.starts, start) : bisect_left(self.starts, end)]:
            for name, samples in self.samples[at].items():
                if unit is None or unit == name:
                    yield at, samples
