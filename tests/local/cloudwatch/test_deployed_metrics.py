"""The local cloud's CloudWatch through boto3: metrics, insights and alarms."""

import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from http.client import HTTPConnection
from io import BytesIO
from threading import Event
from time import monotonic
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode, urlsplit
from zipfile import ZipFile

import boto3
import pytest
from botocore.config import Config
from botocore.exceptions import ClientError

from dynamoheat.serve.options import HeatOptions
from local.cloud import Cloud, running

if TYPE_CHECKING:
    from types_boto3_cloudwatch import CloudWatchClient
    from types_boto3_dynamodb import DynamoDBClient

pytestmark = pytest.mark.cloud

PATIENCE = 200.0  # seconds; two are usual
TABLE = "Readings"
FUNCTION = """
import json
def handler(event, context):
    print(json.dumps({
        "_aws": {"Timestamp": event["at"], "CloudWatchMetrics": [
            {"Namespace": "Spillway", "Dimensions": [["service"]],
             "Metrics": [{"Name": "Accepted", "Unit": "Count"}]}]},
        "service": "ingest", "Accepted": 25}))
    if event.get("fail"):
        raise RuntimeError("as asked")
"""


@pytest.fixture(scope="module")
def cloud() -> Iterator[Cloud]:
    with running(deploys=False, heat=HeatOptions(partition_wcu=20, time_scale=60)) as started:
        yield started


@pytest.fixture(scope="module")
def cloudwatch(cloud: Cloud) -> "CloudWatchClient":
    made: CloudWatchClient = boto3.client("cloudwatch", **cloud.client_settings())
    return made


@pytest.fixture(scope="module")
def dynamodb(cloud: Cloud) -> "DynamoDBClient":
    once = Config(retries={"total_max_attempts": 1})
    made: DynamoDBClient = boto3.client("dynamodb", config=once, **cloud.client_settings())
    return made


@pytest.fixture(scope="module")
def table(dynamodb: "DynamoDBClient") -> str:
    """A table with one key above its partition's limit and insights on."""
    dynamodb.create_table(
        TableName=TABLE,
        KeySchema=[{"AttributeName": "PK", "KeyType": "HASH"}],
        AttributeDefinitions=[{"AttributeName": "PK", "AttributeType": "S"}],
        BillingMode="PAY_PER_REQUEST",
    )
    dynamodb.update_contributor_insights(
        TableName=TABLE,
        ContributorInsightsAction="ENABLE",
        ContributorInsightsMode="THROTTLED_KEYS",
    )
    return TABLE


def write(dynamodb: "DynamoDBClient", key: str, count: int) -> int:
    """Write items; return how many were throttled."""
    throttled = 0
    for _ in range(count):
        try:
            dynamodb.put_item(TableName=TABLE, Item={"PK": {"S": key}})
        except ClientError:
            throttled += 1
    return throttled


def lately() -> dict[str, Any]:
    now = datetime.now(UTC)  # noqa: TID251  # what the cloud's clock shows
    return {"StartTime": now - timedelta(seconds=PATIENCE), "EndTime": now + timedelta(seconds=2)}


def until(look: Callable[[], Any], wanted: Callable[[Any], bool]) -> Any:
    deadline = monotonic() + PATIENCE
    while not wanted(found := look()):
        assert monotonic() < deadline, found
        Event().wait(0.1)
    return found


def total(cloudwatch: "CloudWatchClient", namespace: str, name: str, **dimensions: str) -> float:
    found = cloudwatch.get_metric_statistics(
        Namespace=namespace,
        MetricName=name,
        Dimensions=[{"Name": key, "Value": value} for key, value in dimensions.items()],
        Period=60,
        Statistics=["Sum"],
        **lately(),
    )
    return sum(point["Sum"] for point in found["Datapoints"])


