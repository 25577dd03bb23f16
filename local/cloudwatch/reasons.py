"""Says why an alarm changed its state, in CloudWatch's words and in its JSON."""

import json
from datetime import UTC, datetime
from typing import Any, Final

from local.cloudwatch.alarms import DeployedAlarm
from local.cloudwatch.evaluation import AlarmVerdict
from local.cloudwatch.store import MetricTime

__all__ = ["reason", "reason_data"]

_WORDS: Final = {
    "GreaterThanThreshold": "greater than the threshold",
    "GreaterThanOrEqualToThreshold": "greater than or equal to the threshold",
    "LessThanThreshold": "less than the threshold",
    "LessThanOrEqualToThreshold": "less than or equal to the threshold",
    "GreaterThanUpperThreshold": "greater than the upper threshold",
    "LessThanLowerThreshold": "less than the lower threshold",
    "LessThanLowerOrGreaterThanUpperThreshold": "less than the lower or greater than the upper threshold",
}
_TREATED: Final = {"breaching": "Breaching", "notBreaching": "NonBreaching"}


def reason(alarm: DeployedAlarm, verdict: AlarmVerdict, time: MetricTime) -> str:
    """Return the sentence of `StateReason`."""
    if verdict.state == "INSUFFICIENT_DATA":
        return f"Insufficient Data: {_counted(alarm.evaluation_periods)} unknown."
    parts = [_of_points(alarm, verdict, time)] if verdict.decided else [_of_none(alarm)]
    if verdict.filled and alarm.missing in _TREATED:
        count = f"{verdict.filled} missing datapoint{_s(verdict.filled)}"
        parts.append(f"{count} {_was(verdict.filled)} treated as [{_TREATED[alarm.missing]}]")
    return f"Threshold Crossed: {' and '.join(parts)}{_transition(alarm, verdict)}."


def reason_data(alarm: DeployedAlarm, verdict: AlarmVerdict, time: MetricTime, now: float) -> str:
    """Return the document of `StateReasonData`; `now` is wall time."""
    points = verdict.decided
    document: dict[str, Any] = {
        "version": "1.0",
        "queryDate": _stamp(now),
        "period": alarm.period,
        "recentDatapoints": [point.value for point in points],
        "threshold": alarm.threshold,
        "evaluatedDatapoints": [
            {"timestamp": _stamp(time.wall(point.start)), "value": point.value} for point in points
        ],
    }
    if points:
        document["startDate"] = _stamp(time.wall(points[0].start))
    if alarm.statistic is not None:
        document["statistic"] = alarm.statistic
    return json.dumps(document)


def _of_points(alarm: DeployedAlarm, verdict: AlarmVerdict, time: MetricTime) -> str:
    alarming = verdict.state == "ALARM" and verdict.breaching > 0
    shown = [
        f"{point.value} ({datetime.fromtimestamp(time.wall(point.start), UTC):%d/%m/%y %H:%M:%S})"
        for point in verdict.decided
    ]
    total = len(shown)
    named = verdict.breaching if alarming else total - verdict.breaching
    share = f"{named} out of the last {total} datapoints" if total > 1 else "1 datapoint"
    verb = _was(named) + ("" if alarming else " not")
    bound = "" if alarm.band else f" ({alarm.threshold})"
    return f"{share} [{', '.join(shown)}] {verb} {_WORDS[alarm.comparison]}{bound}"


def _of_none(alarm: DeployedAlarm) -> str:
    periods = alarm.evaluation_periods
    return f"no datapoints were received for {periods} period{_s(periods)}"


def _transition(alarm: DeployedAlarm, verdict: AlarmVerdict) -> str:
    if verdict.state != "ALARM" or alarm.evaluation_periods == 1:
        return ""
    least = alarm.datapoints_to_alarm
    return f" (minimum {least} datapoint{_s(least)} for OK -> ALARM transition)"


def _counted(count: int) -> str:
    return f"{count} datapoint{_s(count)} {_was(count)}"


def _was(count: int) -> str:
    return "was" if count == 1 else "were"


def _s(count: int) -> str:
    return "" if count == 1 else "s"


def _stamp(wall: float) -> str:
    return (
        datetime.fromtimestamp(wall, UTC)
        .isoformat(timespec="milliseconds")
        .replace("+00:00", "+0000")
    )
