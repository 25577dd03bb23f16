"""Runs MiniStack with its CloudWatch corrected: `python -I emulated.py`, by MiniStack's own Python.

MiniStack evaluates alarms by itself whenever data or an alarm is put, from all metrics of a name
whatever their dimensions. Its messages to topics differ from AWS's, and it ignores the metrics that
functions write into their logs. Evaluating elsewhere does not help as long as MiniStack also does:
one datum of any table would raise the alarms of all others, and publish. Keeping data from it would
lose its own AWS/Lambda metrics. So the wrong functions are replaced in its process. Scheduled rules
follow the time scale of metrics, which LOCAL_TIME_SCALE names. MiniStack's version is pinned to the
byte; if a function is no longer there, this program ends with an error that says which.

Nothing of this project is imported here: the two environments share no packages.
"""

import importlib
import json
import os
import sys
import time
from collections.abc import Callable
from typing import Any

__all__ = ["main"]

# Settings for which MiniStack records a default where none is stated; CloudWatch's depends on more.
_OPTIONAL = ("DatapointsToAlarm", "EvaluateLowSampleCountPercentile", "TreatMissingData")
_ACTIONS = {
    "ALARM": "AlarmActions",
    "OK": "OKActions",
    "INSUFFICIENT_DATA": "InsufficientDataActions",
}
_TAKE_METRICS = ".TakeMetrics"


def main() -> None:
    """Correct MiniStack and start it."""
    cloudwatch = _module("services.cloudwatch")
    _replace(cloudwatch, "_evaluate_alarm", lambda _: lambda _alarm: None)
    _replace(cloudwatch, "_put_metric_alarm", lambda put: _put_as_stated(put, cloudwatch))
    _replace(cloudwatch, "_dispatch_alarm_actions", lambda _: _publisher(cloudwatch))
    _replace(cloudwatch, "handle_request", lambda handle: _with_take_metrics(handle, cloudwatch))
    provisioners = _module("services.cloudformation.provisioners")
    _replace(provisioners, "_cw_metric_alarm_record", _record_as_stated)
    _scale_schedules(_module("services.eventbridge"), float(os.environ["LOCAL_TIME_SCALE"]))
    functions = _module("services.lambda_svc")
    _replace(functions, "_emit_lambda_logs", lambda emit: _with_log_metrics(emit, cloudwatch))
    os.environ["LOG_LEVEL"] = "WARNING"  # else each request is a line, and a banner comes first
    app = _module("app")
    del os.environ["LOG_LEVEL"]  # functions inherit this environment
    app.main()


def _module(name: str) -> Any:
    return importlib.import_module(f"ministack.{name}")


def _replace(module: Any, name: str, make: Callable[[Any], Any]) -> None:
    if not hasattr(module, name):
        sys.exit(f"This MiniStack has no {module.__name__}.{name}: reinstall it with `make setup`.")
    setattr(module, name, make(getattr(module, name)))


def _scale_schedules(eventbridge: Any, scale: float) -> None:
    parse = "_parse_rate_seconds"
    _replace(eventbridge, parse, lambda usual: lambda text: (usual(text) or 0) / scale or None)
    _replace(eventbridge, "_SCHEDULER_TICK_INTERVAL", lambda usual: usual / scale)


def _record_as_stated(record: Callable[..., dict[str, Any]]) -> Callable[..., dict[str, Any]]:
    """Correct the alarms that CloudFormation records."""

    def corrected(name: str, properties: dict[str, Any]) -> dict[str, Any]:
        alarm = record(name, properties)
        _drop_defaults(alarm, properties)
        return alarm

    return corrected


def _put_as_stated(put: Callable[..., Any], cloudwatch: Any) -> Callable[..., Any]:
    """Correct the alarms that PutMetricAlarm records."""

    def corrected(fields: Any, parameters: dict[str, Any], *protocol: bool) -> Any:
        answer = put(fields, parameters, *protocol)
        if answer[0] == 200 and any(protocol):
            alarm = cloudwatch._alarms[parameters["AlarmName"]]  # noqa: SLF001
            _drop_defaults(alarm, parameters)
        return answer

    return corrected


def _drop_defaults(alarm: dict[str, Any], stated: dict[str, Any]) -> None:
    for name in _OPTIONAL:
        alarm.pop(name, None)
        if stated.get(name) is not None:
            alarm[name] = stated[name]


