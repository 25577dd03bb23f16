from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

import boto3
import pytest
from botocore.stub import ANY, Stubber

from dynamoheat import ModelParameters
from spillway import Settings, keys
from spillway.control.cloudwatch import capacity_through
from spillway.dynamodb.port import UnreachableError
from spillway.scaling.evidence import CapacityCheck, CapacityUse, infer_reasons
from spillway.scaling.policy import ThrottleTarget
from spillway.scaling.updates import ScalingKind
from tests.scaling.world import World, events_table
from tests.support.fakes import NOON

if TYPE_CHECKING:
    from types_boto3_cloudwatch import CloudWatchClient

FREE: Final = CapacityUse(100, 1_000)
USED_UP: Final = CapacityUse(800, 1_000)
ON_DEMAND: Final = CapacityUse(5_000, None)


@pytest.mark.parametrize(
    ("table", "index", "reasons"),
    [
        (FREE, FREE, {"TableWriteKeyRange", "IndexWriteKeyRange"}),
        (ON_DEMAND, ON_DEMAND, {"TableWriteKeyRange", "IndexWriteKeyRange"}),
        (USED_UP, FREE, {"TableWriteProvisioned"}),
        (FREE, USED_UP, {"IndexWriteProvisioned"}),
        (USED_UP, USED_UP, {"TableWriteProvisioned", "IndexWriteProvisioned"}),
        (CapacityUse(799, 1_000), FREE, {"TableWriteKeyRange", "IndexWriteKeyRange"}),
    ],
)
def test_capacity_near_its_limit_is_the_cause_and_else_key_ranges_are(
    table: CapacityUse, index: CapacityUse, reasons: set[str]
) -> None:
    found = infer_reasons({ThrottleTarget.TABLE: table, ThrottleTarget.INDEX: index})
    assert {each.reason for each in found} == {f"{name}ThroughputExceeded" for name in reasons}


class Metrics:
    """Figures as told, and how often they were asked for."""

    def __init__(self, use: CapacityUse | Exception) -> None:
        self.use = use
        self.asked = 0

    def __call__(self) -> dict[ThrottleTarget, CapacityUse]:
        self.asked += 1
        if isinstance(self.use, Exception):
            raise self.use
        return dict.fromkeys(ThrottleTarget, self.use)


def test_the_metrics_are_asked_for_once_a_minute() -> None:
    metrics, now = Metrics(FREE), [0.0]
    check = CapacityCheck(metrics, lambda: now[0])
    first = check.reasons()
    metrics.use = USED_UP
    now[0] = 59
    assert check.reasons() == first
    now[0] = 60
    assert check.reasons() != first
    assert metrics.asked == 2


def test_metrics_out_of_reach_explain_nothing_and_are_left_alone_for_a_minute() -> None:
    metrics = Metrics(UnreachableError("x", ""))
    check = CapacityCheck(metrics, lambda: 0.0)
    assert check.reasons() == check.reasons() == ()
    assert metrics.asked == 1


def _without_reasons(*table: Any) -> World:
    world = World(*table)
    world.names_reasons = False
    return world


def _write(world: World, metrics: Metrics | None) -> int:
    store = world.store(Settings(shards=2), usage=None, capacity=metrics)
    return store.write(world.events(1_000, payload_bytes=4_000), timeout=8).accepted


@pytest.mark.parametrize("use", [FREE, ON_DEMAND])
def test_an_endpoint_without_reasons_grows_where_capacity_is_left(use: CapacityUse) -> None:
    world, metrics = _without_reasons(), Metrics(use)
    assert _write(world, metrics) == 1_000
    assert min(world.counts) >= 8
    assert metrics.asked == 1


def test_an_endpoint_without_reasons_grows_nothing_where_capacity_is_used_up() -> None:
    world, metrics = _without_reasons(), Metrics(USED_UP)
    _write(world, metrics)
    assert world.counts == (2, 1)
    assert set(world.kinds) == {ScalingKind.CAPACITY_LIMITED}
    assert "TableWriteProvisionedThroughputExceeded" in {
        each.reason for each in world.reported[0].throttling
    }


