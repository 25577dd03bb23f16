"""PutMetricData, ListMetrics, GetMetricStatistics and GetMetricData, on the metric store.

Periods begin at the request's StartTime, rounded down to the minute (or, for shorter periods, to
their own length), and are of metric time. Every answer is one page. Each function raises
`CloudWatchError` for a parameter that is missing, malformed or out of range.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from local.cloudwatch.metric_store import (
    MINUTE,
    STATISTICS,
    Metric,
    MetricStore,
    MetricTime,
    PeriodGrid,
    Samples,
    is_percentile,
)
from local.cloudwatch.requests import (
    CloudWatchError,
    Instant,
    Parameters,
    dimensions_parameter,
    integer_parameter,
    invalid_combination,
    invalid_value,
    list_parameter,
    missing_parameter,
    number_parameter,
    period_parameter,
    structure,
    text_parameter,
    time_parameter,
    unsupported_math,
)

__all__ = [
    "get_metric_data",
    "get_metric_statistics",
    "list_metrics",
    "put_metric_data",
    "put_recorded_metrics",
]

_MAX_PUT_DATA: Final = 1_000
_MAX_VALUES: Final = 150  # of a datum that is put
_MAX_STATISTICS: Final = 1_440  # datapoints of GetMetricStatistics
_MAX_DATAPOINTS: Final = 100_800  # of GetMetricData
_SET: Final = ("SampleCount", "Sum", "Minimum", "Maximum")


def put_metric_data(
    parameters: Parameters, store: MetricStore, time: MetricTime, now: float
) -> dict[str, Any]:
    """Store the data of a request, all or none; `now` is wall time."""
    namespace = text_parameter(parameters, "Namespace")
    entries = list_parameter(parameters, "MetricData")
    if not entries:
        raise missing_parameter("MetricData")
    if len(entries) > _MAX_PUT_DATA:
        raise invalid_value(
            f"The collection MetricData must not have a size greater than {_MAX_PUT_DATA}."
        )
    data = [
        _read_datum(namespace, structure(entry, f"MetricData.member.{position}"), now)
        for position, entry in enumerate(entries, 1)
    ]
    for datum in data:
        store.put(
            datum.metric,
            time.seconds(datum.at),
            datum.samples,
            unit=datum.unit,
            resolution=datum.resolution,
        )
    return {}


def put_recorded_metrics(
    recorded: Iterable[Parameters], store: MetricStore, time: MetricTime
) -> None:
    """Store metrics that MiniStack recorded: Lambda's own, and those in functions' logs."""
    for entry in recorded:
        metric = Metric(
            entry["Namespace"], entry["MetricName"], frozenset(entry["Dimensions"].items())
        )
        for point in entry["Points"]:
            store.put(
                metric,
                time.seconds(point["Timestamp"]),
                _recorded_samples(point),
                unit=point.get("Unit") or "None",
            )


def list_metrics(parameters: Parameters, store: MetricStore) -> dict[str, Any]:
    """Return the metrics that match a request's filters."""
    dimensions = [
        (text_parameter(pair, "Name"), pair.get("Value"))
        for pair in list_parameter(parameters, "Dimensions")
    ]
    return {
        "Metrics": [
            _describe(metric)
            for metric in store.metrics()
            if parameters.get("Namespace") in (None, metric.namespace)
            and parameters.get("MetricName") in (None, metric.name)
            and all(_has_dimension(metric, name, value) for name, value in dimensions)
        ]
    }


def get_metric_statistics(
    parameters: Parameters, store: MetricStore, time: MetricTime
) -> dict[str, Any]:
    """Return the datapoints of one metric."""
    metric = _read_metric(parameters)
    grid = _read_grid(parameters, period_parameter(parameters), time, _MAX_STATISTICS)
    statistics, percentiles = _read_statistics(parameters)
    unit = parameters.get("Unit")
    windows = zip(grid.starts, store.windows(metric, grid, unit), strict=True)
    return {
        "Label": metric.name,
        "Datapoints": [
            {
                "Timestamp": Instant(time.wall(start)),
                "Unit": unit or store.unit(metric),
                **_compute_statistics(samples, statistics, percentiles),
            }
            for start, samples in windows
            if samples is not None
        ],
    }


