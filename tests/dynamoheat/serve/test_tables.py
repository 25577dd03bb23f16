"""What tables are described as, and how calls change them."""

from typing import TYPE_CHECKING, Any

import orjson
import pytest

from dynamoheat import Heat
from dynamoheat.serve.tables import ModelTables, apply_update, drop_unsupported, with_billing_mode
from dynamoheat.serve.wire import EndpointCall
from tests.dynamoheat.serve.serving import Clock, Endpoint, make_table, puts, refusal_of

if TYPE_CHECKING:
    from types_boto3_dynamodb import DynamoDBClient

DESCRIBED = {
    "TableName": "events",
    "TableArn": "arn:aws:dynamodb:eu-west-1:111111111111:table/events",
    "TableId": "1",
    "BillingMode": "PAY_PER_REQUEST",
    "KeySchema": [{"AttributeName": "PK", "KeyType": "HASH"}],
    "AttributeDefinitions": [{"AttributeName": "PK", "AttributeType": "S"}],
    "OnDemandThroughput": {"MaxWriteRequestUnits": 7},
}


def known_tables() -> tuple[Heat, ModelTables]:
    async def describe(_name: str, _call: EndpointCall) -> None:
        return None

    heat = Heat()
    return heat, ModelTables(heat, Clock(), describe)


@pytest.mark.engine
def test_warm_and_maximum_throughput_are_described_though_the_engine_knows_neither(
    dynamodb: "DynamoDBClient",
) -> None:
    warm: Any = {"ReadUnitsPerSecond": 40, "WriteUnitsPerSecond": 30}
    table = make_table(dynamodb, index=True, OnDemandThroughput={"MaxWriteRequestUnits": 9})
    for _ in range(2):
        found = dynamodb.describe_table(TableName=table)["Table"]
        assert found["OnDemandThroughput"] == {"MaxWriteRequestUnits": 9}
        assert found["WarmThroughput"]["WriteUnitsPerSecond"] == 5
        (index,) = found["GlobalSecondaryIndexes"]
        assert index["WarmThroughput"]["ReadUnitsPerSecond"] == 10
    answer = dynamodb.update_table(
        TableName=table,
        WarmThroughput=warm,
        OnDemandThroughput={"MaxWriteRequestUnits": -1},
        GlobalSecondaryIndexUpdates=[{"Update": {"IndexName": "by-group", "WarmThroughput": warm}}],
    )["TableDescription"]
    for found in (answer, dynamodb.describe_table(TableName=table)["Table"]):
        assert found["WarmThroughput"] == {**warm, "Status": "ACTIVE"}
        assert "OnDemandThroughput" not in found
        (index,) = found["GlobalSecondaryIndexes"]
        assert index["WarmThroughput"] == {**warm, "Status": "ACTIVE"}


@pytest.mark.engine
def test_warm_throughput_makes_partitions_that_share_the_load(
    served: Endpoint, dynamodb: "DynamoDBClient"
) -> None:
    table = make_table(dynamodb)
    assert refusal_of(puts(dynamodb, table))[0] == 5
    dynamodb.update_table(
        TableName=table, WarmThroughput={"ReadUnitsPerSecond": 10, "WriteUnitsPerSecond": 400}
    )
    assert len(served.heat()["tables"][table]["partitions"]) == 80
    served.clock.now += 1
    assert refusal_of(puts(dynamodb, table))[0] > 15


@pytest.mark.engine
def test_an_index_that_is_made_later_throttles_too(
    served: Endpoint, dynamodb: "DynamoDBClient"
) -> None:
    table = make_table(dynamodb)
    dynamodb.update_table(
        TableName=table,
        AttributeDefinitions=[{"AttributeName": "GPK", "AttributeType": "S"}],
        GlobalSecondaryIndexUpdates=[
            {
                "Create": {
                    "IndexName": "later",
                    "KeySchema": [{"AttributeName": "GPK", "KeyType": "HASH"}],
                    "Projection": {"ProjectionType": "ALL"},
                }
            }
        ],
    )
    item: Any = {name: {"S": "x"} for name in ("PK", "SK", "GPK")}
    found = dynamodb.put_item(TableName=table, Item=item, ReturnConsumedCapacity="INDEXES")
    assert found["ConsumedCapacity"]["GlobalSecondaryIndexes"] == {"later": {"CapacityUnits": 1.0}}
    assert list(served.heat()["tables"][table]["indexes"]) == ["later"]


@pytest.mark.engine
def test_a_table_deleted_past_the_endpoint_is_forgotten(
    served: Endpoint, dynamodb: "DynamoDBClient"
) -> None:
    table = make_table(dynamodb)
    served.engine().delete_table(TableName=table)
    _, error = refusal_of(puts(dynamodb, table))
    assert error["Error"]["Code"] == "ResourceNotFoundException"
    assert table not in served.heat()["tables"]