@pytest.mark.parametrize("metrics", [None, Metrics(UnreachableError("x", ""))])
def test_without_reasons_and_metrics_nothing_is_known_so_nothing_grows(
    metrics: Metrics | None,
) -> None:
    world = _without_reasons()
    _write(world, metrics)
    assert world.reported == []


def test_an_endpoint_that_names_reasons_is_believed_and_no_metric_asked_for() -> None:
    world, metrics = World(), Metrics(USED_UP)
    assert _write(world, metrics) == 1_000
    assert world.counts[0] >= 8
    limited = World(events_table(), ModelParameters(quota_wcu=400))
    _write(limited, metrics)
    assert limited.counts == (2, 1)
    assert metrics.asked == 0


@pytest.fixture
def client() -> Iterator["CloudWatchClient"]:
    made: CloudWatchClient = boto3.client(
        "cloudwatch",
        region_name="eu-central-1",
        aws_access_key_id="x",
        aws_secret_access_key="x",  # noqa: S106  no secret
    )
    yield made
    made.close()


def _asked(client: "CloudWatchClient", *results: tuple[str, dict[int, float]]) -> Callable[[], Any]:
    """Let CloudWatch answer with values by the minutes that they are old, and return the figures' source."""
    stub = Stubber(client)
    answers = [
        {
            "Id": name,
            "Timestamps": [
                datetime.fromtimestamp(NOON.timestamp() - 60 * age, UTC) for age in values
            ],
            "Values": list(values.values()),
        }
        for name, values in results
    ]
    expected = {"MetricDataQueries": ANY, "StartTime": ANY, "EndTime": NOON}
    stub.add_response("get_metric_data", {"MetricDataResults": answers}, expected)
    stub.activate()
    return capacity_through(client, "events", NOON.timestamp)


def test_cloudwatch_tells_what_is_consumed_and_provisioned_a_second(
    client: "CloudWatchClient",
) -> None:
    uses = _asked(
        client,
        ("consumed_table", {1: 30_000, 2: 48_000, 3: 6_000, 8: 600_000}),
        ("provisioned_table", {10: 500, 5: 1_000}),
        ("consumed_index", {2: 6_000}),
        ("provisioned_index", {}),
    )()
    assert uses == {
        ThrottleTarget.TABLE: CapacityUse(800, 1_000),
        ThrottleTarget.INDEX: CapacityUse(100, None),
    }


def test_a_table_that_is_idle_and_on_demand_has_no_figures(client: "CloudWatchClient") -> None:
    uses = _asked(client, ("provisioned_table", {5: 0}))()
    assert uses == dict.fromkeys(ThrottleTarget, CapacityUse(0, None))


def test_each_side_is_asked_for_with_its_own_dimensions(client: "CloudWatchClient") -> None:
    sent: list[dict[str, Any]] = []
    source = _asked(client)
    client.meta.events.register(
        "provide-client-params.cloudwatch.GetMetricData", lambda params, **_: sent.append(params)
    )
    source()
    (request,) = sent
    assert (request["EndTime"] - request["StartTime"]).total_seconds() == 900
    queries = {each["Id"]: each["MetricStat"] for each in request["MetricDataQueries"]}
    assert {name: (each["Period"], each["Stat"]) for name, each in queries.items()} == {
        "consumed_table": (60, "Sum"),
        "provisioned_table": (300, "Maximum"),
        "consumed_index": (60, "Sum"),
        "provisioned_index": (300, "Maximum"),
    }
    for name, each in queries.items():
        metric = each["Metric"]
        kind, side = name.split("_")
        assert metric["Namespace"] == "AWS/DynamoDB"
        assert metric["MetricName"] == f"{kind.title()}WriteCapacityUnits"
        dimensions = {pair["Name"]: pair["Value"] for pair in metric["Dimensions"]}
        assert dimensions.pop("TableName") == "events"
        assert dimensions == (
            {"GlobalSecondaryIndexName": keys.INDEX_NAME} if side == "index" else {}
        )


def test_a_cloudwatch_that_refuses_or_hangs_is_out_of_reach(client: "CloudWatchClient") -> None:
    stub = Stubber(client)
    stub.add_client_error("get_metric_data", "AccessDenied")
    stub.activate()
    with pytest.raises(UnreachableError):
        capacity_through(client, "events", NOON.timestamp)()
