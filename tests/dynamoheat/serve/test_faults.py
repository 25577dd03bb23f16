"""Faults: what their texts mean, what a client sees of each, and whether its write happened."""

import asyncio
from random import Random
from typing import TYPE_CHECKING, Any

import pytest
from botocore.exceptions import ConnectionClosedError, ReadTimeoutError

from dynamoheat.serve.faults import Faults, parse_fault
from dynamoheat.serve.wire import EndpointCall, Reply, refusal
from local.engine import EngineProcess
from tests.dynamoheat.serve.serving import Endpoint, endpoint, make_table, put, refusal_of

if TYPE_CHECKING:
    from collections.abc import Iterator


PUT = EndpointCall("PutItem", b"{}", {})


@pytest.fixture(scope="module")
def faulty(engine: EngineProcess) -> "Iterator[Endpoint]":
    with endpoint(engine.url, seed=7) as running:
        yield running


@pytest.fixture
def table(faulty: Endpoint) -> "Iterator[str]":
    yield make_table(faulty.engine())
    faulty.set_faults()


def written(faulty: Endpoint, table: str) -> int:
    return faulty.engine().scan(TableName=table, ConsistentRead=True)["Count"]


@pytest.mark.engine
@pytest.mark.parametrize(
    ("status", "code"),
    [
        (500, "InternalServerError"),
        (502, "InternalServerError"),
        (503, "ServiceUnavailable"),
        (504, "InternalServerError"),
    ],
)
def test_an_error_is_answered_and_nothing_written(
    faulty: Endpoint, table: str, status: int, code: str
) -> None:
    faulty.set_faults(f"PutItem:{status}:1")
    _, error = refusal_of([lambda: put(faulty.client(), table, "k", "s")])
    assert error["ResponseMetadata"]["HTTPStatusCode"] == status
    assert error["Error"]["Code"] == code
    assert written(faulty, table) == 0
    assert faulty.client().get_item(TableName=table, Key={"PK": {"S": "k"}, "SK": {"S": "s"}})


@pytest.mark.engine
def test_a_throttle_is_faked_in_the_exception_of_the_tables_mode(
    faulty: Endpoint, table: str
) -> None:
    rates: Any = {"ReadCapacityUnits": 5, "WriteCapacityUnits": 5}
    provisioned = make_table(faulty.client(), ProvisionedThroughput=rates)
    put(faulty.client(), table, "k", "s")
    faulty.set_faults("*:throttle:1")
    client = faulty.client()
    _, error = refusal_of([lambda: put(client, table, "k", "t")])
    arn = faulty.engine().describe_table(TableName=table)["Table"]["TableArn"]
    assert error["throttlingReasons"] == [
        {"reason": "TableWriteKeyRangeThroughputExceeded", "resource": arn}
    ]
    _, error = refusal_of([lambda: put(client, provisioned, "k", "t")])
    assert error["Error"]["Code"] == "ProvisionedThroughputExceededException"
    _, error = refusal_of([lambda: client.query(TableName=table, KeyConditionExpression="PK = :k")])
    assert error["throttlingReasons"][0]["reason"] == "TableReadKeyRangeThroughputExceeded"
    deletes: Any = [{"Delete": {"TableName": table, "Key": {}}}] * 2
    _, error = refusal_of([lambda: client.transact_write_items(TransactItems=deletes)])
    assert [each["Code"] for each in error["CancellationReasons"]] == ["ThrottlingError"] * 2
    assert written(faulty, table) == 1


@pytest.mark.engine
@pytest.mark.parametrize(("kind", "count"), [("reset-before", 0), ("reset-after", 1)])
def test_a_reset_breaks_the_connection_before_or_after_the_write(
    faulty: Endpoint, table: str, kind: str, count: int
) -> None:
    faulty.set_faults(f"PutItem:{kind}:1")
    client = faulty.client()
    with pytest.raises((ConnectionClosedError, ConnectionResetError)):
        put(client, table, "k", "s")
    assert written(faulty, table) == count
    faulty.set_faults()
    put(client, table, "k", "t")
    assert written(faulty, table) == count + 1


@pytest.mark.engine
def test_a_lost_reply_leaves_the_client_waiting_though_the_write_happened(
    faulty: Endpoint, table: str
) -> None:
    faulty.set_faults("PutItem:lost-reply:1")
    with pytest.raises(ReadTimeoutError):
        put(faulty.client(read_timeout=0.3), table, "k", "s")
    assert written(faulty, table) == 1


@pytest.mark.engine
def test_a_batch_that_throttles_in_part_and_loses_its_reply_is_written_in_part(
    engine: EngineProcess,
) -> None:
    parameters = ("on_demand_partitions=1",)
    with endpoint(engine.url, partition_wcu=5, parameters=parameters) as narrow:
        table = make_table(narrow.client())
        narrow.set_faults("BatchWriteItem:reset-after:1")
        puts: Any = [
            {"PutRequest": {"Item": {"PK": {"S": "k"}, "SK": {"S": str(n)}}}} for n in range(8)
        ]
        with pytest.raises((ConnectionClosedError, ConnectionResetError)):
            narrow.client().batch_write_item(RequestItems={table: puts})
        assert written(narrow, table) == 5


