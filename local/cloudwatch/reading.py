"""Answers CloudWatch's reads of metrics: ListMetrics, GetMetricStatistics, GetMetricData.

Periods begin at the request's StartTime, rounded down to the minute (or, for shorter periods, to their own
length), and are of metric time. Everything fits in one page.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from local.cloudwatch.alarms import Query, Stat
from local.cloudwatch.data import dimensions
from local.cloudwatch.errors import CloudWatchError, invalid, missing
from local.cloudwatch.expressions import Array, ExpressionError, Series, Value
from local.cloudwatch.parameters import Parameters, entries, instant, period, text
from local.cloudwatch.protocols import Instant
from local.cloudwatch.queries import computed
from local.cloudwatch.samples import STATISTICS, Samples, is_percentile
from local.cloudwatch.store import MINUTE, Metric, MetricStore, MetricTime, PeriodGrid

__all__ = ["data", "listed", "statistics"]

_MAX_POINTS: Final = 1440
_MAX_DATA: Final = 100_800


def listed(asked: Parameters, store: MetricStore) -> dict[str, Any]:
    """Return the metrics that a ListMetrics request filters."""
    wanted = [(text(pair, "Name"), pair.get("Value")) for pair in entries(asked, "Dimensions")]
    return {
        "Metrics": [
            _named(metric)
            for metric in store.metrics()
            if asked.get("Namespace") in (None, metric.namespace)
            and asked.get("MetricName") in (None, metric.name)
            and all(_has(metric, name, value) for name, value in wanted)
        ]
    }


def statistics(asked: Parameters, store: MetricStore, time: MetricTime) -> dict[str, Any]:
    """Return the datapoints that a GetMetricStatistics request wants.

    Raises:
        CloudWatchError: A parameter is missing or out of range.
    """
    metric = _metric(asked)
    grid = _grid(asked, period(asked), time, _MAX_POINTS)
    plain, extended = _wanted(asked)
    unit = asked.get("Unit")
    shown = unit or store.unit(metric)
    return {
        "Label": metric.name,
        "Datapoints": [
            {
                "Timestamp": Instant(time.wall(start)),
                "Unit": shown,
                **_figures(found, plain, extended),
            }
            for start, found in zip(grid.starts, store.windows(metric, grid, unit), strict=True)
            if found is not None
        ],
    }


def data(asked: Parameters, store: MetricStore, time: MetricTime) -> dict[str, Any]:
    """Return the results that a GetMetricData request wants, expressions included.

    Raises:
        CloudWatchError: A parameter is missing or out of range, or an expression cannot be computed.
    """
    queries = _read_queries(asked)
    periods = [query.stat.period for query in queries if query.stat is not None]
    longest = max([*periods, *(query.period or 0 for query in queries)], default=0) or MINUTE
    newest_first = asked.get("ScanBy", "TimestampDescending") != "TimestampAscending"
    shared = _grid(asked, longest, time, _MAX_DATA)
    try:
        values = computed(queries, store, shared)
    except ExpressionError as error:
        raise CloudWatchError("ValidationError", f"{error}.") from error
    results: list[dict[str, Any]] = []
    for query in queries:
        if query.returned:
            grid, found = shared, values[query.id]
            if query.stat is not None and query.stat.period != longest:
                grid = _grid(asked, query.stat.period, time, _MAX_DATA)
                stat = query.stat
                found = store.values(stat.metric, stat.statistic, grid, stat.unit)
            results += _results(query, found, [time.wall(at) for at in grid.starts], newest_first)
    return {"MetricDataResults": results, "Messages": []}


def _results(
    query: Query, value: Value, times: Sequence[float], newest_first: bool
) -> list[dict[str, Any]]:
    label = query.label or (query.stat.metric.name if query.stat else query.id)
    return [
        {
            "Id": query.id,
            "Label": label,
            "StatusCode": "Complete",
            **_points(series, times, newest_first),
        }
        for series in _all_series(value, len(times))
    ]


def _points(series: Series, times: Sequence[float], newest_first: bool) -> dict[str, list[Any]]:
    found = [(at, point) for at, point in zip(times, series, strict=True) if point is not None]
    if newest_first:
        found.reverse()
    return {
        "Timestamps": [Instant(at) for at, _ in found],
        "Values": [float(point) for _, point in found],
    }


def _all_series(value: Value, count: int) -> tuple[Series, ...]:
    if isinstance(value, Array):
        return value.members
    if isinstance(value, list):
        return (value,)
    if isinstance(value, str):
        raise CloudWatchError("ValidationError", "An expression must give numbers.")
    return ([value] * count,)


def _read_queries(asked: Parameters) -> list[Query]:
    found = entries(asked, "MetricDataQueries")
    if not found:
        raise missing("MetricDataQueries")
    queries = [_query(entry) for entry in found if isinstance(entry, Mapping)]
    if len({query.id for query in queries}) < len(found):
        raise CloudWatchError("ValidationError", "Each query must have an id of its own.")
    return queries


def _query(entry: Mapping[str, Any]) -> Query:
    wanted, expression = entry.get("MetricStat"), entry.get("Expression") or ""
    if (wanted is None) == (not expression):
        raise CloudWatchError(
            "ValidationError", "Each query must have either a MetricStat or an Expression."
        )
    return Query(
        id=text(entry, "Id"),
        stat=_stat(wanted) if isinstance(wanted, Mapping) else None,
        expression=expression,
        returned=entry.get("ReturnData", True) not in (False, "false"),
        label=entry.get("Label") or "",
        period=period(entry) if entry.get("Period") else None,
    )


def _stat(wanted: Mapping[str, Any]) -> Stat:
    metric = wanted.get("Metric")
    if not isinstance(metric, Mapping):
        raise missing("MetricStat.Metric")
    return Stat(_metric(metric), _known(text(wanted, "Stat")), period(wanted), wanted.get("Unit"))


def _grid(asked: Parameters, length: int, time: MetricTime, most: int) -> PeriodGrid:
    start, end = instant(asked, "StartTime"), instant(asked, "EndTime")
    if start >= end:
        raise invalid("The parameter StartTime must be less than the parameter EndTime.")
    aligned = time.seconds(start) // min(length, MINUTE) * min(length, MINUTE)
    count = -((aligned - time.seconds(end)) // length)
    if count > most:
        raise CloudWatchError(
            "InvalidParameterCombination",
            f"You have requested up to {count} datapoints, which exceeds the limit of {most}.",
            kind="InvalidParameterCombinationException",
        )
    return PeriodGrid(aligned, length, count)


def _wanted(asked: Parameters) -> tuple[list[str], list[str]]:
    plain, extended = entries(asked, "Statistics"), entries(asked, "ExtendedStatistics")
    if not plain and not extended:
        raise CloudWatchError(
            "InvalidParameterCombination",
            "At least one of Statistics and ExtendedStatistics must be given.",
            kind="InvalidParameterCombinationException",
        )
    if any(name not in STATISTICS for name in plain):
        raise invalid(f"The parameter Statistics may hold {', '.join(STATISTICS)}.")
    return plain, [_known(name) for name in extended]


def _known(statistic: str) -> str:
    if statistic not in STATISTICS and not is_percentile(statistic):
        raise invalid(f"The local CloudWatch does not know the statistic {statistic!r}.")
    return statistic


def _figures(found: Samples, plain: list[str], extended: list[str]) -> dict[str, Any]:
    figures: dict[str, Any] = {name: found.statistic(name) for name in plain}
    percentiles = {name: value for name in extended if (value := found.statistic(name)) is not None}
    return figures | ({"ExtendedStatistics": percentiles} if percentiles else {})


def _metric(asked: Parameters) -> Metric:
    return Metric(text(asked, "Namespace"), text(asked, "MetricName"), dimensions(asked))


def _named(metric: Metric) -> dict[str, Any]:
    pairs = [{"Name": name, "Value": value} for name, value in sorted(metric.dimensions)]
    return {"Namespace": metric.namespace, "MetricName": metric.name, "Dimensions": pairs}


def _has(metric: Metric, name: str, value: str | None) -> bool:
    return any(name == own and value in (None, "", there) for own, there in metric.dimensions)
