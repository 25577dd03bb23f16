"""Wrong requests and wrong engines give errors in DynamoDB's shape; the endpoint lives on."""

from collections.abc import Iterator
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import orjson
import pytest

from local.engine import running_engine
from tests.dynamoheat.serve.serving import (
    AUTHORIZED,
    Endpoint,
    endpoint,
    make_table,
    put,
    puts,
    refusal_of,
)
from tests.support.loopback import HANG, HANG_UP, Answer, Received, answer_json
from tests.support.loopback import Endpoint as Double
from tests.support.loopback import endpoint as double

if TYPE_CHECKING:
    from types_boto3_dynamodb import DynamoDBClient

pytestmark = pytest.mark.engine

KEYS = [{"AttributeName": "PK", "KeyType": "HASH"}]
TABLE = {
    "TableName": "odd",
    "KeySchema": KEYS,
    "AttributeDefinitions": [{"AttributeName": "PK", "AttributeType": "S"}],
    "BillingModeSummary": {"BillingMode": "PAY_PER_REQUEST"},
}
PUT = orjson.dumps({"TableName": "odd", "Item": {"PK": {"S": "k"}}})


@pytest.fixture
def engine_double() -> Iterator[Double]:
    with double() as running:
        running.answer = answering({})
        yield running


def answering(answers: dict[str, Answer]) -> Any:
    """Describe the table `odd`, and answer operations as told."""

    def answer(request: Received) -> Answer:
        operation = request.headers.get("X-Amz-Target", "").rpartition(".")[2]
        if operation == "DescribeTable":
            return answer_json(200, Table=TABLE)
        return answers.get(operation, answer_json(200))

    return answer


@pytest.mark.parametrize(
    ("body", "kinds"),
    [
        (b"", {"SerializationException"}),
        (b"{", {"SerializationException"}),
        (b"\xff\xfe", {"SerializationException"}),
        (b"[" * 5000, {"SerializationException"}),
        (b'{"TableName": "\\ud800", "Item": {}}', {"SerializationException"}),
        (b"[]", {"SerializationException", "ValidationException"}),
        (b"{}", {"ValidationException"}),
        (b'{"TableName": 5}', {"SerializationException"}),
        (b'{"TableName": "TABLE"}', {"ValidationException"}),
        (b'{"TableName": "TABLE", "Item": []}', {"SerializationException"}),
        (b'{"TableName": "TABLE", "Item": {"PK": "k"}}', {"SerializationException"}),
        (b'{"TableName": "TABLE", "Item": {"PK": {"S": 1}, "SK": {"S": "s"}}}',
         {"SerializationException"}),
        (b'{"TableName": "TABLE", "Item": {"PK": {"S": "k"}}}', {"ValidationException"}),
        (b'{"TableName": "TABLE", "Item": {"PK": {"S": "k"}, "SK": {"N": "x"}}}',
         {"ValidationException"}),
        (b'{"TableName": "no-such-table", "Item": {"PK": {"S": "k"}}}',
         {"ResourceNotFoundException"}),
    ],
)  # fmt: skip
def test_a_malformed_request_is_refused_as_dynamodb_does(
    served: Endpoint, dynamodb: "DynamoDBClient", body: bytes, kinds: set[str]
) -> None:
    table = make_table(dynamodb)
    status, _, answer = served.send("PutItem", body.replace(b"TABLE", table.encode()))
    assert status == 400
    assert answer["__type"].rpartition("#")[2] in kinds
    put(dynamodb, table, "k", "s")
    assert served.heat()["tables"][table]["consumed"]["write"] == 1.0


@pytest.mark.parametrize(
    "operation",
    ["BatchGetItem", "BatchWriteItem", "DeleteItem", "GetItem", "Query", "Scan", "TransactGetItems",
     "TransactWriteItems", "UpdateItem", "ExecuteStatement", "Nonsense", ""],
)  # fmt: skip
@pytest.mark.parametrize(
    "body",
    [b"{}", b"null", b'{"TableName": null}', b'{"RequestItems": []}', b'{"RequestItems": {"a": 1}}',
     b'{"TransactItems": [1]}', b'{"TransactItems": {"a": {}}}',
     b'{"TableName": {"a": 1}, "Key": 1}'],
)  # fmt: skip
def test_no_document_of_any_operation_breaks_the_endpoint(
    served: Endpoint, operation: str, body: bytes
) -> None:
    status, _, answer = served.send(operation, body)
    assert 400 <= status < 500
    assert "#" in answer["__type"]


def test_an_oversized_item_is_refused_and_costs_nothing(dynamodb: "DynamoDBClient") -> None:
    table = make_table(dynamodb)
    put(dynamodb, table, "k", "s")
    for _ in range(2):
        _, error = refusal_of([lambda: put(dynamodb, table, "k", "s", v="x" * 410_000)])
        assert error["Error"]["Code"] == "ValidationException"
        assert "size" in error["Error"]["Message"]
    for sort in "abcd":
        put(dynamodb, table, "k", sort)


