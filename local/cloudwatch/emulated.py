"""Runs MiniStack with its CloudWatch corrected: `python -I emulated.py`, by MiniStack's own Python.

MiniStack evaluates alarms by itself whenever data or an alarm is put, from all metrics of a name whatever their
dimensions; its CloudFormation refuses metric math; its messages to topics are not in AWS's shape; and it makes
nothing of the metrics that functions write into their logs. Evaluating elsewhere does not help as long as it also
does: one datum of any table would turn the alarms of all others, and publish. The ways to stop that from outside
(keeping all data from it, changing alarms and templates as they pass) would leave its own AWS/Lambda metrics in its
way, and metric math out. So the functions that are wrong are replaced in its process. Scheduled rules follow the time
scale of metrics, which LOCAL_TIME_SCALE names. Its version is pinned to the byte; if a function is no longer there,
this ends with a sentence.

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

_STATED = (
    "DatapointsToAlarm",
    "EvaluateLowSampleCountPercentile",
    "Metrics",
    "ThresholdMetricId",
    "TreatMissingData",
)
_OF_ONE_METRIC = (
    "Dimensions",
    "ExtendedStatistic",
    "MetricName",
    "Namespace",
    "Period",
    "Statistic",
    "Unit",
)
_ACTIONS = {
    "ALARM": "AlarmActions",
    "OK": "OKActions",
    "INSUFFICIENT_DATA": "InsufficientDataActions",
}
_TAKE = ".TakeMetrics"


def main() -> None:
    """Correct MiniStack and start it."""
    cloudwatch = _module("services.cloudwatch")
    _replace(cloudwatch, "_evaluate_alarm", lambda _: lambda _alarm: None)
    _replace(cloudwatch, "_put_metric_alarm", lambda put: _putting(put, cloudwatch))
    _replace(cloudwatch, "_dispatch_alarm_actions", lambda _: _publishing(cloudwatch))
    _replace(cloudwatch, "handle_request", lambda handle: _giving_away(handle, cloudwatch))
    provisioners = _module("services.cloudformation.provisioners")
    _replace(provisioners, "_cw_metric_alarm_record", _recording)
    _hurry(_module("services.eventbridge"), float(os.environ.get("LOCAL_TIME_SCALE", "1")))
    functions = _module("services.lambda_svc")
    _replace(functions, "_emit_lambda_logs", lambda emit: _reading_logs(emit, cloudwatch))
    _module("app").main()


def _module(name: str) -> Any:
    return importlib.import_module(f"ministack.{name}")


def _replace(module: Any, name: str, made: Callable[[Any], Any]) -> None:
    if not hasattr(module, name):
        sys.exit(f"This MiniStack has no {module.__name__}.{name}: reinstall it with `make setup`.")
    setattr(module, name, made(getattr(module, name)))


def _hurry(eventbridge: Any, scale: float) -> None:
    parse = "_parse_rate_seconds"
    _replace(eventbridge, parse, lambda usual: lambda text: (usual(text) or 0) / scale or None)
    _replace(eventbridge, "_SCHEDULER_TICK_INTERVAL", lambda usual: usual / scale)


def _as_stated(alarm: dict[str, Any], stated: dict[str, Any]) -> None:
    """Keep in an alarm's record what was stated, and nothing in place of what was not."""
    for name in _STATED:
        alarm.pop(name, None)
        if stated.get(name) is not None:
            alarm[name] = stated[name]
    for name in _OF_ONE_METRIC if stated.get("Metrics") else ():
        alarm.pop(name, None)


def _recording(record: Callable[..., dict[str, Any]]) -> Callable[..., dict[str, Any]]:
    """Let CloudFormation take alarms on metric math and those that are compared with a band."""

    def corrected(name: str, props: dict[str, Any]) -> dict[str, Any]:
        if not props.get("Metrics"):
            alarm = record(name, props)
        else:
            placeholders = {"Metrics": None, "MetricName": "-", "Namespace": "-"}
            alarm = record(name, {"Threshold": 0, **props, **placeholders})
        _as_stated(alarm, props)
        return alarm

    return corrected


