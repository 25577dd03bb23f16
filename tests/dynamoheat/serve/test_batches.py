"""Batches that throttle in part: exactly the throttled items come back unprocessed."""

from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from local.engine import EngineProcess
from tests.dynamoheat.serve.serving import Endpoint, endpoint, make_table, refusal_of

if TYPE_CHECKING:
    from types_boto3_dynamodb import DynamoDBClient

pytestmark = pytest.mark.engine


def item(key: str, sort: str) -> dict[str, Any]:
    return {"PK": {"S": key}, "SK": {"S": sort}}


def put_of(key: str, sort: str) -> Any:
    return {"PutRequest": {"Item": item(key, sort)}}


def stored(served: Endpoint, table: str) -> list[tuple[str, str]]:
    found = served.engine().scan(TableName=table)["Items"]
    return sorted((each["PK"]["S"], each["SK"]["S"]) for each in found)


def test_a_mixed_batch_leaves_exactly_the_throttled_items_unprocessed(
    served: Endpoint, dynamodb: "DynamoDBClient"
) -> None:
    table = make_table(
        dynamodb, WarmThroughput={"ReadUnitsPerSecond": 10, "WriteUnitsPerSecond": 5_000}
    )
    cold = [put_of(f"cold-{n}", "x") for n in range(12)]
    hot = [put_of("hot", str(n)) for n in range(10, 22)]
    mixed = [entry for pair in zip(cold, hot, strict=True) for entry in pair]
    answer = dynamodb.batch_write_item(RequestItems={table: mixed})
    assert answer["UnprocessedItems"] == {table: hot[5:]}
    done = [("hot", str(n)) for n in range(10, 15)]
    assert stored(served, table) == sorted([*((f"cold-{n}", "x") for n in range(12)), *done])


def test_items_of_several_tables_and_deletes_keep_their_places(
    served: Endpoint, dynamodb: "DynamoDBClient"
) -> None:
    first, second = make_table(dynamodb), make_table(dynamodb)
    removed = {"DeleteRequest": {"Key": item("k", "gone")}}
    wanted: Any = {
        first: [put_of("k", "0"), removed, *(put_of("k", str(n)) for n in range(1, 9))],
        second: [put_of("k", "0")],
    }
    answer = dynamodb.batch_write_item(RequestItems=wanted)
    assert answer["UnprocessedItems"] == {first: wanted[first][5:]}
    assert stored(served, first) == [("k", str(n)) for n in range(4)]
    assert stored(served, second) == [("k", "0")]


def test_a_batch_of_which_nothing_gets_through_is_an_exception(
    served: Endpoint, dynamodb: "DynamoDBClient"
) -> None:
    table = make_table(dynamodb)
    dynamodb.batch_write_item(RequestItems={table: [put_of("k", str(n)) for n in range(5)]})
    passed, error = refusal_of(
        [lambda: dynamodb.batch_write_item(RequestItems={table: [put_of("k", "5")] * 1})]
    )
    assert passed == 0
    assert error["Error"]["Code"] == "ThrottlingException"
    (reason,) = error["throttlingReasons"]
    assert reason["reason"] == "TableWriteKeyRangeThroughputExceeded"
    assert len(stored(served, table)) == 5


def test_a_batch_of_reads_leaves_exactly_the_throttled_keys_unprocessed(
    served: Endpoint, dynamodb: "DynamoDBClient"
) -> None:
    table = make_table(dynamodb)
    for n in range(14):
        served.engine().put_item(TableName=table, Item=item("k", f"{n:02}"))
    keys = [item("k", f"{n:02}") for n in range(14)]
    wanted: Any = {table: {"Keys": keys, "ConsistentRead": True, "ProjectionExpression": "SK"}}
    answer = dynamodb.batch_get_item(RequestItems=wanted)
    assert len(answer["Responses"][table]) == 10
    assert answer["UnprocessedKeys"] == {
        table: {"Keys": keys[10:], "ConsistentRead": True, "ProjectionExpression": "SK"}
    }
    found = {each["SK"]["S"] for each in answer["Responses"][table]}
    assert found == {f"{n:02}" for n in range(10)}
    assert refusal_of([lambda: dynamodb.batch_get_item(RequestItems=wanted)])[0] == 0


@pytest.mark.parametrize(
    "bad",
    [
        [put_of("k", str(n)) for n in range(26)],
        [*(put_of("k", str(n)) for n in range(9)), put_of("k", "1")],
        [*(put_of("k", str(n)) for n in range(8)), put_of("k", "")],
        [*(put_of("k", str(n)) for n in range(8)), {"DeleteRequest": {"Key": item("k", "")}}],
        [
            *(put_of("k", str(n)) for n in range(8)),
            {"PutRequest": {"Item": {**item("k", "9"), "v": {"S": "x" * 410_000}}}},
        ],
        [
            *(put_of("k", str(n)) for n in range(8)),
            {"PutRequest": {"Item": {"PK": {"S": "k"}, "SK": {"N": "1"}}}},
        ],
    ],
    ids=["26 items", "a key twice", "an empty key", "an empty key to delete", "410 KB", "a number"],
)
def test_a_batch_that_is_not_valid_is_refused_as_a_whole_also_while_it_would_throttle(
    served: Endpoint, dynamodb: "DynamoDBClient", bad: list[Any]
) -> None:
    table = make_table(dynamodb)
    _, error = refusal_of([lambda: dynamodb.batch_write_item(RequestItems={table: bad})])
    assert error["Error"]["Code"] == "ValidationException"
    assert stored(served, table) == []
    dynamodb.batch_write_item(RequestItems={table: [put_of("k", str(n)) for n in range(5)]})
    assert len(stored(served, table)) == 5  # the refused batch took nothing


@pytest.fixture(scope="module")
def narrow(engine: EngineProcess) -> Any:
    parameters = ("on_demand_partitions=3",)
    with endpoint(engine.url, partition_wcu=4, parameters=parameters) as running:
        yield running


@given(st.lists(st.sampled_from("abcdefgh"), min_size=1, max_size=25))
def test_whatever_a_batch_holds_each_item_is_written_or_comes_back(
    narrow: Endpoint, keys: list[str]
) -> None:
    dynamodb = narrow.client()
    table = make_table(dynamodb)
    wanted = [put_of(key, str(n)) for n, key in enumerate(keys)]
    answer: Any = dynamodb.batch_write_item(RequestItems={table: wanted})
    left = answer["UnprocessedItems"].get(table, [])
    back = [(e["PutRequest"]["Item"]["PK"]["S"], e["PutRequest"]["Item"]["SK"]["S"]) for e in left]
    done = stored(narrow, table)
    assert Counter(done + back) == Counter((key, str(n)) for n, key in enumerate(keys))
    assert all(count <= 4 for count in Counter(key for key, _ in done).values())
    dynamodb.delete_table(TableName=table)
