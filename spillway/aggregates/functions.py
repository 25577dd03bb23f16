"""What aggregates can be asked for."""

from enum import StrEnum
from typing import Final

__all__ = ["PERCENTILES", "Fill", "Function", "Number"]

Number = int | float


class Function(StrEnum):
    """What is made of the numbers of an interval; of an interval without numbers, `count` is 0 and all else is None.

    `count` counts numbers, without a field events. `first` and `last` are in order of time, then sharding key and id.
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


PERCENTILES: Final = {Function.P50: 0.5, Function.P90: 0.9, Function.P99: 0.99}


class Fill(StrEnum):
    """What stands in intervals without numbers, except for `count`, which is 0 there.

    `none` leaves out intervals without events; `previous` repeats the interval before; `linear` lays a line between
    the neighbours by their starts. Neither looks beyond the range: without a neighbour there, None stands.
    """

    NONE = "none"
    NULL = "null"
    ZERO = "zero"
    PREVIOUS = "previous"
    LINEAR = "linear"
