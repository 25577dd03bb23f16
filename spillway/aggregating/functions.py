"""Aggregate functions: exact sums, percentiles, and the tally of one interval."""

from array import array
from collections import Counter
from collections.abc import Sequence
from enum import StrEnum
from fractions import Fraction
from math import floor, fsum, isfinite
from typing import TYPE_CHECKING, Final

from msgspec import Struct, field

if TYPE_CHECKING:
    from ddsketch import DDSketch

__all__ = [
    "MAX_EXACT",
    "PERCENTILES",
    "RELATIVE_ERROR",
    "AggregateFunction",
    "ExactSum",
    "Fill",
    "IntervalTally",
    "Number",
    "Percentiles",
    "interpolate",
]


Number = int | float


class AggregateFunction(StrEnum):
    """A function of an interval's numbers. Without numbers `count` is 0 and all others are None.

    `count` counts numbers, or events if no field is given. `first` and `last` are in order of time,
    then sharding key and id.
    """

    COUNT = "count"
    SUM = "sum"
    MIN = "min"
    MAX = "max"
    AVG = "avg"
    FIRST = "first"
    LAST = "last"
    P50 = "p50"
    P90 = "p90"
    P99 = "p99"


PERCENTILES: Final = {
    AggregateFunction.P50: 0.5,
    AggregateFunction.P90: 0.9,
    AggregateFunction.P99: 0.99,
}


class Fill(StrEnum):
    """The values of intervals without numbers, except for `count`, which is 0 there.

    `none` leaves out intervals without events. `previous` repeats the interval before. `linear`
    interpolates between the neighbours by their starts. Neither looks beyond the range: without a
    neighbour in it, the value is None.
    """

    NONE = "none"
    NULL = "null"
    ZERO = "zero"
    PREVIOUS = "previous"
    LINEAR = "linear"


def interpolate(low: Number, high: Number, share: float) -> float:
    """Return the double at `share`, 0 to 1, of the way between two numbers in double range."""
    first, last = float(low), float(high)
    value = first + (last - first) * share
    return value if isfinite(value) else first * (1 - share) + last * share


_INTEGRAL: Final = 2.0**53  # doubles from here on have no fraction


class ExactSum(Struct):
    """An exact sum of integers and doubles, rounded once, at its end.

    Attributes:
        whole: sum of the integers.
        parts: a few doubles, the greatest first, that add up to the exact sum of all doubles.
        has_doubles: whether any double was added, so that the sum is one.
    """

    whole: int = 0
    parts: list[float] = []
    has_doubles: bool = False

    def add(self, values: Sequence[Number]) -> None:
        """Add numbers; costs about three passes of `math.fsum` over the doubles among them."""
        doubles = [value for value in values if type(value) is float]
        if len(doubles) < len(values):
            self.whole += sum(value for value in values if type(value) is int)
        if doubles:
            self.has_doubles = True
            self._add_doubles(self.parts + doubles)

    def _add_doubles(self, values: list[float]) -> None:
        try:
            self.parts = _condensed(values)
        except OverflowError:  # somewhere between: large doubles are integers, which have no limit
            large = [value for value in values if abs(value) >= _INTEGRAL]
            self.whole += sum(map(int, large))
            self.parts = _condensed([value for value in values if abs(value) < _INTEGRAL])

    def total(self) -> Number | None:
        """Return the sum: an integer if all were, else the nearest double; None beyond doubles."""
        if not self.has_doubles:
            return self.whole
        try:
            return float(self._exact())
        except OverflowError:
            return None

    def mean(self, count: int) -> float:
        """Return the double nearest to the sum divided by how many were added."""
        return float(self._exact() / count)

    def _exact(self) -> Fraction:
        return sum(map(Fraction, self.parts), Fraction(self.whole))


def _condensed(values: list[float]) -> list[float]:
    """Return a few doubles with the same exact sum: each the rounded rest of it."""
    parts = []
    while total := fsum(values):
        parts.append(total)
        values.append(-total)
    return parts


MAX_EXACT: Final = 100_000  # values of an interval, 8 bytes each
RELATIVE_ERROR: Final = 0.005
_LARGEST_SKETCHED: Final = 1.7e308  # the sketch's own values lie up to its error above


