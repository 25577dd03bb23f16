"""Graphs of what is consumed against what there is: capacity units, and the cache before them."""

from collections.abc import Iterator, Mapping
from typing import Final

from aws_cdk import aws_cloudwatch as cloudwatch

from stacks.graphs import curve, graph, per_second
from stacks.settings import Capacity, OnDemand, Units

__all__ = ["cache_graphs", "capacity_graphs"]

# What a new table and a new index take at once, where the stage states no maximum.
_NEW_ON_DEMAND: Final = Units(write=4_000, read=12_000)


def capacity_graphs(
    capacity: Capacity, table: Mapping[str, str], index: Mapping[str, str]
) -> Iterator[cloudwatch.IWidget]:
    """Yield a graph of write units and one of read units, by the dimensions of the table and of its index."""
    places = {"table": table, "index": index}
    for kind in ("Write", "Read"):
        curves: list[cloudwatch.IMetric] = [*_consumed(kind, places)]
        if not isinstance(capacity, OnDemand):
            curves += _provisioned(kind, places)
        yield graph(
            f"{kind} units consumed and there",
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
        yield curve("AWS/DynamoDB", metric, dimensions, f"{name}: there", statistic="Average")


def _limits(kind: str, capacity: Capacity) -> Iterator[tuple[str, float]]:
    if not isinstance(capacity, OnDemand):
        return
    maximum, new = (
        units.write if kind == "Write" else units.read
        for units in (capacity.maximum, _NEW_ON_DEMAND)
    )
    if maximum is not None:
        yield "maximum of table and index each", maximum
    elif new is not None:
        yield "what a new table takes at once", new


def cache_graphs(cluster: str, failures: cloudwatch.IMetric) -> Iterator[cloudwatch.IWidget]:
    """Yield graphs of DAX's answers, of its failures beside those that functions counted, and of its load."""
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