def _publisher(cloudwatch: Any) -> Callable[..., None]:
    """Return what publishes a transition to the alarm's topics as CloudWatch does."""
    topics = _module("services.sns")

    def publish(alarm: dict[str, Any], old: str, new: str, reason: str) -> None:
        if not alarm.get("ActionsEnabled", True):
            return
        account, region = cloudwatch.get_account_id(), cloudwatch.get_region()
        message = _message(alarm, old, new, reason) | {"AWSAccountId": account, "Region": region}
        subject = f'{new}: "{alarm["AlarmName"]}" in {region}'[:100]
        for arn in alarm.get(_ACTIONS[new]) or ():
            if cloudwatch._is_sns_action_arn(arn):  # noqa: SLF001
                topics._fanout(arn, cloudwatch.new_uuid(), json.dumps(message), subject)  # noqa: SLF001

    return publish


def _message(alarm: dict[str, Any], old: str, new: str, reason: str) -> dict[str, Any]:
    return {
        "AlarmName": alarm["AlarmName"],
        "AlarmDescription": alarm.get("AlarmDescription") or None,
        "AlarmArn": alarm["AlarmArn"],
        "NewStateValue": new,
        "NewStateReason": reason,
        "OldStateValue": old,
        "StateChangeTime": _timestamp(time.time()),  # noqa: TID251
        **{name: alarm.get(name) or [] for name in _ACTIONS.values()},
        "Trigger": _trigger(alarm),
    }


def _trigger(alarm: dict[str, Any]) -> dict[str, Any]:
    periods = alarm.get("EvaluationPeriods", 1)
    return {
        "MetricName": alarm.get("MetricName"),
        "Namespace": alarm.get("Namespace"),
        **_statistic(alarm),
        "Unit": alarm.get("Unit"),
        "Dimensions": [
            {"value": pair["Value"], "name": pair["Name"]} for pair in alarm.get("Dimensions") or []
        ],
        "Period": alarm.get("Period", 60),
        "EvaluationPeriods": periods,
        "DatapointsToAlarm": alarm.get("DatapointsToAlarm", periods),
        "ComparisonOperator": alarm.get("ComparisonOperator"),
        "Threshold": alarm.get("Threshold", 0.0),
        "TreatMissingData": alarm.get("TreatMissingData", "missing"),
        "EvaluateLowSampleCountPercentile": alarm.get("EvaluateLowSampleCountPercentile", ""),
    }


def _statistic(alarm: dict[str, Any]) -> dict[str, str]:
    extended = alarm.get("ExtendedStatistic")
    if extended:
        return {"StatisticType": "ExtendedStatistic", "ExtendedStatistic": extended}
    return {"StatisticType": "Statistic", "Statistic": str(alarm.get("Statistic")).upper()}


def _timestamp(wall: float) -> str:
    milliseconds = int(wall % 1 * 1000)
    return f"{time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(wall))}.{milliseconds:03d}+0000"


def _with_take_metrics(handle: Callable[..., Any], cloudwatch: Any) -> Callable[..., Any]:
    """Add an operation that returns all recorded metrics and deletes them."""

    async def handle_request(
        method: str, path: str, headers: dict[str, str], body: bytes, query: Any
    ) -> Any:
        if not headers.get("x-amz-target", "").endswith(_TAKE_METRICS):
            return await handle(method, path, headers, body, query)
        taken = [
            {
                "Namespace": namespace,
                "MetricName": name,
                "Dimensions": points[0]["Dimensions"],
                "Points": points,
            }
            for (namespace, name, _), points in cloudwatch._metrics.items()  # noqa: SLF001
            if points
        ]
        cloudwatch._metrics.clear()  # noqa: SLF001
        return 200, {"Content-Type": "application/json"}, json.dumps({"Metrics": taken}).encode()

    return handle_request


def _with_log_metrics(emit: Callable[..., None], cloudwatch: Any) -> Callable[..., None]:
    """Record the metrics that a function's log lines hold in the embedded metric format."""

    def emit_logs(func: Any, request: str, text: str, *more: Any, **named: Any) -> None:
        emit(func, request, text, *more, **named)
        for line in (text or "").splitlines():
            if '"_aws"' in line:
                try:
                    _record_metrics(json.loads(line), cloudwatch)
                except (AttributeError, LookupError, TypeError, ValueError):
                    continue  # not the embedded metric format

    return emit_logs


def _record_metrics(document: dict[str, Any], cloudwatch: Any) -> None:
    at = document["_aws"]["Timestamp"] / 1000
    for directive in document["_aws"]["CloudWatchMetrics"]:
        for names in directive.get("Dimensions") or [[]]:
            dimensions = {name: str(document[name]) for name in names}
            for metric in directive["Metrics"]:
                value = document[metric["Name"]]
                cloudwatch._store_datum(  # noqa: SLF001
                    directive["Namespace"],
                    metric["Name"],
                    dimensions,
                    at,
                    metric.get("Unit", "None"),
                    None,
                    value if isinstance(value, list) else [value],
                    None,
                    None,
                )


if __name__ == "__main__":
    main()