def get_metric_data(parameters: Parameters, store: MetricStore, time: MetricTime) -> dict[str, Any]:
    """Return the results of a request's queries. Expressions (metric math) are refused."""
    newest_first = parameters.get("ScanBy", "TimestampDescending") != "TimestampAscending"
    results = []
    for query in _read_queries(parameters):
        grid = _read_grid(parameters, query.period, time, _MAX_DATAPOINTS)
        if query.is_returned:
            values = store.values(query.metric, query.statistic, grid, query.unit)
            times = [time.wall(start) for start in grid.starts]
            results.append(_result(query, times, values, newest_first=newest_first))
    return {"MetricDataResults": results, "Messages": []}


@dataclass(frozen=True, slots=True)
class _Datum:
    metric: Metric
    at: float  # wall time
    samples: Samples
    unit: str
    resolution: int


def _read_datum(namespace: str, entry: Parameters, now: float) -> _Datum:
    resolution = integer_parameter(entry, "StorageResolution", MINUTE)
    if resolution not in (1, MINUTE):
        raise invalid_value("The parameter StorageResolution must be 1 or 60.")
    return _Datum(
        Metric(namespace, text_parameter(entry, "MetricName"), dimensions_parameter(entry)),
        time_parameter(entry, "Timestamp", now),
        _read_samples(entry),
        entry.get("Unit") or "None",
        resolution,
    )


def _read_samples(entry: Parameters) -> Samples:
    forms = [name for name in ("Value", "Values", "StatisticValues") if entry.get(name) is not None]
    if len(forms) != 1:
        raise invalid_combination(
            "Each datum must have exactly one of Value, Values and StatisticValues."
        )
    if forms == ["Value"]:
        return Samples.of(number_parameter(entry, "Value"))
    if forms == ["Values"]:
        return _read_counted_values(entry)
    statistics = structure(entry["StatisticValues"], "StatisticValues")
    return Samples.of_set(*(number_parameter(statistics, name) for name in _SET))


def _read_counted_values(entry: Parameters) -> Samples:
    values = list_parameter(entry, "Values")
    counts = list_parameter(entry, "Counts") or [1] * len(values)
    if not 0 < len(values) <= _MAX_VALUES or len(counts) != len(values):
        raise invalid_value(f"Values and Counts must have the same size, of 1 to {_MAX_VALUES}.")
    samples = Samples()
    for value, count in zip(values, counts, strict=True):
        samples.add(
            number_parameter({"Values": value}, "Values"),
            number_parameter({"Counts": count}, "Counts"),
        )
    return samples


def _recorded_samples(point: Parameters) -> Samples:
    statistics = point.get("_stat")
    if statistics:
        return Samples.of_set(*(float(statistics.get(name, 0)) for name in _SET))
    samples = Samples()
    samples.add(float(point["Value"]), float(point.get("Count", 1.0)))
    return samples


def _read_metric(parameters: Parameters) -> Metric:
    return Metric(
        text_parameter(parameters, "Namespace"),
        text_parameter(parameters, "MetricName"),
        dimensions_parameter(parameters),
    )


def _describe(metric: Metric) -> dict[str, Any]:
    pairs = [{"Name": name, "Value": value} for name, value in sorted(metric.dimensions)]
    return {"Namespace": metric.namespace, "MetricName": metric.name, "Dimensions": pairs}


def _has_dimension(metric: Metric, name: str, value: str | None) -> bool:
    return any(name == own and value in (None, "", there) for own, there in metric.dimensions)


