"""The model's meters as `AWS/DynamoDB` metrics, under the right dimensions, each minute once."""

from collections.abc import Iterable, Iterator
from typing import Any

import pytest

from dynamoheat import Heat, IndexSettings, Key, ModelParameters, TableSettings
from dynamoheat import ThroughputSettings as Limits
from local.cloudwatch.metric_store import Metric, MetricStore, MetricTime, PeriodGrid
from local.cloudwatch.throughput import NAMESPACE, ThroughputMetrics

TABLE = {"TableName": "T"}
INDEX = {**TABLE, "GlobalSecondaryIndexName": "I"}
INDEXES = (IndexSettings(name="I", key=Key("G")),)


class Scene:
    """A table with an index whose partitions take ten writes a second, from the epoch on."""

    def __init__(self, *, scale: float = 1.0, **settings: Any) -> None:
        limits = ModelParameters(partition_wcu=10, time_scale=scale)
        self.heat = Heat(limits)
        self.heat.create_table(
            TableSettings(name="T", key=Key("P"), indexes=INDEXES, **settings), 0.0
        )
        self.store = MetricStore()
        self.time = MetricTime(scale)
        self.throughput = ThroughputMetrics(self.heat, self.store, self.time)

    def put(self, count: int, now: float, group: str | None = None) -> list[str]:
        """Put items one by one, alike or each under a key of its own; return what refused them."""
        refused = []
        for at in range(count):
            item = {"P": {"S": "hot" if group is None else f"{now} {at}"}}
            item |= {} if group is None else {"G": {"S": group}}
            admission = self.heat.admit("PutItem", {"TableName": "T", "Item": item}, now)
            refused += [throttle.resource for throttle in admission.throttles]
        return refused

    def value(
        self, name: str, dimensions: dict[str, str], minute: int = 0, statistic: str = "Sum"
    ) -> float | None:
        metric = Metric(NAMESPACE, name, frozenset(dimensions.items()))
        return self.store.values(metric, statistic, PeriodGrid(60 * minute, 60, 1))[0]

    def names(self) -> Iterable[str]:
        return {metric.name for metric in self.store.metrics()}


EVENTS = ("WriteKeyRangeThroughputThrottleEvents", "WriteThrottleEvents")


def test_what_a_table_refuses_counts_under_the_table_alone() -> None:
    scene = Scene()
    assert set(scene.put(50, 1.0)) == {"table/T"}
    scene.throughput.collect(60.0)
    assert [scene.value(name, TABLE) for name in EVENTS] == [40, 40]
    assert [scene.value(name, INDEX) for name in EVENTS] == [None, None]
    assert scene.value("ThrottledRequests", {**TABLE, "Operation": "PutItem"}) == 40
    assert scene.value("ConsumedWriteCapacityUnits", TABLE) == 10
    assert scene.value("ConsumedWriteCapacityUnits", TABLE, statistic="SampleCount") == 10


def test_what_an_index_refuses_counts_under_the_index_and_never_under_the_table_alone() -> None:
    scene = Scene(throughput=Limits(warm_write=5000))
    refused = scene.put(60, 1.0, group="hot")
    assert set(refused) == {"table/T/index/I"}
    scene.throughput.collect(60.0)
    assert [scene.value(name, INDEX) for name in EVENTS] == [len(refused)] * 2
    assert [scene.value(name, TABLE) for name in EVENTS] == [None, None]
    assert scene.value("ConsumedWriteCapacityUnits", INDEX) == 60 - len(refused)


def test_reads_count_as_reads() -> None:
    scene = Scene()
    for _ in range(200):
        scene.heat.admit("GetItem", {"TableName": "T", "Key": {"P": {"S": "a"}}}, 1.0)
    before = scene.heat.resource("T").meter.total
    scene.throughput.collect(60.0)
    assert scene.value("ConsumedReadCapacityUnits", TABLE) == before.consumed_read
    assert "ConsumedWriteCapacityUnits" not in scene.names()


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"throughput": Limits(max_write=2)}, "MaxOnDemandThroughput"),
        (
            {"throughput": Limits(provisioned_write=2), "provisioned": True},
            "ProvisionedThroughput",
        ),
    ],
)
def test_each_reason_has_its_own_metric(settings: dict[str, Any], reason: str) -> None:
    scene = Scene(**settings)
    refused = scene.put(9, 1.0)
    scene.throughput.collect(60.0)
    assert scene.value(f"Write{reason}ThrottleEvents", TABLE) == len(refused) > 0
    assert "WriteKeyRangeThroughputThrottleEvents" not in scene.names()


def test_provisioned_capacity_shows_every_minute_without_traffic() -> None:
    scene = Scene(provisioned=True, throughput=Limits(provisioned_write=7, provisioned_read=3))
    for now in (61.0, 90.0, 120.0):
        scene.throughput.collect(now)
    for minute in (0, 1):
        assert scene.value("ProvisionedWriteCapacityUnits", TABLE, minute, "Average") == 7
        assert scene.value("ProvisionedReadCapacityUnits", TABLE, minute, "SampleCount") == 1
    assert scene.value("ProvisionedWriteCapacityUnits", TABLE, 2) is None


def test_an_on_demand_maximum_shows() -> None:
    scene = Scene(throughput=Limits(max_write=2))
    scene.throughput.collect(60.0)
    assert scene.names() == {"OnDemandMaxWriteRequestUnits"}


def moments() -> Iterator[float]:
    yield from (5.0, 59.9, 60.0, 60.1, 119.0, 125.0, 240.0)


def test_every_minute_is_put_once_however_often_it_is_collected() -> None:
    scene = Scene()
    for now in moments():
        scene.put(3, now)
        scene.throughput.collect(now)
        scene.throughput.collect(now)
    scene.throughput.collect(600.0)
    found = [scene.value("ConsumedWriteCapacityUnits", TABLE, minute) for minute in range(6)]
    assert found == [6, 9, 3, None, 3, None]


def test_nothing_shows_before_its_minute_is_over() -> None:
    scene = Scene()
    scene.put(3, 1.0)
    scene.throughput.collect(59.9)
    assert scene.names() == set()


def test_minutes_are_as_short_as_the_time_scale_makes_them() -> None:
    scene = Scene(scale=60)
    scene.put(3, 0.5)
    scene.put(4, 1.5)
    scene.throughput.collect(2.0)
    found = [scene.value("ConsumedWriteCapacityUnits", TABLE, minute) for minute in range(3)]
    assert found == [3, 4, None]


def test_a_table_made_anew_begins_anew() -> None:
    scene = Scene()
    scene.put(3, 1.0)
    scene.throughput.collect(61.0)
    scene.heat.create_table(TableSettings(name="T", key=Key("P")), 62.0)
    scene.put(2, 63.0)
    scene.throughput.collect(120.0)
    assert scene.value("ConsumedWriteCapacityUnits", TABLE, 1) == 2
