"""The `AWS/DynamoDB` metrics: what the model's meters counted, as CloudWatch shows it.

| metric | value, and what its SampleCount counts |
|---|---|
| Consumed{Read,Write}CapacityUnits | Sum: units; SampleCount: items or pages. Minimum and Maximum are the mean, since the meters add up |
| Provisioned{Read,Write}CapacityUnits | units a second, every minute, of what is provisioned |
| OnDemandMax{Read,Write}RequestUnits | the same of an on-demand maximum |
| {Read,Write}ThrottleEvents and those of each reason | 1 an item that was refused |
| ThrottledRequests | 1 a request that failed as a whole; its dimensions are TableName and Operation |

Dimensions: TableName, and GlobalSecondaryIndexName for an index. What an index refused counts there alone,
never under TableName by itself. As in AWS, nothing comes from minutes without traffic but what is provisioned.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final
from weakref import WeakKeyDictionary

from dynamoheat import Heat, Meter, Resource, Slot
from local.cloudwatch.samples import Samples
from local.cloudwatch.store import MINUTE, Metric, MetricStore, MetricTime

__all__ = ["NAMESPACE", "ThroughputMetrics"]

NAMESPACE: Final = "AWS/DynamoDB"


@dataclass(frozen=True, slots=True)
class _Figure:
    metric: Metric
    samples: Samples


class ThroughputMetrics:
    """Carries closed minutes from the model's meters into the store, each once."""

    def __init__(self, heat: Heat, store: MetricStore, time: MetricTime) -> None:
        """Take the model; its clock is wall time."""
        self._heat = heat
        self._store = store
        self._time = time
        self._seen: WeakKeyDictionary[Resource, float] = WeakKeyDictionary()  # start of a slot
        self._minute = 0

    def collect(self, now: float) -> None:
        """Put every minute that is over and was not put yet; call it once a minute or more often."""
        minute = self._time.seconds(now) // MINUTE
        for table in list(self._heat.tables.values()):
            for resource in table.resources():
                self._collect(resource, now)
                if minute > self._minute:
                    self._put(_settings(resource), (minute - 1) * MINUTE)
        self._minute = minute

    def _collect(self, resource: Resource, now: float) -> None:
        meter = resource.meter
        meter.advance(now)
        for slot in _closed_since(meter, self._seen.get(resource, float("-inf"))):
            self._seen[resource] = slot.start
            self._put(_traffic(resource, slot), self._time.seconds(slot.start + meter.period / 2))

    def _put(self, figures: Iterator[_Figure], at: int) -> None:
        for figure in figures:
            self._store.put(figure.metric, at, figure.samples, unit="Count")


def _closed_since(meter: Meter, seen: float) -> list[Slot]:
    found: list[Slot] = []
    for slot in reversed(meter.closed):
        if slot.start <= seen:
            break
        found.append(slot)
    return found[::-1]


def _metric(resource: Resource, name: str, more: Mapping[str, str] | None = None) -> Metric:
    dimensions = {"TableName": resource.table, **(more or {})}
    if resource.index is not None:
        dimensions["GlobalSecondaryIndexName"] = resource.index
    return Metric(NAMESPACE, name, frozenset(dimensions.items()))


def _traffic(resource: Resource, slot: Slot) -> Iterator[_Figure]:
    for kind, units, count in (
        ("Write", slot.consumed_write, slot.writes),
        ("Read", slot.consumed_read, slot.reads),
    ):
        if count > 0 and units >= 0:  # a late correction may leave less than nothing
            name = f"Consumed{kind}CapacityUnits"
            yield _Figure(_metric(resource, name), _alike(units, count))
    for name, count in _refusals(slot).items():
        yield _Figure(_metric(resource, name), _ones(count))
    for operation, count in slot.requests.items():
        metric = _metric(resource, "ThrottledRequests", {"Operation": operation})
        yield _Figure(metric, _ones(count))


def _refusals(slot: Slot) -> dict[str, int]:
    events = {str(reason.metric): count for reason, count in slot.throttled.items()}
    totals = {
        "ReadThrottleEvents": slot.read_throttle_events,
        "WriteThrottleEvents": slot.write_throttle_events,
    }
    return {name: count for name, count in (events | totals).items() if count}


def _settings(resource: Resource) -> Iterator[_Figure]:
    for kind, rates in (("Read", resource.reads), ("Write", resource.writes)):
        if resource.provisioned:
            name, value = f"Provisioned{kind}CapacityUnits", rates.provisioned
        elif rates.maximum is not None:
            name, value = f"OnDemandMax{kind}RequestUnits", rates.maximum
        else:
            continue
        yield _Figure(_metric(resource, name), Samples.of(value))


def _alike(total: float, count: int) -> Samples:
    return Samples.of_set(count, total, total / count, total / count)


def _ones(count: int) -> Samples:
    samples = Samples()
    samples.add(1.0, count)
    return samples
