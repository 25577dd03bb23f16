"""The adapter that puts a boto3 CloudWatch client behind the scaler's port: alarms, metrics, Contributor Insights."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from botocore.exceptions import BotoCoreError, ClientError

from spillway.keys import INDEX_NAME
from spillway.scaler.signals import Alarm
from spillway.scaler.watching import ThrottledKey
from spillway.storage.port import RefusedError, StorageError, ThrottledError, UnreachableError

if TYPE_CHECKING:
    from types_boto3_cloudwatch import CloudWatchClient
    from types_boto3_cloudwatch.type_defs import MetricAlarmTypeDef, MetricDataQueryTypeDef

__all__ = ["CloudWatchView"]

_MINUTE: Final = 60
_MOST_KEYS: Final = 25  # of a report
_INDEX_METRIC: Final = "WriteKeyRangeThroughputThrottleEvents"


class CloudWatchView:
    """What CloudWatch knows of one table and of the alarms whose names begin with a prefix.

    Needs the rights to `cloudwatch:DescribeAlarms`, `cloudwatch:GetInsightRuleReport` and `cloudwatch:GetMetricData`.
    Errors are StorageErrors: ThrottledError, RefusedError, UnreachableError. Retries are the client's own.
    """

    def __init__(self, client: "CloudWatchClient", table: str, alarm_prefix: str) -> None:
        self._client = client
        self._prefix = alarm_prefix
        self._query = _index_query(table)

    def in_alarm(self) -> Sequence[Alarm]:
        """Return the metric alarms in ALARM; those on metric math are left out."""
        found: list[MetricAlarmTypeDef] = []
        try:
            pages = self._client.get_paginator("describe_alarms").paginate(
                AlarmNamePrefix=self._prefix, StateValue="ALARM", AlarmTypes=["MetricAlarm"]
            )
            for page in pages:
                found += page["MetricAlarms"]
        except (BotoCoreError, ClientError) as error:
            raise _failed(error) from error
        return [_alarm(each) for each in found if "MetricName" in each]

    def throttled_keys(self, rule: str, since: float, until: float) -> Sequence[ThrottledKey]:
        """Return the 25 keys that throttled most, by minute."""
        try:
            answer = self._client.get_insight_rule_report(
                RuleName=rule,
                StartTime=_time(since),
                EndTime=_time(until),
                Period=_MINUTE,
                MaxContributorCount=_MOST_KEYS,
            )
        except (BotoCoreError, ClientError) as error:
            raise _failed(error) from error
        return [
            ThrottledKey(each["Keys"][0], point["Timestamp"].timestamp(), point["ApproximateValue"])
            for each in answer.get("Contributors", [])
            for point in each["Datapoints"]
        ]

    def index_throttles(self, since: float, until: float) -> Mapping[float, float]:
        """Return how many writes key ranges of the index throttled, by the minute's start."""
        try:
            answer = self._client.get_metric_data(
                MetricDataQueries=[self._query], StartTime=_time(since), EndTime=_time(until)
            )
        except (BotoCoreError, ClientError) as error:
            raise _failed(error) from error
        (found,) = answer["MetricDataResults"]
        values = zip(found["Timestamps"], found["Values"], strict=True)
        return {at.timestamp(): value for at, value in values if value > 0}


def _index_query(table: str) -> "MetricDataQueryTypeDef":
    return {
        "Id": "throttles",
        "MetricStat": {
            "Metric": {
                "Namespace": "AWS/DynamoDB",
                "MetricName": _INDEX_METRIC,
                "Dimensions": [
                    {"Name": "TableName", "Value": table},
                    {"Name": "GlobalSecondaryIndexName", "Value": INDEX_NAME},
                ],
            },
            "Period": _MINUTE,
            "Stat": "Sum",
        },
    }


def _alarm(described: "MetricAlarmTypeDef") -> Alarm:
    return Alarm(
        name=described["AlarmName"],
        state=described["StateValue"],
        at=described["StateUpdatedTimestamp"].timestamp(),
        namespace=described["Namespace"],
        metric=described["MetricName"],
        dimensions={each["Name"]: each["Value"] for each in described.get("Dimensions", [])},
    )


def _time(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)


def _failed(error: BotoCoreError | ClientError) -> StorageError:
    if isinstance(error, BotoCoreError):
        return UnreachableError(type(error).__name__, str(error))
    told: Any = error.response.get("Error", {})
    code, message = str(told.get("Code", "")), str(told.get("Message", ""))
    if "Throttl" in code or code == "LimitExceededFault":
        return ThrottledError(code, message)
    status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 500)
    return (UnreachableError if status >= 500 else RefusedError)(code, message)
