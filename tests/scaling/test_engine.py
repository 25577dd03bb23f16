"""The requests of scaling as DynamoDB's engine takes them."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import pytest

from local.engine import EngineProcess
from spillway import Settings, keys
from spillway.dynamodb.boto import call_through
from spillway.dynamodb.port import Call
from spillway.layouts.model import GrowthStop
from spillway.layouts.repository import LayoutRepository
from spillway.scaling.usage import UsageReader, UsageRecorder, UsageSample, WriteDemand
from tests.support.clients import client_with
from tests.support.engine_tables import create_tables
from tests.support.fakes import FakeClock, undated

if TYPE_CHECKING:
    from types_boto3_dynamodb import DynamoDBClient

pytestmark = pytest.mark.engine
USAGE: Final = "usage-of-scaling"


@dataclass
class Tables:
    call: Call
    layouts: str


@pytest.fixture(scope="module")
def tables(engine: EngineProcess) -> Iterator[Tables]:
    client = client_with(engine.url)
    _, layouts = create_tables(client, "scaling")
    _create_usage(client)
    yield Tables(undated(call_through(client)), layouts)
    client.close()


def _create_usage(client: "DynamoDBClient") -> None:
    client.create_table(
        TableName=USAGE,
        BillingMode="PAY_PER_REQUEST",
        AttributeDefinitions=[
            {"AttributeName": keys.USAGE_KEY, "AttributeType": "S"},
            {"AttributeName": keys.USAGE_SORT_KEY, "AttributeType": "N"},
        ],
        KeySchema=[
            {"AttributeName": keys.USAGE_KEY, "KeyType": "HASH"},
            {"AttributeName": keys.USAGE_SORT_KEY, "KeyType": "RANGE"},
        ],
    )


def test_recorded_usage_adds_up_and_is_read_back(tables: Tables) -> None:
    clock = FakeClock()
    begun = int(clock.seconds)
    recorders = [UsageRecorder(tables.call, USAGE, clock.now, lambda: 0.0) for _ in range(2)]
    demands: list[WriteDemand | None] = []
    for second in range(25):
        demands += [
            recorder.record("ORD", 500, lambda: UsageSample(2_000.5, 1_000, 500))
            for recorder in recorders
        ]
        clock.seconds = begun + second + 1
    last = demands[-1]
    assert last is not None
    assert last.events == pytest.approx(1_000)
    asked = recorders[0].demand("ORD")
    assert asked is not None
    assert asked.table_units == pytest.approx(4_001)
    windows = UsageReader(tables.call, USAGE).windows("ORD", begun, clock.seconds)
    assert [each.start - begun for each in windows] == [0, 10, 20]
    assert [each.usage for each in windows] == [
        UsageSample(40_010, 20_000, 10_000),
        UsageSample(40_010, 20_000, 10_000),
        UsageSample(20_005, 10_000, 5_000),
    ]
    assert sum(recorder.failures for recorder in recorders) == 0


def test_a_day_of_windows_comes_back_over_several_pages(tables: Tables) -> None:
    clock = FakeClock(seconds=1_700_000_000)
    recorder = UsageRecorder(tables.call, USAGE, clock.now, lambda: 0.0)
    series = "busy" * 250  # long names make pages short
    for _ in range(1_100):
        recorder.record(series, 500, lambda: UsageSample(123_456.789, 123_456.789, 500))
        clock.seconds += 10
    asked: list[str] = []

    def counting(operation: str, request: Mapping[str, Any], /) -> dict[str, Any]:
        asked.append(operation)
        return tables.call(operation, request)

    windows = UsageReader(counting, USAGE).windows(series, 1_700_000_000, clock.seconds)
    assert asked == ["Query", "Query"]
    assert len(windows) == 1_100
    assert windows == sorted(windows, key=lambda each: each.start)


def test_a_stop_is_noted_on_a_layout_and_leaves_the_version_alone(tables: Tables) -> None:
    store = LayoutRepository(tables.call, tables.layouts, Settings(), FakeClock().now)
    version = store.read_or_create("ORD").layout.version
    stop = GrowthStop(reason="hot_sharding_key", at=1_780_315_200.5, hot_sharding_keys=("a", "b"))
    store.record_stop("ORD", stop)
    store.record_stop("unknown", stop)
    found = store.read("ORD")
    assert found is not None
    assert (found.layout.stop, found.layout.version) == (stop, version)
    assert store.read("unknown") is None
