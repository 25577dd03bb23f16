"""The functions of metric math that alarms and dashboards commonly use.

Not supported, and refused with a message: SEARCH, SQL (Metrics Insights), date and time functions, SORT,
SLICE, LAMBDA. ANOMALY_DETECTION_BAND is a plain band: mean ± n standard deviations of the values at hand.
"""

import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import Final

from local.cloudwatch.expressions import (
    Array,
    ExpressionError,
    Series,
    Value,
    each,
    plain,
    pointwise,
)
from local.cloudwatch.store import PeriodGrid

__all__ = ["Scope", "array", "call"]


@dataclass(frozen=True, slots=True)
class Scope:
    """What an expression is computed in: named values, which of them are metrics, and the periods."""

    values: Mapping[str, Value]
    metrics: tuple[str, ...]
    grid: PeriodGrid


def array(parts: Sequence[Value]) -> Array:
    """Return the time series of some values as one array."""
    return Array(tuple(member for part in parts for member in _members(part)))


def call(name: str, arguments: Sequence[Value], scope: Scope) -> Value:
    """Return what a function makes of its arguments.

    Raises:
        ExpressionError: The function is not supported or takes other arguments.
    """
    function = _FUNCTIONS.get(name)
    if function is None:
        raise ExpressionError(f"The function {name} is not supported here")
    try:
        return function(scope, *arguments)
    except TypeError as error:
        raise ExpressionError(f"{name} takes other arguments") from error


def _members(value: Value) -> tuple[Series, ...]:
    if isinstance(value, Array):
        return value.members
    if isinstance(value, list):
        return (value,)
    raise ExpressionError("A time series was expected")


def _present(series: Series) -> list[float]:
    return [point for point in series if point is not None]


def _reduced(action: Callable[[list[float]], float]) -> Callable[..., Value]:
    """Return a function that reduces a series to a scalar, an array to a series."""

    def reduce(_: Scope, value: Value) -> Value:
        if isinstance(value, Array):
            columns = zip(*value.members, strict=True)
            return [
                action(present) if (present := _present(list(column))) else None
                for column in columns
            ]
        if isinstance(value, list):
            return action(present) if (present := _present(value)) else 0.0
        return value

    return reduce


def _mapped(action: Callable[[float], float | None]) -> Callable[..., Value]:
    return lambda _, value: each(value, lambda part: pointwise((part,), action))


def _log(base: Callable[[float], float]) -> Callable[[float], float | None]:
    return lambda value: base(value) if value > 0 else None


def _metrics(scope: Scope, containing: Value = "") -> Value:
    wanted = [name for name in scope.metrics if str(containing) in name]
    return array([scope.values[name] for name in wanted])


def _fill(_: Scope, value: Value, filler: Value) -> Value:
    def filled(part: float | Series) -> float | Series:
        if not isinstance(part, list):
            return part
        if filler == "REPEAT":
            return _repeated(part)
        if filler == "LINEAR":
            return _interpolated(part)
        other = plain(filler)
        column = other if isinstance(other, list) else [other] * len(part)
        return [
            second if first is None else first for first, second in zip(part, column, strict=True)
        ]

    return each(value, filled)


def _repeated(series: Series) -> Series:
    last: float | None = None
    result: Series = []
    for point in series:
        last = last if point is None else point
        result.append(last)
    return result


def _interpolated(series: Series) -> Series:
    known = [(at, point) for at, point in enumerate(series) if point is not None]
    result = list(series)
    for (start, low), (end, high) in pairwise(known):
        for at in range(start + 1, end):
            result[at] = low + (high - low) * (at - start) / (end - start)
    return result


def _if(_: Scope, condition: Value, then: Value, otherwise: Value = 0.0) -> Value:
    # Only the branch that is taken must be there.
    columns = [plain(condition), plain(then), plain(otherwise)]
    length = next((len(column) for column in columns if isinstance(column, list)), None)
    if length is None:
        return then if condition else otherwise
    rows = zip(*(c if isinstance(c, list) else [c] * length for c in columns), strict=True)
    return [None if test is None else (yes if test else no) for test, yes, no in rows]


def _difference(divide: bool) -> Callable[..., Value]:
    def differ(scope: Scope, value: Value) -> Value:
        by = scope.grid.period if divide else 0
        return each(value, lambda part: _changes(part, by) if isinstance(part, list) else 0.0)

    return differ


def _changes(series: Series, period: int) -> Series:
    """Return the change from the last present point to each, per second where a period is given."""
    result: Series = [None] * len(series)
    known = [(at, point) for at, point in enumerate(series) if point is not None]
    for (before, low), (at, high) in pairwise(known):
        result[at] = (high - low) / (period * (at - before) if period else 1)
    return result


def _running_sum(_: Scope, value: Value) -> Value:
    return each(value, lambda part: _sums(part) if isinstance(part, list) else part)


def _sums(series: Series) -> Series:
    totals = accumulate(point or 0.0 for point in series)
    return [None if point is None else total for point, total in zip(series, totals, strict=True)]


def _band(_: Scope, value: Value, width: Value = 2.0) -> Value:
    (series,) = _members(value)
    present = _present(series)
    if len(present) < 2 or not isinstance(width, float):
        return Array(([None] * len(series), [None] * len(series)))
    middle, spread = statistics.fmean(present), statistics.pstdev(present) * width
    return Array(([middle - spread] * len(series), [middle + spread] * len(series)))


_FUNCTIONS: Final[Mapping[str, Callable[..., Value]]] = {
    "ABS": _mapped(abs),
    "ANOMALY_DETECTION_BAND": _band,
    "AVG": _reduced(statistics.fmean),
    "CEIL": _mapped(math.ceil),
    "DATAPOINT_COUNT": lambda _, value: each(
        value, lambda part: float(len(_present(part))) if isinstance(part, list) else 1.0
    ),
    "DIFF": _difference(divide=False),
    "FILL": _fill,
    "FIRST": lambda _, value: _members(value)[0],
    "FLOOR": _mapped(math.floor),
    "IF": _if,
    "LAST": lambda _, value: _members(value)[-1],
    "LOG": _mapped(_log(math.log)),
    "LOG10": _mapped(_log(math.log10)),
    "MAX": _reduced(max),
    "METRICS": _metrics,
    "METRIC_COUNT": lambda _, value: float(len(_members(value))),
    "MIN": _reduced(min),
    "PERIOD": lambda scope, _: float(scope.grid.period),
    "RATE": _difference(divide=True),
    "RUNNING_SUM": _running_sum,
    "STDDEV": _reduced(statistics.pstdev),
    "SUM": _reduced(math.fsum),
    "TIME_SERIES": lambda scope, value: (
        value if isinstance(part := plain(value), list) else [part] * scope.grid.count
    ),
}
