"""Sums without rounding errors, so that no order of arrival and no number of shards shows in them."""

from collections.abc import Sequence
from fractions import Fraction
from math import fsum
from typing import Final

from msgspec import Struct

from spillway.aggregates.functions import Number

__all__ = ["ExactSum"]

_INTEGRAL: Final = 2.0**53  # doubles from here on have no fraction


class ExactSum(Struct):
    """An exact sum of integers and doubles, rounded once, at its end.

    Attributes:
        whole: sum of the integers.
        parts: doubles that add up to the exact sum of all doubles, the greatest first: a few of them.
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
        """Return the sum: an integer if all were, else the nearest double, None beyond the range of doubles."""
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
