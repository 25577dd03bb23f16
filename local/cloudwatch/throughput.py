"""The `AWS/DynamoDB` metrics, from the model's meters.

| metric | value, and what its SampleCount counts |
|---|---|
| Consumed{Read,Write}CapacityUnits | Sum: units; SampleCount: items or pages (see below) |
| Provisioned{Read,Write}CapacityUnits | provisioned units a second, every minute |
| OnDemandMax{Read,Write}RequestUnits | the on-demand maximum, every minute |
| {Read,Write}ThrottleEvents, and one for each reason | 1 for each refused item |
| ThrottledRequests | 1 for each failed request; its dimensions are TableName and Operation |

Minimum and Maximum of the consumed units are their mean, because the meters keep sums only.

Dimensions: TableName, and GlobalSecondaryIndexName for an index. What an index refuses counts under
the index, never under TableName alone. As in AWS, a minute without traffic has only the metrics of
provisioned capacity and of on-demand maxima.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final
from weakref import WeakKeyDictionary

from dynamoheat import Heat, Meter, Resource, Slot
from local.cloudwatch.metric_store import MINUTE, Metric, MetricStore, MetricTime, Samples

__all__ = ["NAMESPACE", "ThroughputMetrics"]

NAMESPACE: Final = "AWS/DynamoDB"


@dataclass(frozen=True, slots=True)
class _Figure:
    metric: Metric
    samples: Samples


class ThroughputMetrics:
    """Copies each minute of the model's meters into the store, once it is over."""

    def __init__(self, heat: Heat, store: MetricStore, time: MetricTime) -> None:
        """Take the model; its clock is wall time."""
        self._heat = heat
        self._store = store
        self._time = time
        self._copied: WeakKeyDictionary[Resource, float] = WeakKeyDictionary()  # start of a slot
        self._minute = 0

    def collect(self, now: float) -> None:
        """Copy every minute that is over and not copied yet. Call it at least once a minute."""
        minute = self._time.seconds(now) // MINUTE
        for table in list(self._heat.tables.values()):
            for resource in table.resources():
                self._collect(resource, now)
                if minute > self._minute:
                    self._put(_capacity_figures(resource), (minute - 1) * MINUTE)
        self._minute = minute

    def _collect(self, resource: Resource, now: float) -> None:
        meter = resource.meter
        meter.advance(now)
        for slot in _closed_since(meter, self._copied.get(resource, float("-inf"))):
            self._copied[resource] = slot.start
            self._put(
                _traffic_figures(resource, slot), self._time.seconds(slot.start + meter.period / 2)
            )

    def _put(self, figures: Iterator[_Figure], at: int) -> None:
        for figure in figures:
            self._store.put(figure.metric, at, figure.samples, unit="Count")


def _closed_since(meter: Meter, start: float) -> list[Slot]:
    slots: list[Slot] = []
    for slot in reversed(meter.closed):
        if slot.start <= start:
            break
        slots.append(slot)
    return slots[::-1]


def _metric(resource: Resource, name: str, extra: Mapping[str, str] | None = None) -> Metric:
    dimensions = {"TableName": resource.table, **(extra or {})}
    if resource.index is not None:
        dimensions["GlobalSecondaryIndexName"] = resource.index
    return Metric(NAMESPACE, name, frozenset(dimensions.items()))


def _traffic_figures(resource: Resource, slot: Slot) -> Iterator[_Figure]:
    for kind, units, count in (
        ("Write", slot.consumed_write, slot.writes),
        ("Read", slot.consumed_read, slot.reads),
    ):
        if count > 0 and units >= 0:  # a late correction may leave less than nothing
            name = f"Consumed{kind}CapacityUnits"
            yield _Figure(_metric(resource, name), _equal_samples(units, count))
    for name, count in _throttle_counts(slot).items():
        yield _Figure(_metric(resource, name), _ones(count))
    for operation, count in slot.requests.items():
        metric = _metric(resource, "ThrottledRequests", {"Operation": operation})
        yield _Figure(metric, _ones(count))


def _throttle_counts(slot: Slot) -> dict[str, int]:
    events = {str(reason.metric): count for reason, count in slot.throttled.items()}
    totals = {
        "ReadThrottleEvents": slot.read_throttle_events,
        "WriteThrottleEvents": slot.write_throttle_events,
    }
    return {name: count for name, count in (events | totals).items() if count}


def _capacity_figures(resource: Resource) -> Iterator[_Figure]:
    for kind, rates in (("Read", resource.reads), ("Write", resource.writes)):
        if resource.provisioned:
            name, value = f"Provisioned{kind}CapacityUnits", rates.provisioned
        elif rates.maximum is not None:
            name, value = f"OnDemandMax{kind}RequestUnits", rates.maximum
        else:
            continue
        yield _Figure(_metric(resource, name), Samples.of(value))


def _equal_samples(total: float, count: int) -> Samples:
    return Samples.of_set(count, total, total / count, total / count)


def _ones(count: int) -> Samples:
    samples = Samples()
    samples.add(1.0, count)
    return samples
