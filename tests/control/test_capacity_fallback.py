"""What the ingest function asks CloudWatch where an endpoint throttles without a reason."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import pytest

from lambdas import environment
from spillway import Event, Runtime, ThrottledError
from spillway.cdk.access import READS_CAPACITY
from spillway.scaling.updates import ScalingEvent, ScalingKind
from tests.api.conftest import ENVIRONMENT
from tests.support.memory_table import MemoryTable, memory_table

CAPACITY = 10


class Clients:
    """Clients as `open_client` makes them: DynamoDB in memory, CloudWatch with full use of capacity."""

    def __init__(self) -> None:
        self.tables: MemoryTable = memory_table()
        self.throttles = True
        self.opened: list[str] = []
        self.calls: set[str] = set()

    def open(self, service: str, _: object) -> Any:
        self.opened.append(service)
        return self if service == "cloudwatch" else self.call

    def call(self, operation: str, request: Mapping[str, Any], /) -> dict[str, Any]:
        if self.throttles and operation in {"BatchWriteItem", "PutItem"}:
            raise ThrottledError("ThrottlingException", "")
        return self.tables(operation, request)

    def get_metric_data(self, **request: Any) -> dict[str, Any]:
        self.calls.add("cloudwatch:GetMetricData")
        now = request["EndTime"]
        figures = {"consumed": 60 * CAPACITY, "provisioned": CAPACITY}
        return {
            "MetricDataResults": [
                {
                    "Id": query["Id"],
                    "Timestamps": [now],
                    "Values": [figures[query["Id"].partition("_")[0]]],
                }
                for query in request["MetricDataQueries"]
            ]
        }


@pytest.fixture
def clients(monkeypatch: pytest.MonkeyPatch) -> Clients:
    clients = Clients()
    monkeypatch.setattr(environment, "open_client", clients.open)
    return clients


def _write(clients: Clients, reported: list[ScalingEvent], **variables: str) -> None:
    store = environment.open_store(
        environment.read_environment({**ENVIRONMENT, **variables}), reported.append
    )
    assert clients.opened == ["dynamodb"], "a cold start pays for no other client"
    event = Event(
        series="ORD",
        time=datetime.fromtimestamp(Runtime().now(), UTC),
        id="1",
        payload={"delay": 33},
    )
    store.write([event], timeout=1)


def test_capacity_that_is_used_up_is_told_by_cloudwatch_and_by_no_call_beyond_the_rights(
    clients: Clients,
) -> None:
    reported: list[ScalingEvent] = []
    _write(clients, reported)
    assert clients.opened == ["dynamodb", "cloudwatch"]
    assert {event.kind for event in reported} == {ScalingKind.CAPACITY_LIMITED}
    assert clients.calls == set(READS_CAPACITY.anything)


def test_what_does_not_throttle_asks_cloudwatch_nothing(clients: Clients) -> None:
    clients.throttles = False
    _write(clients, [])
    assert clients.opened == ["dynamodb"]


def test_writers_that_do_not_grow_ask_cloudwatch_nothing(clients: Clients) -> None:
    _write(clients, [], SPILLWAY_GROW="false")
    assert clients.opened == ["dynamodb"]