def test_throttled_writes_show_in_metrics_and_insights(
    dynamodb: "DynamoDBClient", cloudwatch: "CloudWatchClient", table: str
) -> None:
    assert write(dynamodb, "cold", 3) == 0
    throttled = write(dynamodb, "hot", 60)
    assert throttled > 0
    name = "WriteKeyRangeThroughputThrottleEvents"
    until(
        lambda: total(cloudwatch, "AWS/DynamoDB", name, TableName=table),
        lambda found: bool(found == throttled),
    )
    consumed = total(cloudwatch, "AWS/DynamoDB", "ConsumedWriteCapacityUnits", TableName=table)
    assert consumed == 63 - throttled

    described = dynamodb.describe_contributor_insights(TableName=table)
    (rule,) = described["ContributorInsightsRuleList"]
    assert rule.startswith(f"DynamoDBContributorInsights-PKT-{table}-")
    assert described["ContributorInsightsStatus"] == "ENABLED"
    assert {**described}["ContributorInsightsMode"] == "THROTTLED_KEYS"
    (summary,) = dynamodb.list_contributor_insights(TableName=table)["ContributorInsightsSummaries"]
    assert {**summary}["ContributorInsightsMode"] == "THROTTLED_KEYS"

    report = cloudwatch.get_insight_rule_report(RuleName=rule, Period=60, **lately())
    assert [each["Keys"] for each in report["Contributors"]] == [["hot"]]
    assert report["AggregateValue"] == throttled


def test_metric_data_come_by_query_and_metric_math_is_refused(
    cloudwatch: "CloudWatchClient",
) -> None:
    cloudwatch.put_metric_data(Namespace="Math", MetricData=[{"MetricName": "A", "Value": 4}])
    metric: Any = {"Namespace": "Math", "MetricName": "A"}
    query: Any = {"Id": "m", "MetricStat": {"Metric": metric, "Period": 60, "Stat": "p50"}}
    found = cloudwatch.get_metric_data(MetricDataQueries=[query], **lately())
    assert [each["Values"] for each in found["MetricDataResults"]] == [[4]]
    expression: Any = {"Id": "e", "Expression": "m / 2"}
    with pytest.raises(ClientError, match=r"ValidationError.*does not support metric math"):
        cloudwatch.get_metric_data(MetricDataQueries=[query, expression], **lately())
    with pytest.raises(ClientError, match=r"ValidationError.*does not support metric math"):
        cloudwatch.put_metric_alarm(**alarm("half", Metrics=[query, expression]))
    assert cloudwatch.describe_alarms(AlarmNames=["half"])["MetricAlarms"] == []


def alarm(name: str, **more: Any) -> dict[str, Any]:
    return {
        "AlarmName": name,
        "EvaluationPeriods": 1,
        "Threshold": 0.5,
        "ComparisonOperator": "GreaterThanThreshold",
        "TreatMissingData": "notBreaching",
        **more,
    }


def state(cloudwatch: "CloudWatchClient", name: str) -> str:
    (found,) = cloudwatch.describe_alarms(AlarmNames=[name])["MetricAlarms"]
    return found["StateValue"]


def test_metrics_of_functions_and_of_their_logs_turn_alarms(
    cloud: Cloud, cloudwatch: "CloudWatchClient"
) -> None:
    package = BytesIO()
    with ZipFile(package, "w") as archive:
        archive.writestr("main.py", FUNCTION)
    functions: Any = boto3.client("lambda", **cloud.client_settings())
    functions.create_function(
        FunctionName="f",
        Runtime="python3.13",
        Role="arn:aws:iam::000000000000:role/r",
        Handler="main.handler",
        Code={"ZipFile": package.getvalue()},
    )
    of_function: Any = {
        "Namespace": "AWS/Lambda",
        "MetricName": "Errors",
        "Dimensions": [{"Name": "FunctionName", "Value": "f"}],
    }
    cloudwatch.put_metric_alarm(**alarm("errors", **of_function, Statistic="Sum", Period=60))
    until(lambda: state(cloudwatch, "errors"), lambda found: bool(found == "OK"))

    at = int(datetime.now(UTC).timestamp() * 1000)  # noqa: TID251  # what the cloud's clock shows
    call = json.dumps({"at": at, "fail": True})
    assert functions.invoke(FunctionName="f", Payload=call)["FunctionError"]
    until(lambda: state(cloudwatch, "errors"), lambda found: bool(found == "ALARM"))
    assert total(cloudwatch, "Spillway", "Accepted", service="ingest") == 25


