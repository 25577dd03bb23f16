"""Reads metric data as it is put: by PutMetricData, and as MiniStack recorded it by itself."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from local.cloudwatch.errors import CloudWatchError, invalid, missing
from local.cloudwatch.parameters import Parameters, entries, instant, integer, number, text
from local.cloudwatch.samples import Samples
from local.cloudwatch.store import MINUTE, Metric, MetricStore, MetricTime

__all__ = ["dimensions", "put", "put_recorded"]

_MAX_DATA: Final = 1000
_MAX_DIMENSIONS: Final = 30
_MAX_VALUES: Final = 150


@dataclass(frozen=True, slots=True)
class _Datum:
    metric: Metric
    at: float  # wall time
    samples: Samples
    unit: str
    resolution: int


def put(asked: Parameters, store: MetricStore, time: MetricTime, now: float) -> dict[str, Any]:
    """Store the data of a PutMetricData request, all or none; `now` is wall time.

    Raises:
        CloudWatchError: Something is missing or out of range.
    """
    namespace = text(asked, "Namespace")
    found = entries(asked, "MetricData")
    if not found:
        raise missing("MetricData")
    if len(found) > _MAX_DATA:
        raise invalid(f"The collection MetricData must not have a size greater than {_MAX_DATA}.")
    data = [
        _datum(namespace, _named(entry, f"MetricData.member.{at}"), now)
        for at, entry in enumerate(found, 1)
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


def put_recorded(recorded: Iterable[Parameters], store: MetricStore, time: MetricTime) -> None:
    """Store what MiniStack recorded: metrics of Lambda, and those that functions wrote into their logs."""
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


def dimensions(asked: Parameters) -> frozenset[tuple[str, str]]:
    """Return the dimensions that a request states."""
    pairs = [_named(entry, "Dimensions") for entry in entries(asked, "Dimensions")]
    if len(pairs) > _MAX_DIMENSIONS:
        raise invalid(f"The collection Dimensions must not exceed {_MAX_DIMENSIONS}.")
    return frozenset((text(pair, "Name"), text(pair, "Value")) for pair in pairs)


def _named(entry: Any, name: str) -> Mapping[str, Any]:
    if not isinstance(entry, Mapping):
        raise invalid(f"The parameter {name} must be a structure.")
    return entry


def _datum(namespace: str, entry: Parameters, now: float) -> _Datum:
    resolution = integer(entry, "StorageResolution", MINUTE)
    if resolution not in (1, MINUTE):
        raise invalid("The parameter StorageResolution must be 1 or 60.")
    return _Datum(
        Metric(namespace, text(entry, "MetricName"), dimensions(entry)),
        instant(entry, "Timestamp", now),
        _samples(entry),
        entry.get("Unit") or "None",
        resolution,
    )


def _samples(entry: Parameters) -> Samples:
    stated = [
        name for name in ("Value", "Values", "StatisticValues") if entry.get(name) is not None
    ]
    if len(stated) != 1:
        raise CloudWatchError(
            "InvalidParameterCombination",
            "Each datum must have exactly one of Value, Values and StatisticValues.",
            kind="InvalidParameterCombinationException",
        )
    if stated == ["Value"]:
        return Samples.of(number(entry, "Value"))
    if stated == ["Values"]:
        return _counted(entry)
    found = _named(entry["StatisticValues"], "StatisticValues")
    return Samples.of_set(
        *(number(found, name) for name in ("SampleCount", "Sum", "Minimum", "Maximum"))
    )


def _counted(entry: Parameters) -> Samples:
    values = entries(entry, "Values")
    counts = entries(entry, "Counts") or [1] * len(values)
    if not 0 < len(values) <= _MAX_VALUES or len(counts) != len(values):
        raise invalid(f"Values and Counts must have the same size, of 1 to {_MAX_VALUES}.")
    samples = Samples()
    for value, count in zip(values, counts, strict=True):
        samples.add(number({"Values": value}, "Values"), number({"Counts": count}, "Counts"))
    return samples


def _recorded_samples(point: Parameters) -> Samples:
    stated = point.get("_stat")
    if stated:
        names = ("SampleCount", "Sum", "Minimum", "Maximum")
        return Samples.of_set(*(float(stated.get(name, 0)) for name in names))
    samples = Samples()
    samples.add(float(point["Value"]), float(point.get("Count", 1.0)))
    return samples
