"""The adapter that puts a boto3 CloudWatch client behind the port for capacity figures."""

from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final

from botocore.exceptions import BotoCoreError, ClientError

from spillway.keys import INDEX_NAME
from spillway.scaling.capacity import CapacityMetrics, CapacityUse
from spillway.scaling.observation import Target
from spillway.storage.port import UnreachableError

if TYPE_CHECKING:
    from types_boto3_cloudwatch import CloudWatchClient
    from types_boto3_cloudwatch.type_defs import DimensionTypeDef, MetricDataQueryTypeDef

__all__ = ["capacity_through"]

_MINUTE: Final = 60  # seconds, the period of consumption; figures come a minute or two late
_CONSUMED_FOR: Final = timedelta(minutes=5)
_PROVISIONED_FOR: Final = timedelta(minutes=15)  # a figure every five minutes


def capacity_through(
    client: "CloudWatchClient", table: str, now: Callable[[], float], *, index: str = INDEX_NAME
) -> CapacityMetrics:
    """Return the write capacity of a table and its index by CloudWatch; `now` is in epoch seconds.

    Consumption is that of the busiest of the last five minutes. Each use costs one GetMetricData of four metrics and
    needs the right to `cloudwatch:GetMetricData`; UnreachableError where CloudWatch does not answer.
    """
    dimensions: dict[Target, list[DimensionTypeDef]] = {
        Target.TABLE: [{"Name": "TableName", "Value": table}],
        Target.INDEX: [
            {"Name": "TableName", "Value": table},
            {"Name": "GlobalSecondaryIndexName", "Value": index},
        ],
    }
    queries = [query for target in Target for query in _queries(target, dimensions[target])]

    def uses() -> Mapping[Target, CapacityUse]:
        end = datetime.fromtimestamp(now(), UTC)
        try:
            answer = client.get_metric_data(
                MetricDataQueries=queries, StartTime=end - _PROVISIONED_FOR, EndTime=end
            )
        except (BotoCoreError, ClientError) as error:
            raise UnreachableError(type(error).__name__, str(error)) from error
        found = {
            each["Id"]: dict(zip(each["Timestamps"], each["Values"], strict=True))
            for each in answer["MetricDataResults"]
        }
        return {target: _use(target, found, end - _CONSUMED_FOR) for target in Target}

    return uses


def _queries(
    target: Target, dimensions: "list[DimensionTypeDef]"
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
    target: Target, found: Mapping[str, Mapping[datetime, float]], since: datetime
) -> CapacityUse:
    """Return one side's figures. On demand CloudWatch has none of provisioned capacity, or 0."""
    consumed = found.get(f"consumed_{target.value}", {})
    provisioned = found.get(f"provisioned_{target.value}", {})
    latest = provisioned[max(provisioned)] if provisioned else 0.0
    recent = (units for time, units in consumed.items() if time >= since)
    return CapacityUse(max(recent, default=0.0) / _MINUTE, latest or None)
