"""The local cloud throttles by the settings of its templates, and breaks what it is told to."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import boto3
import pytest
from botocore.config import Config

from dynamoheat.serve.options import HeatOptions
from local.cloud import Cloud, running
from local.state import ROOT
from tests.dynamoheat.serve.serving import Endpoint, make_table, puts, refusal_of

if TYPE_CHECKING:
    from types_boto3_cloudformation import CloudFormationClient
    from types_boto3_dynamodb import DynamoDBClient

pytestmark = pytest.mark.cloud

NAME = "templated"


def template(**properties: Any) -> str:
    keys = [{"AttributeName": n, "KeyType": k} for n, k in (("PK", "HASH"), ("SK", "RANGE"))]
    group = [{"AttributeName": "GPK", "KeyType": "HASH"}]
    table = {
        "Type": "AWS::DynamoDB::Table",
        "Properties": {
            "TableName": NAME,
            "AttributeDefinitions": [
                {"AttributeName": name, "AttributeType": "S"} for name in ("PK", "SK", "GPK")
            ],
            "KeySchema": keys,
            "BillingMode": "PAY_PER_REQUEST",
            "GlobalSecondaryIndexes": [
                {
                    "IndexName": "by-group",
                    "KeySchema": group,
                    "Projection": {"ProjectionType": "ALL"},
                    "WarmThroughput": {"ReadUnitsPerSecond": 100, "WriteUnitsPerSecond": 50},
                }
            ],
            **properties,
        },
    }
    return json.dumps({"Resources": {"Table": table}})


@pytest.fixture(scope="module")
def cloud() -> Iterator[Cloud]:
    limits = HeatOptions(partition_wcu=5, partition_rcu=10, parameters=("on_demand_partitions=1",))
    with running(deploys=False, heat=limits) as started:
        yield started


@pytest.fixture
def local(cloud: Cloud) -> Endpoint:
    return Endpoint(cloud.endpoint_url, cloud.endpoint_url)


@pytest.fixture
def dynamodb(local: Endpoint) -> "DynamoDBClient":
    return local.client()


@pytest.fixture
def stacks(cloud: Cloud) -> "Iterator[CloudFormationClient]":
    made: CloudFormationClient = boto3.client("cloudformation", **cloud.client_settings())
    yield made
    made.delete_stack(StackName="stack")
    made.get_waiter("stack_delete_complete").wait(StackName="stack")


def deploy(stacks: "CloudFormationClient", body: str, *, again: bool = False) -> None:
    change = stacks.update_stack if again else stacks.create_stack
    change(StackName="stack", TemplateBody=body)
    done: Any = "stack_update_complete" if again else "stack_create_complete"
    stacks.get_waiter(done).wait(StackName="stack", WaiterConfig={"Delay": 1})


def reason_of(error: Any) -> str:
    reasons = error.get("throttlingReasons") or error["ThrottlingReasons"]
    return str(reasons[0]["reason"])


def test_a_templates_maximum_and_warm_throughput_hold_and_are_described(
    local: Endpoint, dynamodb: "DynamoDBClient", stacks: "CloudFormationClient"
) -> None:
    maximum = {"MaxWriteRequestUnits": 3}
    deploy(stacks, template(OnDemandThroughput=maximum))
    found = dynamodb.describe_table(TableName=NAME)["Table"]
    assert found["OnDemandThroughput"] == maximum
    (index,) = found["GlobalSecondaryIndexes"]
    assert index["WarmThroughput"]["WriteUnitsPerSecond"] == 50
    passed, error = refusal_of(puts(dynamodb, NAME))
    assert passed >= 3
    assert reason_of(error) == "TableWriteMaxOnDemandThroughputExceeded"
    resource = error["throttlingReasons"][0]["resource"]
    assert resource == found["TableArn"] == f"arn:aws:dynamodb:us-east-1:000000000000:table/{NAME}"
    assert len(local.heat()["tables"][NAME]["indexes"]["by-group"]["partitions"]) == 10


def test_an_updated_stack_changes_limits_and_a_deleted_one_forgets_its_tables(
    local: Endpoint, dynamodb: "DynamoDBClient", stacks: "CloudFormationClient"
) -> None:
    deploy(stacks, template(OnDemandThroughput={"MaxWriteRequestUnits": 3}))
    refusal_of(puts(dynamodb, NAME))
    deploy(stacks, template(OnDemandThroughput={"MaxWriteRequestUnits": 1000}), again=True)
    _, error = refusal_of(puts(dynamodb, NAME, key="hot"))
    assert reason_of(error) == "TableWriteKeyRangeThroughputExceeded"
    state = local.heat()["tables"][NAME]
    assert state["limits"]["write"][0] == {
        "limit": "MaxOnDemandThroughput", "rate": 1000.0,
        "tokens": state["limits"]["write"][0]["tokens"],
    }  # fmt: skip
    assert set(state["throttled"]) == {
        "TableWriteMaxOnDemandThroughputExceeded", "TableWriteKeyRangeThroughputExceeded",
    }  # fmt: skip
    stacks.delete_stack(StackName="stack")
    stacks.get_waiter("stack_delete_complete").wait(StackName="stack")
    assert NAME not in local.heat()["tables"]


def test_calls_that_change_a_table_change_its_limits(
    local: Endpoint, dynamodb: "DynamoDBClient"
) -> None:
    rates: Any = {"ReadCapacityUnits": 1, "WriteCapacityUnits": 1}
    table = make_table(dynamodb, ProvisionedThroughput=rates)
    _, error = refusal_of(puts(dynamodb, table))
    assert error["Error"]["Code"] == "ProvisionedThroughputExceededException"
    assert reason_of(error) == "TableWriteProvisionedThroughputExceeded"
    dynamodb.update_table(
        TableName=table,
        BillingMode="PAY_PER_REQUEST",
        OnDemandThroughput={"MaxReadRequestUnits": 2},
    )
    dynamodb.update_table(
        TableName=table, WarmThroughput={"ReadUnitsPerSecond": 20, "WriteUnitsPerSecond": 40}
    )
    state = local.heat()["tables"][table]
    assert (state["mode"], len(state["partitions"])) == ("PAY_PER_REQUEST", 8)
    found = dynamodb.describe_table(TableName=table)["Table"]
    assert found["OnDemandThroughput"] == {"MaxReadRequestUnits": 2}
    assert found["WarmThroughput"]["WriteUnitsPerSecond"] == 40
    dynamodb.delete_table(TableName=table)
    assert table not in local.heat()["tables"]


def test_faults_are_put_in_force_beside_a_bucket_of_the_pages_name(
    cloud: Cloud, local: Endpoint, dynamodb: "DynamoDBClient"
) -> None:
    table = make_table(dynamodb)
    local.set_faults("PutItem:500:1")
    _, error = refusal_of(puts(dynamodb, table))
    assert error["Error"]["Code"] == "InternalServerError"
    local.set_faults()
    config = Config(s3={"addressing_style": "path"})
    objects = boto3.client("s3", config=config, **cloud.client_settings())
    objects.create_bucket(Bucket="heat")
    assert objects.list_objects_v2(Bucket="heat")["KeyCount"] == 0
    dynamodb.delete_table(TableName=table)


@pytest.mark.parametrize("option", ["--fault=PutItem:never:1", "--time-scale=0", "--parameter=x"])
def test_a_malformed_option_is_told_in_a_sentence_before_anything_starts(
    tmp_path: Path, option: str
) -> None:
    words = [sys.executable, "-m", "local", "up", "--no-deploy", "--state", str(tmp_path), option]
    done = subprocess.run(  # noqa: S603
        words, cwd=ROOT, capture_output=True, text=True, timeout=600, check=False
    )
    assert done.returncode == 1
    assert done.stderr.startswith("local cloud: ")
    assert done.stderr.count("\n") == 1
    assert done.stdout == ""
