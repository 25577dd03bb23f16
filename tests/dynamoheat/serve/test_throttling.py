"""boto3 against the endpoint over the real engine: what is throttled, why, and what is written."""

from functools import partial
from itertools import count
from typing import TYPE_CHECKING, Any

import pytest

from local.engine import EngineProcess
from tests.dynamoheat.serve.serving import Endpoint, endpoint, make_table, put, puts, refusal_of

if TYPE_CHECKING:
    from types_boto3_dynamodb import DynamoDBClient

pytestmark = pytest.mark.engine

ON_DEMAND = ("ThrottlingException", "throttlingReasons")
PROVISIONED = ("ProvisionedThroughputExceededException", "ThrottlingReasons")


def stored(served: Endpoint, table: str) -> set[str]:
    """Return the sort keys that the engine holds."""
    return {item["SK"]["S"] for item in served.engine().scan(TableName=table)["Items"]}


def arn_of(served: Endpoint, table: str) -> str:
    return served.engine().describe_table(TableName=table)["Table"]["TableArn"]


def assert_reason(error: Any, shape: tuple[str, str], reason: str, resource: str) -> None:
    code, spelling = shape
    assert error["ResponseMetadata"]["HTTPStatusCode"] == 400
    assert error["Error"]["Code"] == code
    assert error[spelling] == [{"reason": reason, "resource": resource}]


def test_one_key_above_its_partitions_limit_is_throttled_and_not_written(
    served: Endpoint, dynamodb: "DynamoDBClient"
) -> None:
    table = make_table(dynamodb, OnDemandThroughput={"MaxWriteRequestUnits": 1000})
    passed, error = refusal_of(puts(dynamodb, table, key="hot"))
    assert passed == 5
    assert_reason(error, ON_DEMAND, "TableWriteKeyRangeThroughputExceeded", arn_of(served, table))
    assert "hot key" in error["Error"]["Message"]
    assert stored(served, table) == set("01234")


def test_time_refills_a_partition(served: Endpoint, dynamodb: "DynamoDBClient") -> None:
    table = make_table(dynamodb)
    calls = puts(dynamodb, table, key="hot")
    assert refusal_of(calls)[0] == 5
    served.clock.now += 0.4
    assert refusal_of(calls)[0] == 2


def test_a_hot_partition_of_a_provisioned_table_says_so_in_the_other_exception(
    served: Endpoint, dynamodb: "DynamoDBClient"
) -> None:
    capacity = {"ReadCapacityUnits": 1, "WriteCapacityUnits": 15}
    table = make_table(dynamodb, ProvisionedThroughput=capacity)
    passed, error = refusal_of(puts(dynamodb, table, key="hot"))
    assert passed == 5
    assert_reason(error, PROVISIONED, "TableWriteKeyRangeThroughputExceeded", arn_of(served, table))


def test_a_hot_index_bucket_refuses_the_tables_writes_and_is_named(
    served: Endpoint, dynamodb: "DynamoDBClient"
) -> None:
    # Twenty partitions of the table share the load, one of the index takes it. What it cannot
    # take waits, up to its buffer of a second's worth.
    table = make_table(
        dynamodb, index=True, WarmThroughput={"ReadUnitsPerSecond": 10, "WriteUnitsPerSecond": 100}
    )
    passed, error = refusal_of(
        partial(put, dynamodb, table, f"key-{n}", str(n), GPK="bucket") for n in count()
    )
    assert passed == 10
    index = f"{arn_of(served, table)}/index/by-group"
    assert_reason(error, ON_DEMAND, "IndexWriteKeyRangeThroughputExceeded", index)
    assert len(stored(served, table)) == 10
    _, error = refusal_of([lambda: put(dynamodb, table, "cold", "other")])
    assert_reason(error, ON_DEMAND, "IndexWriteKeyRangeThroughputExceeded", index)


def test_a_tables_provisioned_rate_is_named(served: Endpoint, dynamodb: "DynamoDBClient") -> None:
    capacity = {"ReadCapacityUnits": 3, "WriteCapacityUnits": 2}
    table = make_table(dynamodb, ProvisionedThroughput=capacity)
    passed, error = refusal_of(puts(dynamodb, table))
    assert passed == 2
    arn = arn_of(served, table)
    assert_reason(error, PROVISIONED, "TableWriteProvisionedThroughputExceeded", arn)
    assert "UpdateTable" in error["Error"]["Message"]


def test_an_on_demand_maximum_is_named(served: Endpoint, dynamodb: "DynamoDBClient") -> None:
    maxima = {"MaxReadRequestUnits": 2, "MaxWriteRequestUnits": 3}
    table = make_table(dynamodb, OnDemandThroughput=maxima)
    arn = arn_of(served, table)
    passed, error = refusal_of(puts(dynamodb, table))
    assert passed == 3
    assert_reason(error, ON_DEMAND, "TableWriteMaxOnDemandThroughputExceeded", arn)
    passed, error = refusal_of(get_strongly(dynamodb, table) for _ in count())
    assert passed == 2
    assert_reason(error, ON_DEMAND, "TableReadMaxOnDemandThroughputExceeded", arn)


def test_an_accounts_quota_is_named(engine: EngineProcess) -> None:
    with endpoint(engine.url, parameters=("quota_wcu=4",)) as served:
        dynamodb = served.client()
        table = make_table(dynamodb)
        passed, error = refusal_of(puts(dynamodb, table))
        assert passed == 4
        assert_reason(error, ON_DEMAND, "TableWriteAccountLimitExceeded", arn_of(served, table))


