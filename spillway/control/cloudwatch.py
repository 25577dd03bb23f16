"""The CloudWatch adapter: alarms, throttled keys and capacity figures through a boto3 client."""

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from botocore.exceptions import BotoCoreError, ClientError

from spillway.control.monitoring import AlarmState, ThrottledKey
from spillway.dynamodb.port import RefusedError, StorageError, ThrottledError, UnreachableError
from spillway.keys import INDEX_NAME
from spillway.scaling.evidence import CapacityMetrics, CapacityUse
from spillway.scaling.policy import ThrottleTarget

if TYPE_CHECKING:
    from types_boto3_cloudwatch import CloudWatchClient
    from types_boto3_cloudwatch.type_defs import (
        DimensionTypeDef,
        MetricAlarmTypeDef,
        MetricDataQueryTypeDef,
    )

__all__ = ["CloudWatchView", "capacity_through"]


_MINUTE: Final = 60
_MAX_KEYS: Final = 25  # of a report
_INDEX_METRIC: Final = "WriteKeyRangeThroughputThrottleEvents"


class CloudWatchView:
    """CloudWatch's view of one table, and of the alarms whose names begin with a prefix.

    Needs the rights to `cloudwatch:DescribeAlarms`, `cloudwatch:GetInsightRuleReport` and
    `cloudwatch:GetMetricData`.
    Errors are StorageErrors: ThrottledError, RefusedError, UnreachableError. Retries are the
    client's own.
    """

    def __init__(self, client: "CloudWatchClient", table: str, alarm_prefix: str) -> None:
        self._client = client
        self._prefix = alarm_prefix
        self._query = _index_query(table)

    def in_alarm(self) -> Sequence[AlarmState]:
        """Return the metric alarms in ALARM; those on metric math are left out."""
        found: list[MetricAlarmTypeDef] = []
        try:
            pages = self._client.get_paginator("describe_alarms").paginate(
                AlarmNamePrefix=self._prefix, StateValue="ALARM", AlarmTypes=["MetricAlarm"]
            )
            for page in pages:
                found += page["MetricAlarms"]
        except (BotoCoreError, ClientError) as error:
            raise _to_storage_error(error) from error
        return [_alarm(each) for each in found if "MetricName" in each]

    def throttled_keys(self, rule: str, since: float, until: float) -> Sequence[ThrottledKey]:
        """Return the 25 keys that throttled most, by minute."""
        try:
            answer = self._client.get_insight_rule_report(
                RuleName=rule,
                StartTime=_time(since),
                EndTime=_time(until),
                Period=_MINUTE,
                MaxContributorCount=_MAX_KEYS,
            )
        except (BotoCoreError, ClientError) as error:
            raise _to_storage_error(error) from error
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
            raise _to_storage_error(error) from error
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


def _alarm(described: "MetricAlarmTypeDef") -> AlarmState:
    return AlarmState(
        name=described["AlarmName"],
        state=described["StateValue"],
        at=described["StateUpdatedTimestamp"].timestamp(),
        namespace=described["Namespace"],
        metric=described["MetricName"],
        dimensions={each["Name"]: each["Value"] for each in described.get("Dimensions", [])},
    )


def _time(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)


def _to_storage_error(error: BotoCoreError | ClientError) -> StorageError:
    if isinstance(error, BotoCoreError):
        return UnreachableError(type(error).__name__, str(error))
    details: Any = error.response.get("Error", {})
    code, message = str(details.get("Code", "")), str(details.get("Message", ""))
    if "Throttl" in code or code == "LimitExceededFault":
        return ThrottledError(code, message)
    status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 500)
    return (UnreachableError if status >= 500 else RefusedError)(code, message)


_CONSUMED_WINDOW: Final = timedelta(minutes=5)
_PROVISIONED_WINDOW: Final = timedelta(minutes=15)  # a figure every five minutes


def capacity_through(
    client: "CloudWatchClient", table: str, now: Callable[[], float], *, index: str = INDEX_NAME
) -> CapacityMetrics:
    """Return the write capacity of a table and its index by CloudWatch; `now` is in epoch seconds.

    Consumption is that of the busiest of the last five minutes. Each use costs one GetMetricData of
    four metrics and needs the right to `cloudwatch:GetMetricData`; UnreachableError where
    CloudWatch does not answer.
    """
    dimensions: dict[ThrottleTarget, list[DimensionTypeDef]] = {
        ThrottleTarget.TABLE: [{"Name": "TableName", "Value": table}],
        ThrottleTarget.INDEX: [
            {"Name": "TableName", "Value": table},
            {"Name": "GlobalSecondaryIndexName", "Value": index},
        ],
    }
    queries = [query for target in ThrottleTarget for query in _queries(target, dimensions[target])]

    def uses() -> Mapping[ThrottleTarget, CapacityUse]:
        end = datetime.fromtimestamp(now(), UTC)
        try:
            answer = client.get_metric_data(
                MetricDataQueries=queries, StartTime=end - _PROVISIONED_WINDOW, EndTime=end
            )
        except (BotoCoreError, ClientError) as error:
            raise UnreachableError(type(error).__name__, str(error)) from error
        found = {
            each["Id"]: dict(zip(each["Timestamps"], each["Values"], strict=True))
            for each in answer["MetricDataResults"]
        }
        return {target: _use(target, found, end - _CONSUMED_WINDOW) for target in ThrottleTarget}

    return uses


def _queries(
    target: ThrottleTarget, dimensions: "list[DimensionTypeDef]"
) -> "list[MetricDataQueryTypeDef]":
    return [
        {
            "Id": f"{name.lower()}_{target.value}",
            "MetricStat": {
                "Metric": {
                    "Namespace": "AWS/DynamoDB",
                    "MetricName": f"{name}WriteCapacityUnits",
                    "Dimensions": dimensions,
                },
                "Period": period,
                "Stat": statistic,
            },
        }
        for name, period, statistic in (
            ("Consumed", _MINUTE, "Sum"),
            ("Provisioned", 5 * _MINUTE, "Maximum"),
        )
    ]


def _use(
    target: ThrottleTarget, found: Mapping[str, Mapping[datetime, float]], since: datetime
) -> CapacityUse:
    """Return one side's figures. On demand CloudWatch has none of provisioned capacity, or 0."""
    consumed = found.get(f"consumed_{target.value}", {})
    provisioned = found.get(f"provisioned_{target.value}", {})
    latest = provisioned[max(provisioned)] if provisioned else 0.0
    recent = (units for time, units in consumed.items() if time >= since)
    return CapacityUse(max(recent, default=0.0) / _MINUTE, latest or None)