def test_a_description_that_stays_the_same_leaves_alone_what_calls_changed() -> None:
    heat, tables = known_tables()
    tables.sync({"events": DESCRIBED})
    assert heat.resource("events").writes.maximum == 7
    tables.apply_update({"TableName": "events", "OnDemandThroughput": {"MaxWriteRequestUnits": 8}})
    tables.sync({"events": dict(DESCRIBED)})
    assert heat.resource("events").writes.maximum == 8
    tables.sync({"events": {**DESCRIBED, "OnDemandThroughput": {"MaxWriteRequestUnits": 9}}})
    assert heat.resource("events").writes.maximum == 9


def test_a_changed_table_keeps_its_partitions_and_one_made_anew_does_not() -> None:
    heat, tables = known_tables()
    tables.put_description(DESCRIBED)
    before = heat.resource("events")
    tables.put_description({**DESCRIBED, "WarmThroughput": {"WriteUnitsPerSecond": 9_000}})
    assert heat.resource("events") is before
    assert len(before.partitions) == 9
    tables.put_description({**DESCRIBED, "TableId": "2"})
    assert heat.resource("events") is not before
    tables.sync({})
    assert "events" not in tables
    assert heat.tables == {}


def test_a_description_that_is_none_changes_nothing() -> None:
    heat, tables = known_tables()
    tables.put_description(DESCRIBED)
    for odd in ({}, {"TableName": "events"}, {**DESCRIBED, "KeySchema": 1}):
        tables.put_description(odd)
    assert list(heat.tables) == ["events"]


@pytest.mark.parametrize(
    ("description", "mode"),
    [
        ({"BillingMode": "PROVISIONED"}, "PROVISIONED"),
        ({"BillingModeSummary": {"BillingMode": "PAY_PER_REQUEST"}}, "PAY_PER_REQUEST"),
        ({"ProvisionedThroughput": {"ReadCapacityUnits": 5}}, "PROVISIONED"),
        ({"ProvisionedThroughput": {"ReadCapacityUnits": 0, "WriteCapacityUnits": 0}},
         "PAY_PER_REQUEST"),
        ({}, "PAY_PER_REQUEST"),
    ],
)  # fmt: skip
def test_an_engine_that_states_no_billing_mode_is_understood(
    description: dict[str, Any], mode: str
) -> None:
    assert with_billing_mode(description)["BillingMode"] == mode


def test_an_update_merges_what_it_states() -> None:
    index = {"IndexName": "a", "KeySchema": [], "WarmThroughput": {"ReadUnitsPerSecond": 1}}
    before = {**DESCRIBED, "GlobalSecondaryIndexes": [index, {"IndexName": "b"}]}
    after = apply_update(
        before,
        {
            "BillingMode": "PROVISIONED",
            "ProvisionedThroughput": {"ReadCapacityUnits": 1, "WriteCapacityUnits": 2},
            "OnDemandThroughput": {"MaxReadRequestUnits": 3},
            "GlobalSecondaryIndexUpdates": [
                {"Update": {"IndexName": "a", "WarmThroughput": {"WriteUnitsPerSecond": 2}}},
                {"Update": {"IndexName": "missing", "WarmThroughput": {}}},
                {"Delete": {"IndexName": "b"}},
                {"Create": {"IndexName": "c", "KeySchema": []}},
            ],
        },
    )
    assert after["BillingMode"] == "PROVISIONED"
    assert after["OnDemandThroughput"] == {"MaxReadRequestUnits": 3, "MaxWriteRequestUnits": 7}
    first, second = after["GlobalSecondaryIndexes"]
    assert first["WarmThroughput"] == {"ReadUnitsPerSecond": 1, "WriteUnitsPerSecond": 2}
    assert second == {"IndexName": "c", "KeySchema": []}


def test_engines_are_spared_what_they_lack() -> None:
    warm = {"WriteUnitsPerSecond": 1}
    request = {
        "TableName": "t",
        "WarmThroughput": warm,
        "GlobalSecondaryIndexes": [{"IndexName": "a", "OnDemandThroughput": {}}],
        "GlobalSecondaryIndexUpdates": [
            {"Update": {"IndexName": "a", "WarmThroughput": warm}},
            {"Delete": {"IndexName": "b"}},
        ],
    }
    before = orjson.dumps(request)
    assert drop_unsupported(request) == {
        "TableName": "t",
        "GlobalSecondaryIndexes": [{"IndexName": "a"}],
        "GlobalSecondaryIndexUpdates": [{"Delete": {"IndexName": "b"}}],
    }
    assert orjson.dumps(request) == before
