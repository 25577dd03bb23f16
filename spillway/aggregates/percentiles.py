"""Percentiles of one interval: exact up to a number of values, then by a sketch of bounded error."""

from array import array
from collections import Counter
from collections.abc import Sequence
from math import floor
from typing import TYPE_CHECKING, Final

from spillway.aggregates.functions import Number
from spillway.aggregates.interpolation import interpolate

if TYPE_CHECKING:
    from ddsketch import DDSketch

__all__ = ["MOST_EXACT", "RELATIVE_ERROR", "Percentiles"]

MOST_EXACT: Final = 100_000  # values of an interval, 8 bytes each
RELATIVE_ERROR: Final = 0.005
_LARGEST_SKETCHED: Final = 1.7e308  # the sketch's own values lie up to its error above


class Percentiles:
    """The percentiles of numbers, as doubles. Neither their order nor how they are grouped shows in them.

    Up to `most_exact` they are kept, and percentiles interpolate linearly between ranks, as NumPy and pandas do. Beyond,
    they go into a DDSketch (Masson, Rim, Lee: "DDSketch", VLDB 2019), and a percentile is within 0.5 % of the value
    at its rank, rounded down: some 11 KB for values of three decimal orders, 2.3 MB for all that doubles can hold.
    """

    def __init__(self, most_exact: int = MOST_EXACT) -> None:
        self._most_exact = most_exact
        self._values = array("d")
        self._sketch: DDSketch | None = None

    @property
    def approximate(self) -> bool:
        """Whether there were too many values to be exact."""
        return self._sketch is not None

    def add(self, values: Sequence[Number]) -> None:
        """Add numbers."""
        self._values.extend(values)
        if self._sketch is None and len(self._values) <= self._most_exact:
            return
        if self._sketch is None:
            self._sketch = _new_sketch()
        for value, count in Counter(self._values).items():
            bounded = max(-_LARGEST_SKETCHED, min(value, _LARGEST_SKETCHED))
            self._sketch.add(bounded, count)
        self._values = array("d")

    def at(self, fractions: Sequence[float]) -> list[float | None]:
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
