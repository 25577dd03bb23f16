"""Alarms from CloudFormation follow the load on their own table or index and publish once."""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from threading import Event
from time import monotonic
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import boto3
import pytest
from botocore.config import Config
from botocore.exceptions import ClientError

from dynamoheat.serve.options import HeatOptions
from local.cloud import Cloud, running

if TYPE_CHECKING:
    from types_boto3_cloudformation import CloudFormationClient
    from types_boto3_cloudwatch import CloudWatchClient
    from types_boto3_dynamodb import DynamoDBClient

pytestmark = pytest.mark.cloud

METRIC = "WriteKeyRangeThroughputThrottleEvents"
SCALE = 60.0  # a minute of metrics lasts a second
PATIENCE = 200.0  # seconds; two are usual


def alarm(name: str, table: Any, index: str | None = None, missing: str = "notBreaching") -> Any:
    dimensions = [{"Name": "TableName", "Value": table}]
    if index is not None:
        dimensions.append({"Name": "GlobalSecondaryIndexName", "Value": index})
    return {
        "Type": "AWS::CloudWatch::Alarm",
        "Properties": {
            "AlarmName": name,
            "Namespace": "AWS/DynamoDB",
            "MetricName": METRIC,
            "Dimensions": dimensions,
            "Statistic": "Sum",
            "Period": 60,
            "EvaluationPeriods": 1,
            "Threshold": 1,
            "ComparisonOperator": "GreaterThanOrEqualToThreshold",
            "TreatMissingData": missing,
            "AlarmActions": [{"Ref": "Topic"}],
            "OKActions": [{"Ref": "Topic"}],
            "InsufficientDataActions": [{"Ref": "Topic"}],
        },
    }


def template() -> dict[str, Any]:
    attributes = [{"AttributeName": name, "AttributeType": "S"} for name in ("PK", "GPK")]
    table = {
        "AttributeDefinitions": attributes,
        "KeySchema": [{"AttributeName": "PK", "KeyType": "HASH"}],
        "BillingMode": "PAY_PER_REQUEST",
        "GlobalSecondaryIndexes": [
            {
                "IndexName": "ByGroup",
                "KeySchema": [{"AttributeName": "GPK", "KeyType": "HASH"}],
                "Projection": {"ProjectionType": "ALL"},
                "ContributorInsightsSpecification": {"Enabled": True, "Mode": "THROTTLED_KEYS"},
            }
        ],
        "ContributorInsightsSpecification": {"Enabled": True},
        "WarmThroughput": {"ReadUnitsPerSecond": 12000, "WriteUnitsPerSecond": 20000},
    }
    queue = {"Fn::GetAtt": ["Queue", "Arn"]}
    subscription = {"TopicArn": {"Ref": "Topic"}, "Protocol": "sqs", "Endpoint": queue}
    return {
        "Resources": {
            "Table": {"Type": "AWS::DynamoDB::Table", "Properties": table},
            "Topic": {"Type": "AWS::SNS::Topic", "Properties": {}},
            "Queue": {"Type": "AWS::SQS::Queue", "Properties": {}},
            "Subscription": {"Type": "AWS::SNS::Subscription", "Properties": subscription},
            "TableHot": alarm("table-hot", {"Ref": "Table"}),
            "IndexHot": alarm("index-hot", {"Ref": "Table"}, "ByGroup"),
            "NobodyHot": alarm("nobody-hot", "no-such-table", missing="missing"),
        },
        "Outputs": {"Table": {"Value": {"Ref": "Table"}}, "Queue": {"Value": {"Ref": "Queue"}}},
    }


