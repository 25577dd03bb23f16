"""The adapter against the local cloud's real endpoints: alarms, insights and metrics as they come over the wire."""

from collections.abc import Callable, Iterable, Iterator, Sized
from threading import Event
from time import monotonic
from typing import TYPE_CHECKING, TypeVar
from uuid import uuid4

import boto3
import pytest
from botocore.config import Config
from botocore.exceptions import ClientError

from dynamoheat.serve.options import HeatOptions
from local.cloud import Cloud, running
from spillway import RefusedError, UnreachableError, keys
from spillway.control.capacity import (
    CapacityBounds,
    CapacityManager,
    TableThroughput,
    parse_throughput,
)
from spillway.control.cloudwatch import CloudWatchView
from spillway.control.hot_series import ThrottleInsights
from spillway.control.monitoring import Signal, SignalKind, parse_signal
from spillway.dynamodb.boto import call_through
from spillway.runtime import Runtime
from spillway.scaling.policy import ThrottleTarget
from spillway.scaling.updates import ScalingEvent, ScalingKind
from spillway.timestamps import format_epoch
from tests.support.engine_tables import create_tables

if TYPE_CHECKING:
    from types_boto3_cloudwatch import CloudWatchClient
    from types_boto3_dynamodb import DynamoDBClient

pytestmark = pytest.mark.cloud

SCALE = 60.0  # a minute of metrics lasts a second
PREFIX = "view-"
METRIC = "WriteKeyRangeThroughputThrottleEvents"
MAX_SECONDS = 300.0  # against hanging: what is waited for takes some seconds
# One write takes 20 seconds of its partition's 10 units, so that the next one throttles however
# slowly this machine writes.
PARTITION_WCU = 10
LARGE = "x" * 200 * 1_024

Found = TypeVar("Found", bound=Sized)


class Hot:
    """A table with insights, of partitions that take 10 units a second, and its view."""

    def __init__(self, cloud: Cloud) -> None:
        once = Config(retries={"total_max_attempts": 1})
        settings = cloud.client_settings()
        self.dynamodb: DynamoDBClient = boto3.client("dynamodb", config=once, **settings)
        self.cloudwatch: CloudWatchClient = boto3.client("cloudwatch", **settings)
        self.table, self.layouts = create_tables(self.dynamodb, uuid4().hex[:8])
        self.dynamodb.update_contributor_insights(
            TableName=self.table,
            ContributorInsightsAction="ENABLE",
            ContributorInsightsMode="THROTTLED_KEYS",
        )
        self.view = CloudWatchView(self.cloudwatch, self.table, PREFIX)
        self.now = Runtime().now

    def put(self, shards: Iterable[int], index_shard: int) -> None:
        """Put a large event into each shard in turn; let what throttles be."""
        for n, shard in enumerate(shards):
            time = format_epoch(self.now())
            item = {
                keys.PARTITION_KEY: {"S": keys.partition_key("ORD", shard)},
                keys.SORT_KEY: {"S": keys.sort_key(time, None, f"{n}")},
                keys.INDEX_PARTITION_KEY: {"S": keys.index_key("ORD", time[:13], index_shard)},
                keys.PAYLOAD: {"S": LARGE},
            }
            try:
                self.dynamodb.put_item(TableName=self.table, Item=item)
            except ClientError as error:
                assert "TableThroughput" in str(error) or "Throttl" in str(error)  # noqa: PT017

    def watch(self, name: str, index: bool) -> None:
        """Put an alarm that lasts for a minute after a throttle."""
        dimensions = [{"Name": "TableName", "Value": self.table}]
        if index:
            dimensions.append({"Name": "GlobalSecondaryIndexName", "Value": keys.INDEX_NAME})
        self.cloudwatch.put_metric_alarm(
            AlarmName=name,
            Namespace="AWS/DynamoDB",
            MetricName=METRIC,
            Dimensions=dimensions,  # type: ignore[arg-type]
            Statistic="Sum",
            Period=60,
            EvaluationPeriods=60,
            DatapointsToAlarm=1,
            Threshold=1,
            ComparisonOperator="GreaterThanOrEqualToThreshold",
            TreatMissingData="notBreaching",
        )


