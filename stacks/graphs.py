"""Graphs of the dashboard: single metrics, expressions, capacity, and the cache."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from aws_cdk import Duration
from aws_cdk import aws_cloudwatch as cloudwatch

from spillway.cdk.settings import Capacity, OnDemand, Units

__all__ = ["HEIGHT", "cache_graphs", "capacity_graphs", "curve", "graph", "per_second", "sum_of"]

HEIGHT: Final = 6
_MINUTE: Final = Duration.minutes(1)


def curve(  # noqa: PLR0913  what a metric is made of
    namespace: str,
    name: str,
    dimensions: Mapping[str, str],
    label: str,
    *,
    statistic: str = "Sum",
    period: Duration = _MINUTE,
) -> cloudwatch.Metric:
    """Return one metric under a label."""
    return cloudwatch.Metric(
        namespace=namespace,
        metric_name=name,
        dimensions_map=dict(dimensions),
        statistic=statistic,
        period=period,
        label=label,
    )


def per_second(metric: cloudwatch.Metric, identifier: str, label: str) -> cloudwatch.MathExpression:
    """Return the rate of a counting metric: its sum over a period by the period's seconds."""
    return cloudwatch.MathExpression(
        expression=f"{identifier} / PERIOD({identifier})",
        using_metrics={identifier: metric},
        label=label,
        period=_MINUTE,
    )


def sum_of(
    weights: Mapping[str, tuple[float, cloudwatch.Metric]], label: str, period: Duration
) -> cloudwatch.MathExpression:
    """Return a weighted sum of metrics by identifier; metrics without data count as 0."""
    return cloudwatch.MathExpression(
        # Without exponents, which metric math does not document.
        expression=" + ".join(f"FILL({name}, 0) * {w:.14f}" for name, (w, _) in weights.items()),
        using_metrics={name: metric for name, (_, metric) in weights.items()},
        label=label,
        period=period,
    )


def graph(  # noqa: PLR0913  what a graph may show
    title: str,
    curves: Sequence[cloudwatch.IMetric],
    *,
    unit: str,
    right: Sequence[cloudwatch.IMetric] = (),
    right_unit: str = "",
    lines: Iterable[tuple[str, float]] = (),
    width: int = 8,
    stacked: bool = False,
) -> cloudwatch.GraphWidget:
    """Return a graph from zero up; `lines` are labelled values across it."""
    return cloudwatch.GraphWidget(
        title=title,
        left=list(curves),
        right=list(right),
        left_y_axis=cloudwatch.YAxisProps(label=unit, min=0, show_units=False),
        right_y_axis=cloudwatch.YAxisProps(label=right_unit, min=0, show_units=False),
        left_annotations=[
            cloudwatch.HorizontalAnnotation(label=label, value=value) for label, value in lines
        ],
        width=width,
        height=HEIGHT,
        stacked=stacked,
    )


# What a new table and a new index take at once, where the stage states no maximum.
_NEW_TABLE: Final = Units(write=4_000, read=12_000)


def capacity_graphs(
    capacity: Capacity, table: Mapping[str, str], index: Mapping[str, str]
) -> Iterator[cloudwatch.IWidget]:
    """Yield a graph of write units and one of read units.

    `table` and `index` are the dimensions of their metrics.
    """
    places = {"table": table, "index": index}
    for kind in ("Write", "Read"):
        curves: list[cloudwatch.IMetric] = [*_consumed(kind, places)]
        if not isinstance(capacity, OnDemand):
            curves += _provisioned(kind, places)
        yield graph(
            f"{kind} units consumed and available",
            curves,
            unit="a second",
            lines=_limits(kind, capacity),
            width=12,
        )


def _consumed(
    kind: str, places: Mapping[str, Mapping[str, str]]
) -> Iterator[cloudwatch.MathExpression]:
    for name, dimensions in places.items():
        metric = f"Consumed{kind}CapacityUnits"
        consumed = curve("AWS/DynamoDB", metric, dimensions, metric)
        yield per_second(consumed, f"{kind.lower()}_{name}", f"{name}: consumed")


def _provisioned(kind: str, places: Mapping[str, Mapping[str, str]]) -> Iterator[cloudwatch.Metric]:
    for name, dimensions in places.items():
        metric = f"Provisioned{kind}CapacityUnits"
        yield curve("AWS/DynamoDB", metric, dimensions, f"{name}: available", statistic="Average")


def _limits(kind: str, capacity: Capacity) -> Iterator[tuple[str, float]]:
    if not isinstance(capacity, OnDemand):
        return
    maximum, new = (
        units.write if kind == "Write" else units.read for units in (capacity.maximum, _NEW_TABLE)
    )
    if maximum is not None:
        yield "maximum of table and index each", maximum
    elif new is not None:
        yield "what a new table takes at once", new


def cache_graphs(cluster: str, failures: cloudwatch.IMetric) -> Iterator[cloudwatch.IWidget]:
    """Yield graphs of DAX's answers, its failures and its load.

    `failures` is the metric by which functions count failed reads.
    """
    of_cluster = {"ClusterId": cluster}

    def dax(name: str, label: str, statistic: str = "Sum") -> cloudwatch.Metric:
        return curve("AWS/DAX", name, of_cluster, label, statistic=statistic)

    answers = [
        dax("QueryCacheHits", "ranges: hits"),
        dax("QueryCacheMisses", "ranges: misses"),
        dax("ItemCacheHits", "layouts: hits"),
        dax("ItemCacheMisses", "layouts: misses"),
    ]
    yield graph("DAX", answers, unit="a minute")
    faults = [
        failures,
        dax("FaultRequestCount", "faults of DAX"),
        dax("ErrorRequestCount", "refused by DAX"),
    ]
    yield graph("DAX failures", faults, unit="a minute")
    load = [
        dax("CPUUtilization", "CPU", "Maximum"),
        dax("CacheMemoryUtilization", "memory", "Maximum"),
    ]
    yield graph("DAX load of the busiest node", load, unit="%")