class Percentiles:
    """The percentiles of numbers, as doubles. They do not depend on order or grouping.

    Up to `max_exact` numbers are kept, and percentiles interpolate linearly between ranks, as NumPy
    and pandas do. More go into a DDSketch (Masson, Rim, Lee: "DDSketch", VLDB 2019). Then a
    percentile is within 0.5 % of the value at its rank, rounded down. A sketch takes some 11 KB for
    values of three decimal orders, 2.3 MB for all that doubles can hold.
    """

    def __init__(self, max_exact: int = MAX_EXACT) -> None:
        self._max_exact = max_exact
        self._values = array("d")
        self._sketch: DDSketch | None = None

    @property
    def approximate(self) -> bool:
        """Whether there were too many values to be exact."""
        return self._sketch is not None

    def add(self, values: Sequence[Number]) -> None:
        """Add numbers."""
        self._values.extend(values)
        if self._sketch is None and len(self._values) <= self._max_exact:
            return
        if self._sketch is None:
            self._sketch = _new_sketch()
        for value, count in Counter(self._values).items():
            bounded = max(-_LARGEST_SKETCHED, min(value, _LARGEST_SKETCHED))
            self._sketch.add(bounded, count)
        self._values = array("d")

    def values_at(self, fractions: Sequence[float]) -> list[float | None]:
        """Return the values at fractions of 0 to 1, in one go; None where nothing was added."""
        if self._sketch is not None:
            return [_sketched(self._sketch, fraction) for fraction in fractions]
        if not self._values:
            return [None for _ in fractions]
        ordered = sorted(self._values)
        return [_interpolated(ordered, fraction) for fraction in fractions]


def _new_sketch() -> "DDSketch":
    from ddsketch import DDSketch  # noqa: PLC0415  seldom needed, and takes time to start

    return DDSketch(RELATIVE_ERROR)


def _sketched(sketch: "DDSketch", fraction: float) -> float:
    return float(sketch.get_quantile_value(fraction) or 0)


def _interpolated(ordered: Sequence[float], fraction: float) -> float:
    position = fraction * (len(ordered) - 1)
    rank = floor(position)
    above = ordered[min(rank + 1, len(ordered) - 1)]
    return interpolate(ordered[rank], above, position - rank)


class IntervalTally(Struct):
    """Counts, extremes and sum of numbers that come in order.

    Attributes:
        count: numbers, or events where no field is asked for.
        skipped: events without a number there.
        low: the least number; of equal ones the first. A zero has no sign.
        high: the greatest.
        first: the first.
        last: the last.
        sum: of all of them.
    """

    count: int = 0
    skipped: int = 0
    low: Number | None = None
    high: Number | None = None
    first: Number | None = None
    last: Number | None = None
    sum: ExactSum = field(default_factory=ExactSum)

    def add(self, values: Sequence[Number], skipped: int) -> None:
        """Add the numbers of further events, and how many of these had none."""
        self.skipped += skipped
        if not values:
            return
        self.count += len(values)
        low, high = map(_without_sign_of_zero, (min(values), max(values)))
        self.low = low if self.low is None else min(self.low, low)
        self.high = high if self.high is None else max(self.high, high)
        self.first = values[0] if self.first is None else self.first
        self.last = values[-1]
        self.sum.add(values)

    def value(self, function: AggregateFunction) -> Number | None:
        """Return a function's value, but no percentile; None if it needs numbers and has none."""
        if function is AggregateFunction.COUNT:
            return self.count
        if not self.count:
            return None
        if function is AggregateFunction.SUM:
            return self.sum.total()
        if function is AggregateFunction.AVG:
            return self.sum.mean(self.count)
        extremes = {
            AggregateFunction.MIN: self.low,
            AggregateFunction.MAX: self.high,
            AggregateFunction.FIRST: self.first,
            AggregateFunction.LAST: self.last,
        }
        return extremes[function]


def _without_sign_of_zero(value: Number) -> Number:
    """Return 0.0 for -0.0: they are equal, so the order of events would decide between them."""
    return value or abs(value)
