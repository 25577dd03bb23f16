"""The value at a share of the way between two numbers."""

from math import isfinite

from spillway.aggregates.functions import Number

__all__ = ["interpolate"]


def interpolate(low: Number, high: Number, share: float) -> float:
    """Return the double at `share`, 0 to 1, of the way from one number to another, both within the range of doubles."""
    first, last = float(low), float(high)
    value = first + (last - first) * share
    return value if isfinite(value) else first * (1 - share) + last * share
