"""The metrics of the local cloud, in metric time.

**Metric time** is wall time times the time scale, in whole seconds: with a scale of 60 a minute of it
lasts one second on the wall, and everything that CloudWatch says about periods holds unchanged. Only the
edges of this package convert.
"""

from bisect import bisect_left, insort
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final

from local.cloudwatch.samples import Samples

__all__ = ["MINUTE", "Metric", "MetricStore", "MetricTime", "PeriodGrid"]

MINUTE: Final = 60  # seconds of metric time: the resolution of a standard metric
_KEPT: Final = 10_000  # stretches of time a metric: a week of minutes, three hours of seconds


@dataclass(frozen=True, slots=True)
class MetricTime:
    """Converts wall time (seconds since the epoch) to metric time and back."""

    scale: float = 1.0

    def seconds(self, wall: float) -> int:
        """Return the metric second that a moment lies in."""
        return int(wall * self.scale + 1e-6)

    def wall(self, seconds: float) -> float:
        """Return when a metric second begins."""
        return seconds / self.scale


@dataclass(frozen=True, slots=True)
class Metric:
    """What identifies a metric: another set of dimensions is another metric."""

    namespace: str
    name: str
    dimensions: frozenset[tuple[str, str]] = field(default=frozenset())


@dataclass(frozen=True, slots=True)
class PeriodGrid:
    """Periods one after the other: `count` of them, each `period` seconds, the first from `start` on."""

    start: int
    period: int
    count: int

    @property
    def end(self) -> int:
        """Where the last period ends."""
        return self.start + self.period * self.count

    @property
    def starts(self) -> range:
        """When each period begins."""
        return range(self.start, self.end, self.period)


class _Series:
    """The samples of one metric by their start, oldest first."""

    __slots__ = ("samples", "starts")

    def __init__(self) -> None:
        self.starts: list[int] = []
        self.samples: dict[int, dict[str, Samples]] = {}  # start → unit → samples

    def at(self, start: int, unit: str) -> Samples:
        if start not in self.samples:
            insort(self.starts, start)
            self.samples[start] = {}
            if len(self.starts) > _KEPT:
                del self.samples[self.starts.pop(0)]
        return self.samples.setdefault(start, {}).setdefault(unit, Samples())

    def between(self, start: int, end: int, unit: str | None) -> Iterator[tuple[int, Samples]]:
        for at in self.starts[bisect_left(self.starts, start) : bisect_left(self.starts, end)]:
            for name, samples in self.samples[at].items():
                if unit is None or unit == name:
                    yield at, samples


class MetricStore:
    """Samples by metric, unit and minute (or second, where put at high resolution)."""

    def __init__(self) -> None:
        self._series: dict[Metric, _Series] = {}

    def put(
        self,
        metric: Metric,
        at: int,
        samples: Samples,
        *,
        unit: str = "None",
        resolution: int = MINUTE,
    ) -> None:
        """Count samples that were taken at a second of metric time."""
        series = self._series.setdefault(metric, _Series())
        series.at(at // resolution * resolution, unit).merge([samples])

    def metrics(self) -> Iterable[Metric]:
        """Return every metric that has samples, oldest first."""
        return list(self._series)

    def unit(self, metric: Metric) -> str:
        """Return the unit that a metric came with last, None (the text) where it is unknown."""
        series = self._series.get(metric)
        return "None" if series is None else next(iter(series.samples[series.starts[-1]]))

    def windows(
        self, metric: Metric, grid: PeriodGrid, unit: str | None = None
    ) -> list[Samples | None]:
        """Return the samples of each period, None where there are none."""
        found: list[Samples | None] = [None] * grid.count
        series = self._series.get(metric)
        if series is not None:
            for at, samples in series.between(grid.start, grid.end, unit):
                place = (at - grid.start) // grid.period
                found[place] = (found[place] or Samples()).merge([samples])
        return found

    def values(
        self, metric: Metric, statistic: str, grid: PeriodGrid, unit: str | None = None
    ) -> list[float | None]:
        """Return a statistic of each period, None where there is none."""
        windows = self.windows(metric, grid, unit)
        return [None if samples is None else samples.statistic(statistic) for samples in windows]