def _read_grid(
    parameters: Parameters, period: int, time: MetricTime, max_periods: int
) -> PeriodGrid:
    start, end = time_parameter(parameters, "StartTime"), time_parameter(parameters, "EndTime")
    if start >= end:
        raise invalid_value("The parameter StartTime must be less than the parameter EndTime.")
    alignment = min(period, MINUTE)
    aligned = time.seconds(start) // alignment * alignment
    count = -((aligned - time.seconds(end)) // period)
    if count > max_periods:
        raise invalid_combination(
            f"You have requested up to {count} datapoints, which exceeds the limit of"
            f" {max_periods}."
        )
    return PeriodGrid(aligned, period, count)


def _read_statistics(parameters: Parameters) -> tuple[list[str], list[str]]:
    statistics = list_parameter(parameters, "Statistics")
    percentiles = list_parameter(parameters, "ExtendedStatistics")
    if not statistics and not percentiles:
        raise invalid_combination(
            "At least one of Statistics and ExtendedStatistics must be given."
        )
    if any(name not in STATISTICS for name in statistics):
        raise invalid_value(f"The parameter Statistics may hold {', '.join(STATISTICS)}.")
    return statistics, [_check_statistic(name) for name in percentiles]


def _check_statistic(name: str) -> str:
    if name not in STATISTICS and not is_percentile(name):
        raise invalid_value(f"The local CloudWatch does not know the statistic {name!r}.")
    return name


def _compute_statistics(
    samples: Samples, statistics: list[str], percentiles: list[str]
) -> dict[str, Any]:
    plain: dict[str, Any] = {name: samples.statistic(name) for name in statistics}
    values = {name: samples.statistic(name) for name in percentiles}
    extended = {name: value for name, value in values.items() if value is not None}
    return plain | ({"ExtendedStatistics": extended} if extended else {})


@dataclass(frozen=True, slots=True)
class _MetricDataQuery:
    id: str
    label: str
    metric: Metric
    statistic: str
    period: int
    unit: str | None
    is_returned: bool


def _read_queries(parameters: Parameters) -> list[_MetricDataQuery]:
    entries = list_parameter(parameters, "MetricDataQueries")
    if not entries:
        raise missing_parameter("MetricDataQueries")
    queries = [_read_query(structure(entry, "MetricDataQueries")) for entry in entries]
    if len({query.id for query in queries}) < len(queries):
        raise CloudWatchError("ValidationError", "Each query must have an id of its own.")
    return queries


def _read_query(entry: Parameters) -> _MetricDataQuery:
    stat, expression = entry.get("MetricStat"), entry.get("Expression")
    if (stat is None) == (not expression):
        raise CloudWatchError(
            "ValidationError", "Each query must have either a MetricStat or an Expression."
        )
    if stat is None:
        raise unsupported_math("each query must have a MetricStat")
    stat = structure(stat, "MetricStat")
    if not isinstance(stat.get("Metric"), Mapping):
        raise missing_parameter("MetricStat.Metric")
    metric = _read_metric(stat["Metric"])
    return _MetricDataQuery(
        id=text_parameter(entry, "Id"),
        label=entry.get("Label") or metric.name,
        metric=metric,
        statistic=_check_statistic(text_parameter(stat, "Stat")),
        period=period_parameter(stat),
        unit=stat.get("Unit"),
        is_returned=entry.get("ReturnData", True) not in (False, "false"),
    )


def _result(
    query: _MetricDataQuery,
    times: Sequence[float],
    values: Sequence[float | None],
    *,
    newest_first: bool,
) -> dict[str, Any]:
    points = [(at, value) for at, value in zip(times, values, strict=True) if value is not None]
    if newest_first:
        points.reverse()
    return {
        "Id": query.id,
        "Label": query.label,
        "StatusCode": "Complete",
        "Timestamps": [Instant(at) for at, _ in points],
        "Values": [float(value) for _, value in points],
    }
