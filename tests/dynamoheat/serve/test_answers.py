"""An admitted answer has its own units, nothing unasked for, and a right checksum."""

import zlib
from typing import TYPE_CHECKING, Any

import orjson
import pytest

from tests.dynamoheat.serve.serving import Endpoint, make_table, put, refusal_of

if TYPE_CHECKING:
    from types_boto3_dynamodb import DynamoDBClient

pytestmark = pytest.mark.engine

KEY: Any = {"PK": {"S": "k"}, "SK": {"S": "s"}}
ITEM: Any = {**KEY, "GPK": {"S": "g"}, "v": {"S": "x" * 1500}}


def without_metadata(answer: Any) -> dict[str, Any]:
    return {name: value for name, value in answer.items() if name != "ResponseMetadata"}


def test_a_client_sees_only_what_it_asked_for(served: Endpoint, dynamodb: "DynamoDBClient") -> None:
    table = make_table(dynamodb, index=True)
    assert without_metadata(dynamodb.put_item(TableName=table, Item=ITEM)) == {}
    served.clock.now += 10
    assert without_metadata(dynamodb.put_item(TableName=table, Item=ITEM)) == {}
    update: Any = {"TableName": table, "Key": KEY, "UpdateExpression": "SET v = :v"}
    values: Any = {":v": {"S": "new"}}
    served.clock.now += 10
    found = dynamodb.update_item(**update, ExpressionAttributeValues=values)
    assert without_metadata(found) == {}
    served.clock.now += 10
    filtered = dynamodb.query(
        TableName=table,
        KeyConditionExpression="PK = :k",
        FilterExpression="v = :v",
        ExpressionAttributeValues={":k": {"S": "k"}, **values},
    )
    assert "ConsumedCapacity" not in filtered
    assert without_metadata(dynamodb.delete_item(TableName=table, Key=KEY)) == {}


def test_old_and_new_images_reach_those_who_asked(dynamodb: "DynamoDBClient") -> None:
    table = make_table(dynamodb)
    put(dynamodb, table, "k", "s", v="one")
    update: Any = {"TableName": table, "Key": KEY, "UpdateExpression": "SET v = :v"}
    asked: Any = (("ALL_OLD", "one"), ("UPDATED_NEW", "two"))
    for values, shown in asked:
        found = dynamodb.update_item(
            **update, ExpressionAttributeValues={":v": {"S": "two"}}, ReturnValues=values
        )
        assert found["Attributes"]["v"] == {"S": shown}
    old = dynamodb.delete_item(TableName=table, Key=KEY, ReturnValues="ALL_OLD")
    assert old["Attributes"] == {**KEY, "v": {"S": "two"}}


def test_consumed_capacity_is_the_models_in_the_form_that_was_asked_for(
    served: Endpoint, dynamodb: "DynamoDBClient"
) -> None:
    table = make_table(dynamodb, index=True)
    both = dynamodb.put_item(TableName=table, Item=ITEM, ReturnConsumedCapacity="INDEXES")
    assert both["ConsumedCapacity"] == {
        "TableName": table,
        "CapacityUnits": 4.0,
        "Table": {"CapacityUnits": 2.0},
        "GlobalSecondaryIndexes": {"by-group": {"CapacityUnits": 2.0}},
    }
    served.clock.now += 10
    total = dynamodb.delete_item(TableName=table, Key=KEY, ReturnConsumedCapacity="TOTAL")
    assert total["ConsumedCapacity"] == {"TableName": table, "CapacityUnits": 4.0}
    served.clock.now += 10
    # 3 + 20 + 1 bytes of number 120 by the developer guide; the engine counts one byte less.
    edge: Any = {**KEY, "n": {"N": "120"}, "v": {"S": "x" * (1025 - 6 - 5)}}
    exact = dynamodb.put_item(TableName=table, Item=edge, ReturnConsumedCapacity="TOTAL")
    assert exact["ConsumedCapacity"]["CapacityUnits"] == 2.0