def test_a_request_that_is_no_call_goes_on_to_the_engine(engine_double: Double) -> None:
    with endpoint(f"http://127.0.0.1:{engine_double.port}") as served:
        status, _, answer = served.request("POST", "/shell", b"x", dict(AUTHORIZED))
    assert (status, answer) == (200, {})
    assert engine_double.received[-1].target == "/shell"


def test_an_engine_that_went_down_gives_503_and_nothing_is_charged() -> None:
    with ExitStack() as outlives:
        with running_engine() as engine:
            served = outlives.enter_context(endpoint(engine.url, timeout_seconds=2))
            table = make_table(served.client())
            put(served.client(), table, "k", "s")
        for calls in (puts(served.client(), table), puts(served.client(), "unknown-table")):
            _, error = refusal_of(calls)
            assert error["ResponseMetadata"]["HTTPStatusCode"] in (500, 503)
            assert error["Error"]["Code"] in ("InternalServerError", "ServiceUnavailable")
        assert served.heat()["tables"][table]["consumed"]["write"] <= 2.0


@pytest.mark.parametrize(
    "answer",
    [
        HANG,
        HANG_UP,
        Answer(500, b"<html>"),
        Answer(502, b""),
        answer_json(500, __type="a#Internal"),
    ],
    ids=["silent", "hangs up", "html", "empty", "500"],
)
def test_an_engine_that_fails_gives_5xx_in_dynamodbs_shape(
    engine_double: Double, answer: Answer
) -> None:
    with endpoint(f"http://127.0.0.1:{engine_double.port}", timeout_seconds=2) as served:
        engine_double.answer = answering({"PutItem": answer})
        status, _, error = served.send("PutItem", PUT)
        assert status >= 500
        assert "#Internal" in error["__type"]
        engine_double.answer = answering({})
        assert served.send("PutItem", PUT)[0] == 200
        # Nobody knows whether the first was written: what was taken for it stands.
        assert served.heat()["tables"]["odd"]["consumed"]["write"] == 2.0


def test_an_engine_that_takes_no_extras_is_asked_without_them(engine_double: Double) -> None:
    asked: list[dict[str, Any]] = []

    def answer(request: Received) -> Answer:
        operation = request.headers.get("X-Amz-Target", "").rpartition(".")[2]
        if operation != "PutItem":
            described: Answer = answering({})(request)
            return described
        asked.append(orjson.loads(request.body))
        if "ReturnConsumedCapacity" in asked[-1]:
            return answer_json(
                400,
                __type="com.amazon.coral.validate#ValidationException",
                message="returnConsumedCapacity is not supported yet",
            )
        return answer_json(200)

    engine_double.answer = answer
    with endpoint(f"http://127.0.0.1:{engine_double.port}") as served:
        for _ in range(3):
            assert served.send("PutItem", PUT)[0] == 200
        state = served.heat()["tables"]["odd"]
    assert ["ReturnConsumedCapacity" in request for request in asked] == [True, False, False, False]
    assert state["consumed"]["write"] == 3.0


def test_a_read_that_hides_what_it_read_is_charged_by_the_engines_report(
    engine_double: Double,
) -> None:
    report = {"TableName": "odd", "CapacityUnits": 12.5, "Table": {"CapacityUnits": 12.5}}
    answer = answer_json(200, Items=[], Count=0, ScannedCount=900, ConsumedCapacity=report)
    engine_double.answer = answering({"Scan": answer})
    scan = {"TableName": "odd", "FilterExpression": "a = b"}
    with endpoint(f"http://127.0.0.1:{engine_double.port}") as served:
        _, _, seen = served.send("Scan", orjson.dumps(scan))
        assert served.heat()["tables"]["odd"]["consumed"]["read"] == 12.5
    assert "ConsumedCapacity" not in seen


def test_an_engines_own_unprocessed_items_are_kept(engine_double: Double) -> None:
    theirs = [{"PutRequest": {"Item": {"PK": {"S": "k"}, "n": {"N": str(n)}}}} for n in range(9)]
    engine_double.answer = answering(
        {"BatchWriteItem": answer_json(200, UnprocessedItems={"odd": theirs[:2]})}
    )
    parameters = ("on_demand_partitions=1",)
    url = f"http://127.0.0.1:{engine_double.port}"
    with endpoint(url, partition_wcu=5, parameters=parameters) as served:
        keyed = [{"PutRequest": {"Item": {"PK": {"S": str(n)}}}} for n in range(9)]
        body = orjson.dumps({"RequestItems": {"odd": keyed}})
        _, _, seen = served.send("BatchWriteItem", body)
    assert seen["UnprocessedItems"]["odd"] == [*theirs[:2], *keyed[5:]]
