"""Messages in the shapes in which CloudWatch sends them."""

import json
from datetime import UTC, datetime
from typing import Any

from spillway.control.monitoring import AlarmState

__all__ = ["direct_event", "message", "sns_event"]


def message(alarm: AlarmState) -> str:
    """Return what an alarm publishes to its topic."""
    dimensions = [{"value": value, "name": name} for name, value in alarm.dimensions.items()]
    content = {
        "AlarmName": alarm.name,
        "AlarmDescription": None,
        "AWSAccountId": "000000000000",
        "NewStateValue": alarm.state,
        "NewStateReason": "Threshold Crossed",
        "StateChangeTime": _stamp(alarm.at),
        "Region": "US East (N. Virginia)",
        "OldStateValue": "OK",
        "Trigger": {
            "MetricName": alarm.metric,
            "Namespace": alarm.namespace,
            "StatisticType": "Statistic",
            "Statistic": "SUM",
            "Unit": None,
            "Dimensions": dimensions,
            "Period": 60,
            "EvaluationPeriods": 1,
            "ComparisonOperator": "GreaterThanOrEqualToThreshold",
            "Threshold": 1.0,
            "TreatMissingData": "notBreaching",
        },
    }
    return json.dumps(content)


def sns_event(*alarms: AlarmState) -> dict[str, Any]:
    """Return what the topic calls the function with."""
    return {
        "Records": [
            {"EventSource": "aws:sns", "Sns": {"Type": "Notification", "Message": message(each)}}
            for each in alarms
        ]
    }


def direct_event(alarm: AlarmState) -> dict[str, Any]:
    """Return what an alarm calls the function with by itself."""
    metric = {
        "namespace": alarm.namespace,
        "name": alarm.metric,
        "dimensions": dict(alarm.dimensions),
    }
    query = {"id": "m1", "metricStat": {"metric": metric, "period": 60, "stat": "Sum"}}
    return {
        "source": "aws.cloudwatch",
        "alarmArn": f"arn:aws:cloudwatch:us-east-1:000000000000:alarm:{alarm.name}",
        "alarmData": {
            "alarmName": alarm.name,
            "state": {"value": alarm.state, "reason": "…", "timestamp": _stamp(alarm.at)},
            "previousState": {"value": "OK"},
            "configuration": {"metrics": [query]},
        },
    }


def _stamp(seconds: float) -> str:
    at = datetime.fromtimestamp(seconds, UTC)
    return f"{at:%Y-%m-%dT%H:%M:%S}.{at.microsecond // 1000:03}+0000"