def test_a_replaced_item_that_the_model_never_saw_is_charged(
    served: Endpoint, dynamodb: "DynamoDBClient"
) -> None:
    table = make_table(dynamodb)
    served.engine().put_item(TableName=table, Item={**KEY, "v": {"S": "x" * 3000}})
    found = dynamodb.put_item(TableName=table, Item=KEY, ReturnConsumedCapacity="TOTAL")
    assert found["ConsumedCapacity"]["CapacityUnits"] == 3.0
    assert served.heat()["tables"][table]["consumed"]["write"] == 3.0


def test_a_failed_condition_costs_what_the_write_would_have_and_shows_no_item(
    served: Endpoint, dynamodb: "DynamoDBClient"
) -> None:
    table = make_table(dynamodb)
    served.engine().put_item(TableName=table, Item={**KEY, "v": {"S": "x" * 1500}})
    _, error = refusal_of([
        lambda: dynamodb.put_item(
            TableName=table, Item=KEY, ConditionExpression="attribute_not_exists(PK)"
        )
    ])  # fmt: skip
    assert error["Error"]["Code"] == "ConditionalCheckFailedException"
    assert "Item" not in error
    assert served.heat()["tables"][table]["consumed"]["write"] == 2.0
    _, error = refusal_of([
        lambda: dynamodb.put_item(
            TableName=table,
            Item=KEY,
            ConditionExpression="attribute_not_exists(PK)",
            ReturnValuesOnConditionCheckFailure="ALL_OLD",
        )
    ])  # fmt: skip
    assert error["Item"]["v"] == {"S": "x" * 1500}


def test_a_cancelled_transaction_costs_its_table_and_a_refused_call_nothing(
    served: Endpoint, dynamodb: "DynamoDBClient"
) -> None:
    table = make_table(dynamodb, index=True)
    condition = "attribute_exists(PK)"
    _, error = refusal_of([
        lambda: dynamodb.transact_write_items(
            TransactItems=[
                {"Put": {"TableName": table, "Item": ITEM, "ConditionExpression": condition}}
            ]
        )
    ])  # fmt: skip
    assert [reason["Code"] for reason in error["CancellationReasons"]] == ["ConditionalCheckFailed"]
    state = served.heat()["tables"][table]
    assert state["consumed"]["write"] == 4.0
    assert state["indexes"]["by-group"]["consumed"]["write"] == 0.0
    _, error = refusal_of([
        lambda: dynamodb.put_item(TableName=table, Item=KEY, ConditionExpression="nonsense(")
    ])  # fmt: skip
    assert error["Error"]["Code"] == "ValidationException"
    assert served.heat()["tables"][table]["consumed"]["write"] == 4.0


@pytest.mark.parametrize(
    ("operation", "body"),
    [
        ("PutItem", {"Item": KEY}),
        ("PutItem", {"Item": KEY, "ReturnConsumedCapacity": "TOTAL"}),
        ("PutItem", {"Item": {"PK": {"S": "k"}}}),
        ("PutItem", {"Item": {**KEY, "v": {"S": "x" * 40_000}}}),
        ("GetItem", {"Key": KEY}),
        ("DescribeTable", {}),
    ],
)
def test_every_answer_has_its_checksum(
    served: Endpoint, dynamodb: "DynamoDBClient", operation: str, body: dict[str, Any]
) -> None:
    table = make_table(dynamodb)
    for _ in range(7):  # the last ones throttle
        _, headers, _ = served.send(operation, orjson.dumps({"TableName": table, **body}))
        assert int(headers["x-amz-crc32"]) == zlib.crc32(headers["body"].encode())
        assert headers["content-type"] == "application/x-amz-json-1.0"


def test_units_that_the_engine_counts_otherwise_are_counted(
    served: Endpoint, dynamodb: "DynamoDBClient"
) -> None:
    table = make_table(dynamodb)
    before = served.heat()["engine"]
    put(dynamodb, table, "k", "s")
    edge: Any = {**KEY, "n": {"N": "120"}, "v": {"S": "x" * (1025 - 6 - 5)}}
    dynamodb.put_item(TableName=table, Item=edge)
    after = served.heat()["engine"]
    assert after["compared"] - before["compared"] == 2
    assert after["different"] - before["different"] == 1