@dataclass(frozen=True)
class Deployed:
    """The stack of the template, in a cloud of its own whose partitions take 20 units a second."""

    dynamodb: "DynamoDBClient"
    cloudwatch: "CloudWatchClient"
    sqs: Any
    table: str
    queue: str

    def states(self) -> dict[str, str]:
        found = self.cloudwatch.describe_alarms()["MetricAlarms"]
        return {each["AlarmName"]: each["StateValue"] for each in found}

    def published(self, count: int) -> list[tuple[str, str, str]]:
        """Return what was published since the last time: alarm, old and new state.

        Wait for `count` messages, and a moment longer for any that should not come.
        """
        found = list[tuple[str, str, str]]()
        deadline = monotonic() + PATIENCE
        while len(found) < count and monotonic() < deadline:
            found += self._received()
            Event().wait(0.1)
        Event().wait(0.5)
        return found + self._received()

    def _received(self) -> list[tuple[str, str, str]]:
        found: list[tuple[str, str, str]] = []
        while True:
            answer = self.sqs.receive_message(QueueUrl=self.queue, MaxNumberOfMessages=10)
            if not answer.get("Messages"):
                return found
            for message in answer["Messages"]:
                told = json.loads(json.loads(message["Body"])["Message"])
                found.append((told["AlarmName"], told["OldStateValue"], told["NewStateValue"]))
                self.sqs.delete_message(QueueUrl=self.queue, ReceiptHandle=message["ReceiptHandle"])

    def write(self, count: int, key: Callable[[int], dict[str, Any]]) -> list[str]:
        """Write items, with what was throttled left alone; return the reasons."""
        reasons = []
        for at in range(count):
            try:
                self.dynamodb.put_item(TableName=self.table, Item=key(at))
            except ClientError as error:
                told: dict[str, Any] = {**error.response}
                reasons += [each["reason"] for each in told["throttlingReasons"]]
        return reasons

    def heat_table(self) -> set[str]:
        return set(self.write(60, lambda _: {"PK": {"S": "hot"}}))

    def heat_index(self) -> set[str]:
        """Spread items evenly over the table, and send all of them to one key of the index."""
        group = {"GPK": {"S": "hot"}}
        return set(self.write(120, lambda _: {"PK": {"S": str(uuid4())}, **group}))


@pytest.fixture(scope="module")
def cloud() -> Iterator[Cloud]:
    limits = HeatOptions(partition_wcu=20, time_scale=SCALE)
    with running(deploys=False, heat=limits) as started:
        yield started


@pytest.fixture(scope="module")
def deployed(cloud: Cloud) -> Deployed:
    once = Config(retries={"total_max_attempts": 1})
    settings = cloud.client_settings()
    cloudformation: CloudFormationClient = boto3.client("cloudformation", **settings)
    cloudformation.create_stack(StackName="alarms", TemplateBody=json.dumps(template()))
    cloudformation.get_waiter("stack_create_complete").wait(
        StackName="alarms", WaiterConfig={"Delay": 1}
    )
    found = cloudformation.describe_stacks(StackName="alarms")["Stacks"][0]["Outputs"]
    outputs = {each["OutputKey"]: each["OutputValue"] for each in found}
    return Deployed(
        boto3.client("dynamodb", config=once, **settings),
        boto3.client("cloudwatch", **settings),
        boto3.client("sqs", **settings),
        outputs["Table"],
        outputs["Queue"],
    )


def until(deployed: Deployed, wanted: dict[str, str], act: Callable[[], object] = bool) -> None:
    """Act again and again until the alarms have the states wanted."""
    deadline = monotonic() + PATIENCE
    while deployed.states() != wanted:
        assert monotonic() < deadline, deployed.states()
        act()
        Event().wait(0.1)


CALM = {"table-hot": "OK", "index-hot": "OK", "nobody-hot": "INSUFFICIENT_DATA"}


def test_each_alarm_follows_its_own_table_or_index_and_publishes_each_transition_once(
    deployed: Deployed,
) -> None:
    until(deployed, CALM)
    deployed.published(2)

    assert deployed.heat_table() == {"TableWriteKeyRangeThroughputExceeded"}
    until(deployed, {**CALM, "table-hot": "ALARM"}, deployed.heat_table)
    until(deployed, CALM)
    assert deployed.published(2) == [("table-hot", "OK", "ALARM"), ("table-hot", "ALARM", "OK")]

    assert deployed.heat_index() == {"IndexWriteKeyRangeThroughputExceeded"}
    until(deployed, {**CALM, "index-hot": "ALARM"}, deployed.heat_index)
    until(deployed, CALM)
    assert deployed.published(2) == [("index-hot", "OK", "ALARM"), ("index-hot", "ALARM", "OK")]

    history = deployed.cloudwatch.describe_alarm_history(
        AlarmName="nobody-hot", HistoryItemType="StateUpdate"
    )["AlarmHistoryItems"]
    assert [each["HistorySummary"] for each in history] == [
        "Alarm updated from INSUFFICIENT_DATA to INSUFFICIENT_DATA"
    ]  # MiniStack's record of its creation