def test_an_alarm_that_is_put_again_keeps_its_state_until_it_is_evaluated(
    cloudwatch: "CloudWatchClient",
) -> None:
    watched: Any = {"Namespace": "Other", "MetricName": "A", "Statistic": "Sum", "Period": 60}
    of_a = watched | {"Dimensions": [{"Name": "T", "Value": "a"}]}
    cloudwatch.put_metric_alarm(**alarm("of-a", **of_a))
    until(lambda: state(cloudwatch, "of-a"), lambda found: bool(found == "OK"))
    of_b: Any = {"MetricName": "A", "Value": 9, "Dimensions": [{"Name": "T", "Value": "b"}]}
    cloudwatch.put_metric_data(Namespace="Other", MetricData=[of_b])
    cloudwatch.put_metric_alarm(**alarm("of-a", **of_a))
    Event().wait(1.5)  # longer than a minute of metrics
    assert state(cloudwatch, "of-a") == "OK"


def test_older_sdks_may_speak_query(cloud: Cloud) -> None:
    address = urlsplit(cloud.endpoint_url)
    connection = HTTPConnection(address.hostname or "", address.port or 0)
    scope = "AWS4-HMAC-SHA256 Credential=local/20300101/us-east-1/monitoring/aws4_request"
    headers = {"Authorization": scope, "Content-Type": "application/x-www-form-urlencoded"}

    def ask(**fields: str) -> str:
        connection.request("POST", "/", urlencode(fields), headers)
        return connection.getresponse().read().decode()

    datum = {"MetricData.member.1.MetricName": "A", "MetricData.member.1.Value": "7"}
    assert "PutMetricDataResponse" in ask(Action="PutMetricData", Namespace="Query", **datum)
    listed = ask(Action="ListMetrics", Namespace="Query")
    assert "<MetricName>A</MetricName>" in listed
    assert "DescribeAlarmsResult" in ask(Action="DescribeAlarms")
    connection.close()


def test_unknown_rules_tables_and_indexes_are_refused_as_aws_does(
    dynamodb: "DynamoDBClient", cloudwatch: "CloudWatchClient", table: str
) -> None:
    with pytest.raises(cloudwatch.exceptions.ResourceNotFoundException):
        cloudwatch.get_insight_rule_report(RuleName="none", Period=60, **lately())
    with pytest.raises(cloudwatch.exceptions.InvalidParameterValueException):
        cloudwatch.get_insight_rule_report(RuleName="none", Period=61, **lately())
    for missing in ({"TableName": "none"}, {"TableName": table, "IndexName": "none"}):
        with pytest.raises(dynamodb.exceptions.ResourceNotFoundException):
            dynamodb.describe_contributor_insights(**missing)
    with pytest.raises(dynamodb.exceptions.ResourceNotFoundException):
        dynamodb.update_contributor_insights(TableName="none", ContributorInsightsAction="ENABLE")


def test_rules_end_with_their_table(
    dynamodb: "DynamoDBClient", cloudwatch: "CloudWatchClient"
) -> None:
    dynamodb.create_table(
        TableName="brief",
        KeySchema=[{"AttributeName": "PK", "KeyType": "HASH"}],
        AttributeDefinitions=[{"AttributeName": "PK", "AttributeType": "S"}],
        BillingMode="PAY_PER_REQUEST",
    )
    dynamodb.update_contributor_insights(TableName="brief", ContributorInsightsAction="ENABLE")
    rules = dynamodb.describe_contributor_insights(TableName="brief")["ContributorInsightsRuleList"]
    assert [rule.split("-")[1] for rule in rules] == ["PKC", "PKT"]
    dynamodb.delete_table(TableName="brief")
    with pytest.raises(cloudwatch.exceptions.ResourceNotFoundException):
        cloudwatch.get_insight_rule_report(RuleName=rules[0], Period=60, **lately())