@pytest.fixture(scope="module")
def cloud() -> Iterator[Cloud]:
    limits = HeatOptions(partition_wcu=PARTITION_WCU, time_scale=SCALE)
    with running(deploys=False, heat=limits) as started:
        yield started


@pytest.fixture
def hot(cloud: Cloud) -> Hot:
    return Hot(cloud)


def until(find: Callable[[], Found], act: Callable[[], object]) -> Found:
    """Act until something is found, and return that."""
    deadline = monotonic() + MAX_SECONDS
    while not len(found := find()):
        assert monotonic() < deadline
        act()
        Event().wait(0.1)
    return found


def test_throttled_keys_lead_to_their_series_by_minute(hot: Hot) -> None:
    insights = ThrottleInsights(call_through(hot.dynamodb), hot.view, hot.table, monotonic)
    began = hot.now()
    throttled = until(
        lambda: insights.throttled(began - 300, hot.now()), lambda: hot.put([3, 3], 3)
    )
    found = throttled["ORD"]
    by_shard = found.since(began - 2, 8)  # slots of metrics begin on their minutes
    assert by_shard.keys() == {3}
    assert by_shard[3] == found.total > 0
    assert found.since(hot.now() + 2, 8) == {}


def test_writes_that_the_index_holds_up_are_counted_by_its_metric_alone(hot: Hot) -> None:
    began = hot.now()
    found = until(
        lambda: hot.view.index_throttles(began - 300, hot.now()),
        lambda: hot.put(range(100, 116), 0),
    )
    assert all(began - 2 <= at <= hot.now() and times > 0 for at, times in found.items())


def test_alarms_of_the_prefix_are_listed_while_they_are_in_alarm(hot: Hot) -> None:
    hot.watch("view-table", index=False)
    hot.watch("view-index", index=True)
    hot.watch("other-table", index=False)
    began = hot.now()
    (alarm,) = until(hot.view.in_alarm, lambda: hot.put([3, 3], 3))
    assert (alarm.name, alarm.fires) == ("view-table", True)
    assert began - 2 <= alarm.at <= hot.now() + 2
    found = parse_signal(alarm, events=hot.table, layouts=hot.layouts)
    assert found == Signal(SignalKind.KEY_RANGE, ThrottleTarget.TABLE, METRIC)


@pytest.mark.parametrize("target", ThrottleTarget)
def test_warm_throughput_is_raised_and_seen_by_who_describes_the_table(
    hot: Hot, target: ThrottleTarget
) -> None:
    call = call_through(hot.dynamodb)

    def described() -> TableThroughput:
        found = parse_throughput(call("DescribeTable", {"TableName": hot.table})["Table"], target)
        assert found is not None
        return found

    before = described()
    assert (before.active, before.write) == (True, 0)  # on demand
    told: list[ScalingEvent] = []
    bounds = CapacityBounds(warm=2 * before.warm_write)
    capacity = CapacityManager(call, hot.table, bounds, told.append, hot.now)
    assert capacity.warm(target, None, "ORD", "evidence") is not None
    after = described()
    assert (after.warm_write, after.warm_read) == (2 * before.warm_write, before.warm_read)
    assert [each.kind for each in told] == [ScalingKind.WARMED]


def test_what_cloudwatch_refuses_and_what_does_not_answer_are_told_apart(hot: Hot) -> None:
    with pytest.raises(RefusedError, match="ResourceNotFound"):
        hot.view.throttled_keys("no-such-rule", hot.now() - 60, hot.now())
    nowhere: CloudWatchClient = boto3.client(
        "cloudwatch",
        endpoint_url="http://127.0.0.1:9",
        region_name="us-east-1",
        aws_access_key_id="x",
        aws_secret_access_key="x",  # noqa: S106
        config=Config(connect_timeout=1, retries={"total_max_attempts": 1}),
    )
    view = CloudWatchView(nowhere, hot.table, PREFIX)
    for ask in (view.in_alarm, lambda: view.index_throttles(0, 60)):
        with pytest.raises(UnreachableError):
            ask()