def _putting(put: Callable[..., Any], cloudwatch: Any) -> Callable[..., Any]:
    def corrected(params: Any, stated: dict[str, Any], *protocol: bool) -> Any:
        answer = put(params, stated, *protocol)
        if answer[0] == 200 and any(protocol):
            _as_stated(cloudwatch._alarms[stated["AlarmName"]], stated)  # noqa: SLF001
        return answer

    return corrected


def _publishing(cloudwatch: Any) -> Callable[..., None]:
    """Publish a transition to the alarm's topics as CloudWatch does."""
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
        "StateChangeTime": _stamp(time.time()),  # noqa: TID251
        **{name: alarm.get(name) or [] for name in _ACTIONS.values()},
        "Trigger": _trigger(alarm),
    }


def _trigger(alarm: dict[str, Any]) -> dict[str, Any]:
    periods = alarm.get("EvaluationPeriods", 1)
    common = {
        "EvaluationPeriods": periods,
        "DatapointsToAlarm": alarm.get("DatapointsToAlarm", periods),
        "ComparisonOperator": alarm.get("ComparisonOperator"),
        "Threshold": alarm.get("Threshold", 0.0),
        "TreatMissingData": alarm.get("TreatMissingData", "missing"),
        "EvaluateLowSampleCountPercentile": alarm.get("EvaluateLowSampleCountPercentile", ""),
    }
    if alarm.get("Metrics"):
        return {"Metrics": [_lower_dimensions(entry) for entry in alarm["Metrics"]], **common}
    return {
        "MetricName": alarm.get("MetricName"),
        "Namespace": alarm.get("Namespace"),
        **_statistic(alarm),
        "Unit": alarm.get("Unit"),
        "Dimensions": _lowered(alarm.get("Dimensions") or []),
        "Period": alarm.get("Period", 60),
        **common,
    }


def _statistic(alarm: dict[str, Any]) -> dict[str, str]:
    extended = alarm.get("ExtendedStatistic")
    if extended:
        return {"StatisticType": "ExtendedStatistic", "ExtendedStatistic": extended}
    return {"StatisticType": "Statistic", "Statistic": str(alarm.get("Statistic")).upper()}


def _lower_dimensions(entry: dict[str, Any]) -> dict[str, Any]:
    if not entry.get("MetricStat"):
        return entry
    stat = entry["MetricStat"]
    metric = {**stat["Metric"], "Dimensions": _lowered(stat["Metric"].get("Dimensions") or [])}
    return {**entry, "MetricStat": {**stat, "Metric": metric}}


def _lowered(dimensions: list[dict[str, str]]) -> list[dict[str, str]]:
    return [{"value": pair["Value"], "name": pair["Name"]} for pair in dimensions]


def _stamp(wall: float) -> str:
    milliseconds = int(wall % 1 * 1000)
    return f"{time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(wall))}.{milliseconds:03d}+0000"


def _giving_away(handle: Callable[..., Any], cloudwatch: Any) -> Callable[..., Any]:
    """Add an operation that hands over all metrics that were recorded, and forgets them."""

    async def handle_request(
        method: str, path: str, headers: dict[str, str], body: bytes, query: Any
    ) -> Any:
        if not headers.get("x-amz-target", "").endswith(_TAKE):
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


def _reading_logs(emit: Callable[..., None], cloudwatch: Any) -> Callable[..., None]:
    """Record the metrics that a function's log lines hold in the embedded metric format."""

    def emit_logs(func: Any, request: str, text: str, *more: Any, **named: Any) -> None:
        emit(func, request, text, *more, **named)
        for line in (text or "").splitlines():
            if '"_aws"' in line:
                try:
                    _record(json.loads(line), cloudwatch)
                except (AttributeError, LookupError, TypeError, ValueError):
                    continue  # a line that only looks like it

    return emit_logs


def _record(document: dict[str, Any], cloudwatch: Any) -> None:
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
