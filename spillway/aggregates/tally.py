"""What the numbers of one interval come to, but for percentiles."""

from collections.abc import Sequence

from msgspec import Struct, field

from spillway.aggregates.exact import ExactSum
from spillway.aggregates.functions import Function, Number

__all__ = ["Tally"]


class Tally(Struct):
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

    def value(self, function: Function) -> Number | None:
        """Return one function of the numbers, None where it needs some and there are none; percentiles are not here."""
        if function is Function.COUNT:
            return self.count
        if not self.count:
            return None
        if function is Function.SUM:
            return self.sum.total()
        if function is Function.AVG:
            return self.sum.mean(self.count)
        extremes = {
            Function.MIN: self.low,
            Function.MAX: self.high,
            Function.FIRST: self.first,
            Function.LAST: self.last,
        }
        return extremes[function]


def _without_sign_of_zero(value: Number) -> Number:
    """Return 0.0 for -0.0: they are equal, so the order of events would decide between them."""
    return value or abs(value)
