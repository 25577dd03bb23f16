"""Computes queries against the store: metrics' statistics and expressions over them, on one grid."""

from collections.abc import Iterator, Sequence

from local.cloudwatch.alarms import DeployedAlarm, Query
from local.cloudwatch.computing import compute, names_in
from local.cloudwatch.evaluation import RANGE_BEYOND, Point
from local.cloudwatch.expressions import Array, ExpressionError, Series, Value, parse
from local.cloudwatch.functions import Scope
from local.cloudwatch.store import MetricStore, PeriodGrid

__all__ = ["computed", "points"]


def computed(queries: Sequence[Query], store: MetricStore, grid: PeriodGrid) -> dict[str, Value]:
    """Return the value of every query by its id.

    Raises:
        ExpressionError: An expression is none, refers to what is not there or in a circle.
    """
    values: dict[str, Value] = {
        query.id: store.values(query.stat.metric, query.stat.statistic, grid, query.stat.unit)
        for query in queries
        if query.stat is not None
    }
    metrics = tuple(values)
    for query in _in_order([query for query in queries if query.stat is None], set(values)):
        values[query.id] = compute(parse(query.expression), Scope(values, metrics, grid))
    return values


def points(alarm: DeployedAlarm, store: MetricStore, at: int) -> list[Point | None]:
    """Return the datapoints of an alarm's range up to the metric second `at`, oldest first.

    Raises:
        ExpressionError: Its expressions cannot be computed, or give no single time series.
    """
    count = alarm.evaluation_periods + RANGE_BEYOND
    grid = PeriodGrid(at - count * alarm.period, alarm.period, count)
    values = computed(alarm.queries, store, grid)
    lower, upper = _bounds(alarm, values, count)
    watched = _single(values[alarm.watched])
    samples = _sample_counts(alarm, store, grid)
    return [
        None if value is None or low is None or high is None else Point(start, value, low, high, n)
        for start, value, low, high, n in zip(
            grid.starts, watched, lower, upper, samples, strict=True
        )
    ]


def _bounds(alarm: DeployedAlarm, values: dict[str, Value], count: int) -> tuple[Series, Series]:
    if alarm.band is None:
        fixed: Series = [alarm.threshold] * count
        return fixed, fixed
    band = values.get(alarm.band)
    if isinstance(band, Array) and len(band.members) == 2:
        return band.members
    series = _single(band)
    return series, series


def _single(value: Value | None) -> Series:
    if isinstance(value, Array) and len(value.members) == 1:
        return value.members[0]
    if not isinstance(value, list):
        raise ExpressionError("The expression must give a single time series")
    return value


def _sample_counts(alarm: DeployedAlarm, store: MetricStore, grid: PeriodGrid) -> list[float]:
    stat = alarm.queries[0].stat
    if alarm.low_samples != "ignore" or stat is None:
        return [float("inf")] * grid.count
    return [
        0.0 if samples is None else samples.count
        for samples in store.windows(stat.metric, grid, stat.unit)
    ]


def _in_order(expressions: Sequence[Query], known: set[str]) -> Iterator[Query]:
    """Yield expressions so that each comes after those it refers to."""
    waiting = {query.id: names_in(parse(query.expression)) for query in expressions}
    by_id = {query.id: query for query in expressions}
    while waiting:
        ready = [name for name, needs in waiting.items() if not needs & waiting.keys()]
        if not ready:
            raise ExpressionError(f"The expressions {sorted(waiting)} refer to each other")
        for name in ready:
            unknown = waiting.pop(name) - known - by_id.keys()
            if unknown:
                raise ExpressionError(f"The expression refers to an unknown id {min(unknown)!r}")
            yield by_id[name]