@pytest.mark.engine
def test_faults_are_shown_counted_and_replaced_while_the_endpoint_runs(
    faulty: Endpoint, table: str
) -> None:
    faulty.set_faults("PutItem:500:1", "GetItem:503:0")
    refusal_of([lambda: put(faulty.client(), table, "k", "s")])
    assert faulty.request("GET", "/heat/faults")[2] == {
        "faults": ["PutItem:500:1", "GetItem:503:0"],
        "injected": {"PutItem:500:1": 1},
    }
    faulty.set_faults()
    put(faulty.client(), table, "k", "s")
    assert faulty.request("GET", "/heat/faults")[2] == {"faults": [], "injected": {}}


@pytest.mark.engine
@pytest.mark.parametrize(
    "body", [b"", b"{}", b"[1]", b'["PutItem:500"]', b'["*:500:1", "x:500:1"]']
)
def test_faults_that_are_none_are_refused_and_change_nothing(faulty: Endpoint, body: bytes) -> None:
    faulty.set_faults("Scan:500:0.5")
    status, _, answer = faulty.request("PUT", "/heat/faults", body)
    assert status == 400
    assert answer["message"]
    assert faulty.request("GET", "/heat/faults")[2]["faults"] == ["Scan:500:0.5"]
    assert faulty.request("DELETE", "/heat/faults")[0] == 405
    faulty.set_faults()


@pytest.mark.engine
def test_faults_happen_without_the_model_too(engine: EngineProcess) -> None:
    with endpoint(engine.url, enabled=False, partition_wcu=1, faults=("*:throttle:1",)) as plain:
        table = make_table(plain.client())
        _, error = refusal_of([lambda: put(plain.client(), table, "k", "s")])
        assert error["throttlingReasons"][0]["resource"].endswith(f"table/{table}")
        plain.set_faults()
        for sort in "abcdefgh":
            put(plain.client(), table, "k", sort)
        assert plain.heat() == {"heat": False, "tables": {}}


@pytest.mark.parametrize(
    "text",
    [
        "",
        ":",
        "PutItem",
        "PutItem:500",
        "PutItem:500:1.5",
        "PutItem:500:-0.1",
        "PutItem:500:nan",
        "PutItem:500:1e-3",
        "PutItem:418:0.1",
        "PutItem:500:0.1:0.1",
        "Putitem:500:0.1",
        "PutItem:latency:0.1",
        "PutItem:latency:fast:0.1",
        "PutItem:latency:100:0.1",
        "PutItem:latency:-1s:0.1",
        "PutItem:reset:0.1",
        " PutItem:500:0.1",
    ],
)
def test_a_malformed_fault_is_told_in_one_sentence(text: str) -> None:
    with pytest.raises(ValueError, match=r"^The fault .*\.$") as told:
        parse_fault(text)
    assert repr(text) in str(told.value)


@pytest.mark.parametrize(
    ("text", "seconds"), [("*:latency:200ms:0.1", 0.2), ("Query:latency:1.5s:1", 1.5)]
)
def test_a_latency_has_a_time(text: str, seconds: float) -> None:
    assert parse_fault(text).seconds == seconds


def outcomes(*texts: str, seed: int = 1, calls: int = 400) -> tuple[list[int], list[float]]:
    """Return the statuses of many calls, and the waits."""
    waits: list[float] = []

    async def sleep(seconds: float) -> None:
        waits.append(seconds)

    async def done(_: EndpointCall) -> Reply:
        return Reply(200, b"{}")

    def refuse(_: EndpointCall) -> Reply:
        return refusal(400, "ThrottlingException", "no")

    async def run() -> list[int]:
        faults = Faults(map(parse_fault, texts), Random(seed), sleep, refuse)
        return [(await faults.answer(PUT, done)).status for _ in range(calls)]

    return asyncio.run(run()), waits


def test_a_fault_happens_as_often_as_it_says_and_equally_for_equal_seeds() -> None:
    statuses, _ = outcomes("PutItem:500:0.25")
    assert 70 < statuses.count(500) < 130
    assert statuses == outcomes("PutItem:500:0.25")[0]
    assert statuses != outcomes("PutItem:500:0.25", seed=2)[0]
    assert set(outcomes("PutItem:500:0")[0]) == {200}
    assert set(outcomes("GetItem:500:1")[0]) == {200}
    assert set(outcomes("*:throttle:1")[0]) == {400}


def test_a_call_that_waits_may_fail_afterwards() -> None:
    statuses, waits = outcomes("*:latency:20ms:1", "PutItem:503:0.5")
    assert waits == [0.02] * 400
    assert 150 < statuses.count(503) < 250


def test_the_star_spares_calls_about_tables() -> None:
    assert parse_fault("*:500:1").applies_to("Query")
    assert not parse_fault("*:500:1").applies_to("DescribeTable")
    assert parse_fault("DescribeTable:500:1").applies_to("DescribeTable")


@pytest.mark.engine
def test_the_endpoint_answers_others_while_some_wait(faulty: Endpoint, table: str) -> None:
    async def run() -> list[float]:
        loop = asyncio.get_running_loop()
        began = loop.time()
        faulty.set_faults("PutItem:latency:400ms:1")
        puts = [asyncio.to_thread(put, faulty.client(), table, "k", str(n)) for n in range(4)]
        await asyncio.gather(*puts)
        return [loop.time() - began]

    (seconds,) = asyncio.run(run())
    assert seconds >= 0.4
    assert faulty.request("GET", "/heat/faults")[2]["injected"] == {"PutItem:latency:400ms:1": 4}