def get_strongly(dynamodb: "DynamoDBClient", table: str) -> Any:
    key = {"PK": {"S": "hot"}, "SK": {"S": "x"}}
    return lambda: dynamodb.get_item(TableName=table, Key=key, ConsistentRead=True)


def test_reads_of_a_hot_partition_are_throttled(
    served: Endpoint, dynamodb: "DynamoDBClient"
) -> None:
    table = make_table(dynamodb)
    passed, error = refusal_of(get_strongly(dynamodb, table) for _ in count())
    assert passed == 10
    assert_reason(error, ON_DEMAND, "TableReadKeyRangeThroughputExceeded", arn_of(served, table))


def test_reads_above_the_provisioned_rate_are_throttled(
    served: Endpoint, dynamodb: "DynamoDBClient"
) -> None:
    capacity = {"ReadCapacityUnits": 3, "WriteCapacityUnits": 2}
    table = make_table(dynamodb, ProvisionedThroughput=capacity)
    passed, error = refusal_of(get_strongly(dynamodb, table) for _ in count())
    assert passed == 3
    arn = arn_of(served, table)
    assert_reason(error, PROVISIONED, "TableReadProvisionedThroughputExceeded", arn)


def test_queries_of_an_index_name_the_index(served: Endpoint, dynamodb: "DynamoDBClient") -> None:
    table = make_table(dynamodb, index=True)

    def query() -> object:
        return dynamodb.query(
            TableName=table,
            IndexName="by-group",
            KeyConditionExpression="GPK = :group",
            ExpressionAttributeValues={":group": {"S": "bucket"}},
        )

    passed, error = refusal_of(query for _ in count())
    assert passed == 20  # half a unit each
    index = f"{arn_of(served, table)}/index/by-group"
    assert_reason(error, ON_DEMAND, "IndexReadKeyRangeThroughputExceeded", index)


def test_a_query_pays_for_what_it_read_before_the_next_one_passes(
    served: Endpoint, dynamodb: "DynamoDBClient"
) -> None:
    table = make_table(dynamodb)
    big = {"PK": {"S": "hot"}, "SK": {"S": "x"}, "filler": {"S": "f" * 120_000}}
    served.engine().put_item(TableName=table, Item=big)  # 30 units to read, three seconds' worth
    query: Any = {
        "TableName": table,
        "ConsistentRead": True,
        "KeyConditionExpression": "PK = :key",
        "ExpressionAttributeValues": {":key": {"S": "hot"}},
    }
    assert dynamodb.query(**query)["Count"] == 1
    served.clock.now += 2
    assert refusal_of([lambda: dynamodb.query(**query)])[0] == 0
    served.clock.now += 0.1
    assert dynamodb.query(**query)["Count"] == 1


def test_a_transaction_is_cancelled_as_a_whole_and_says_which_item_was_short(
    served: Endpoint, dynamodb: "DynamoDBClient"
) -> None:
    table = make_table(dynamodb)

    def transact(*sorts: str) -> object:
        items: Any = [
            {"Put": {"TableName": table, "Item": {"PK": {"S": "hot"}, "SK": {"S": sort}}}}
            for sort in sorts
        ]
        return dynamodb.transact_write_items(TransactItems=items)

    transact("a")  # two units
    passed, error = refusal_of([lambda: transact("b", "c")])
    assert passed == 0
    assert error["Error"]["Code"] == "TransactionCanceledException"
    assert [reason["Code"] for reason in error["CancellationReasons"]] == [
        "None",
        "ThrottlingError",
    ]
    assert "[None, ThrottlingError]" in error["Error"]["Message"]
    assert stored(served, table) == {"a"}
    transact("d")
    assert stored(served, table) == {"a", "d"}


def test_raising_a_rate_lifts_the_throttle(served: Endpoint, dynamodb: "DynamoDBClient") -> None:
    capacity = {"ReadCapacityUnits": 1, "WriteCapacityUnits": 1}
    table = make_table(dynamodb, ProvisionedThroughput=capacity)
    calls = puts(dynamodb, table)
    assert refusal_of(calls)[0] == 1
    dynamodb.update_table(
        TableName=table, ProvisionedThroughput={"ReadCapacityUnits": 1, "WriteCapacityUnits": 4}
    )
    served.clock.now += 1
    assert refusal_of(calls)[0] == 4


def test_a_table_that_is_made_anew_starts_anew(
    served: Endpoint, dynamodb: "DynamoDBClient"
) -> None:
    table = make_table(dynamodb)
    keys = {"AttributeName": "PK", "KeyType": "HASH"}
    assert refusal_of(puts(dynamodb, table, key="hot"))[0] == 5
    dynamodb.delete_table(TableName=table)
    assert table not in served.heat()["tables"]
    dynamodb.create_table(
        TableName=table,
        KeySchema=[keys],  # type: ignore[list-item]
        AttributeDefinitions=[{"AttributeName": "PK", "AttributeType": "S"}],
        BillingMode="PAY_PER_REQUEST",
    )
    assert refusal_of(partial(put, dynamodb, table, "hot", "x") for _ in count())[0] == 5


def test_a_table_that_was_there_before_the_endpoint_is_learnt(served: Endpoint) -> None:
    capacity = {"ReadCapacityUnits": 3, "WriteCapacityUnits": 2}
    table = make_table(served.engine(), index=True, ProvisionedThroughput=capacity)
    dynamodb = served.client()
    passed, error = refusal_of(puts(dynamodb, table))
    assert passed == 2
    arn = arn_of(served, table)
    assert_reason(error, PROVISIONED, "TableWriteProvisionedThroughputExceeded", arn)
