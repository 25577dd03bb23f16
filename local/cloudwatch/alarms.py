"""The deployed alarms: evaluated minute by minute of metric time, as CloudWatch documents it.

MiniStack says which alarms there are and keeps their states (DescribeAlarms). SetAlarmState there
records a transition and publishes to the alarm's topics. A state is set only where it changes, so
each transition publishes once. As in AWS, the state of an alarm that was set by hand is corrected a
minute later.

An alarm looks at a *range* of periods that is longer than its evaluation periods (N), so that a few
missing datapoints do not matter. The latest N datapoints in the range decide. If there are fewer,
all of them decide, and missing ones are filled in as the alarm says. M breaching datapoints
(`DatapointsToAlarm`) raise the alarm. So do fewer, if they are all there is and the oldest is at
least M periods old.
"""

import json
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, Final, Literal

from local.cloudwatch.metric_store import MINUTE, Metric, MetricStore, MetricTime, PeriodGrid

__all__ = [
    "EXTRA_PERIODS",
    "AlarmEvaluation",
    "AlarmEvaluator",
    "CallMiniStack",
    "Datapoint",
    "DeployedAlarm",
    "StateValue",
    "evaluate_alarm",
    "state_reason",
    "state_reason_data",
]

_log = logging.getLogger(__name__)

EXTRA_PERIODS: Final = 2
"""Periods of the range beyond the evaluation periods.

CloudWatch does not publish it; in its examples the range is 5 for 3 evaluation periods.
"""

_HIGH_RESOLUTION: Final = 10  # seconds between evaluations of alarms with a period below a minute
_MAX_CATCH_UP: Final = 10  # evaluations made up for after a pause

StateValue = Literal["OK", "ALARM", "INSUFFICIENT_DATA"]

CallMiniStack = Callable[[str, Mapping[str, Any]], Awaitable[dict[str, Any]]]
"""Calls an operation of MiniStack's CloudWatch; raises `ConnectionError` where that fails."""


@dataclass(frozen=True, slots=True)
class _Comparison:
    is_breaching: Callable[[float, float], bool]  # of a value and the threshold
    words: str


_COMPARISONS: Final = {
    "GreaterThanThreshold": _Comparison(
        lambda value, threshold: value > threshold, "greater than the threshold"
    ),
    "GreaterThanOrEqualToThreshold": _Comparison(
        lambda value, threshold: value >= threshold, "greater than or equal to the threshold"
    ),
    "LessThanThreshold": _Comparison(
        lambda value, threshold: value < threshold, "less than the threshold"
    ),
    "LessThanOrEqualToThreshold": _Comparison(
        lambda value, threshold: value <= threshold, "less than or equal to the threshold"
    ),
}
_STATE_WITHOUT_DATA: Final[Mapping[str, StateValue]] = {
    "missing": "INSUFFICIENT_DATA",
    "breaching": "ALARM",
    "notBreaching": "OK",
}  # ignore: the state stays


@dataclass(frozen=True, slots=True, kw_only=True)
class DeployedAlarm:
    """A metric alarm as evaluation needs it."""

    name: str
    state: StateValue
    metric: Metric
    statistic: str
    unit: str | None  # None: samples of every unit
    period: int  # seconds of metric time
    comparison: str
    threshold: float
    evaluation_periods: int
    datapoints_to_alarm: int
    missing_data: str
    low_samples: str  # percentiles of few samples: evaluate or ignore

    @classmethod
    def from_description(cls, description: Mapping[str, Any]) -> "DeployedAlarm":
        """Read one of `MetricAlarms` in a DescribeAlarms answer.

        Raises:
            LookupError: It names no metric, or a comparison that is not supported.
        """
        periods = int(description.get("EvaluationPeriods") or 1)
        metric = _read_metric(description)
        # Alarms on DynamoDB's metrics ignore missing data unless they say otherwise.
        default = "ignore" if metric.namespace == "AWS/DynamoDB" else "missing"
        if description["ComparisonOperator"] not in _COMPARISONS:
            raise LookupError(description["ComparisonOperator"])
        return cls(
            name=description["AlarmName"],
            state=description["StateValue"],
            metric=metric,
            statistic=description.get("ExtendedStatistic")
            or description.get("Statistic")
            or "Average",
            unit=description.get("Unit") or None,
            period=int(description.get("Period") or MINUTE),
            comparison=description["ComparisonOperator"],
            threshold=float(description.get("Threshold") or 0.0),
            evaluation_periods=periods,
            datapoints_to_alarm=int(description.get("DatapointsToAlarm") or periods),
            missing_data=description.get("TreatMissingData") or default,
            low_samples=description.get("EvaluateLowSampleCountPercentile") or "evaluate",
        )

    def is_breaching(self, value: float) -> bool:
        """Return whether a value is beyond the threshold."""
        return _COMPARISONS[self.comparison].is_breaching(value, self.threshold)


def _read_metric(description: Mapping[str, Any]) -> Metric:
    pairs = description.get("Dimensions") or ()
    dimensions = frozenset((pair["Name"], pair["Value"]) for pair in pairs)
    return Metric(description["Namespace"], description["MetricName"], dimensions)


@dataclass(frozen=True, slots=True)
class Datapoint:
    """A datapoint that is there: the start of its period, its value, the number of its samples."""

    start: int
    value: float
    samples: float = float("inf")


@dataclass(frozen=True, slots=True)
class AlarmEvaluation:
    """The state that follows from datapoints, and the datapoints that decided it, oldest first."""

    state: StateValue
    datapoints: tuple[Datapoint, ...] = ()
    filled: int = 0  # how many evaluation periods lacked a datapoint
    breaching: int = 0


class AlarmEvaluator:
    """Evaluates the alarms that MiniStack describes, and sets their states there."""

    def __init__(self, store: MetricStore, time: MetricTime, call: CallMiniStack) -> None:
        """Take the metrics, the time scale, and a way to call MiniStack's CloudWatch."""
        self._store = store
        self._time = time
        self._call = call
        self._evaluated: int | None = None  # the last metric second that was evaluated
        self._reported: set[str] = set()  # alarms that cannot be evaluated, and are in the log
        self.step = MINUTE  # metric seconds between evaluations

    async def evaluate(self, now: float) -> None:
        """Evaluate every alarm at each minute (or ten seconds) since the last call, up to `now`."""
        last = self._time.seconds(now) // self.step * self.step
        if self._evaluated is None:
            self._evaluated = last - self.step
        first = max(self._evaluated + self.step, last - (_MAX_CATCH_UP - 1) * self.step)
        moments = range(first, last + 1, self.step)
        if not moments:
            return
        alarms = await self._describe_alarms()
        self._evaluated = last
        self.step = _HIGH_RESOLUTION if any(alarm.period < MINUTE for alarm in alarms) else MINUTE
        for alarm in alarms:
            await self._evaluate_alarm(alarm, moments, now)

    async def _evaluate_alarm(self, alarm: DeployedAlarm, moments: range, now: float) -> None:
        for at in moments:
            if alarm.period >= MINUTE and at % MINUTE:
                continue
            evaluation = evaluate_alarm(alarm, _read_datapoints(alarm, self._store, at))
            if evaluation.state != alarm.state:
                await self._set_state(alarm, evaluation, now)
                alarm = replace(alarm, state=evaluation.state)

    async def _set_state(
        self, alarm: DeployedAlarm, evaluation: AlarmEvaluation, now: float
    ) -> None:
        request = {
            "AlarmName": alarm.name,
            "StateValue": evaluation.state,
            "StateReason": state_reason(alarm, evaluation, self._time),
            "StateReasonData": state_reason_data(alarm, evaluation, self._time, now),
        }
        await self._call("SetAlarmState", request)

    async def _describe_alarms(self) -> list[DeployedAlarm]:
        alarms: list[DeployedAlarm] = []
        token: dict[str, str] = {}
        while True:
            page = await self._call("DescribeAlarms", {"MaxRecords": 100, **token})
            for description in page.get("MetricAlarms") or ():
                try:
                    alarms.append(DeployedAlarm.from_description(description))
                except (AttributeError, LookupError, TypeError, ValueError) as error:
                    self._report_once(json.dumps(description), error)
            if not page.get("NextToken"):
                return alarms
            token = {"NextToken": page["NextToken"]}

    def _report_once(self, alarm: str, error: Exception) -> None:
        """Log once that an alarm cannot be evaluated. It keeps its state."""
        if alarm not in self._reported:
            self._reported.add(alarm)
            _log.warning("the alarm %s is not evaluated: %r", alarm, error)


def _read_datapoints(alarm: DeployedAlarm, store: MetricStore, at: int) -> list[Datapoint | None]:
    """Return the datapoints of an alarm's range up to the metric second `at`, oldest first."""
    count = alarm.evaluation_periods + EXTRA_PERIODS
    grid = PeriodGrid(at - count * alarm.period, alarm.period, count)
    datapoints: list[Datapoint | None] = []
    for start, samples in zip(
        grid.starts, store.windows(alarm.metric, grid, alarm.unit), strict=True
    ):
        value = None if samples is None else samples.statistic(alarm.statistic)
        if samples is None or value is None:
            datapoints.append(None)
        else:
            datapoints.append(Datapoint(start, value, samples.count))
    return datapoints


def evaluate_alarm(alarm: DeployedAlarm, datapoints: Sequence[Datapoint | None]) -> AlarmEvaluation:
    """Return the state that follows from the range's datapoints, oldest first, None if missing.

    Pure: it depends on its arguments only.
    """
    needed = alarm.evaluation_periods
    present = tuple(point for point in datapoints if point is not None)[-needed:]
    breaching = sum(alarm.is_breaching(point.value) for point in present)
    filled = needed - len(present)
    state = _next_state(alarm, datapoints, present, breaching)
    return AlarmEvaluation(state, present, filled, breaching)


def _next_state(
    alarm: DeployedAlarm,
    datapoints: Sequence[Datapoint | None],
    present: Sequence[Datapoint],
    breaching: int,
) -> StateValue:
    if _has_too_few_samples(alarm, present):
        return alarm.state
    if not present:
        return _STATE_WITHOUT_DATA.get(alarm.missing_data, alarm.state)
    filled = alarm.evaluation_periods - len(present)
    if (
        breaching + (filled if alarm.missing_data == "breaching" else 0)
        >= alarm.datapoints_to_alarm
    ):
        return "ALARM"
    is_old_enough = _age(datapoints) >= alarm.datapoints_to_alarm
    if breaching == len(present) and is_old_enough and alarm.missing_data in ("missing", "ignore"):
        return "ALARM" if alarm.missing_data == "missing" else alarm.state
    return "OK"


def _age(datapoints: Sequence[Datapoint | None]) -> int:
    """Return how many periods ago the period of the oldest datapoint began."""
    oldest = next(at for at, point in enumerate(datapoints) if point is not None)
    return len(datapoints) - oldest


def _has_too_few_samples(alarm: DeployedAlarm, present: Sequence[Datapoint]) -> bool:
    """Return whether a percentile rests on too few samples, and the alarm ignores such."""
    if alarm.low_samples != "ignore" or not alarm.statistic.startswith("p"):
        return False
    fraction = float(alarm.statistic[1:]) / 100
    tail = min(fraction, 1 - fraction)
    return tail > 0 and any(point.samples < 10 / tail for point in present)


def state_reason(alarm: DeployedAlarm, evaluation: AlarmEvaluation, time: MetricTime) -> str:
    """Return `StateReason` in CloudWatch's words."""
    if evaluation.state == "INSUFFICIENT_DATA":
        count = alarm.evaluation_periods
        return f"Insufficient Data: {_plural(count, 'datapoint')} {_was(count)} unknown."
    parts = [_describe_datapoints(alarm, evaluation, time)]
    filling = {"breaching": "Breaching", "notBreaching": "NonBreaching"}.get(alarm.missing_data)
    if evaluation.filled and filling:
        count = evaluation.filled
        parts.append(f"{_plural(count, 'missing datapoint')} {_was(count)} treated as [{filling}]")
    transition = ""
    if evaluation.state == "ALARM" and alarm.evaluation_periods > 1:
        minimum = _plural(alarm.datapoints_to_alarm, "datapoint")
        transition = f" (minimum {minimum} for OK -> ALARM transition)"
    return f"Threshold Crossed: {' and '.join(parts)}{transition}."


def _describe_datapoints(
    alarm: DeployedAlarm, evaluation: AlarmEvaluation, time: MetricTime
) -> str:
    total = len(evaluation.datapoints)
    if not total:
        return f"no datapoints were received for {_plural(alarm.evaluation_periods, 'period')}"
    raises = evaluation.state == "ALARM" and evaluation.breaching > 0
    count = evaluation.breaching if raises else total - evaluation.breaching
    share = f"{count} out of the last {total} datapoints" if total > 1 else "1 datapoint"
    values = ", ".join(
        f"{point.value} ({datetime.fromtimestamp(time.wall(point.start), UTC):%d/%m/%y %H:%M:%S})"
        for point in evaluation.datapoints
    )
    verb = _was(count) + ("" if raises else " not")
    return f"{share} [{values}] {verb} {_COMPARISONS[alarm.comparison].words} ({alarm.threshold})"


def state_reason_data(
    alarm: DeployedAlarm, evaluation: AlarmEvaluation, time: MetricTime, now: float
) -> str:
    """Return the JSON document of `StateReasonData`; `now` is wall time."""
    datapoints = evaluation.datapoints
    document: dict[str, Any] = {
        "version": "1.0",
        "queryDate": _timestamp(now),
        "statistic": alarm.statistic,
        "period": alarm.period,
        "recentDatapoints": [point.value for point in datapoints],
        "threshold": alarm.threshold,
        "evaluatedDatapoints": [
            {"timestamp": _timestamp(time.wall(point.start)), "value": point.value}
            for point in datapoints
        ],
    }
    if datapoints:
        document["startDate"] = _timestamp(time.wall(datapoints[0].start))
    return json.dumps(document)


def _plural(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"


def _was(count: int) -> str:
    return "was" if count == 1 else "were"


def _timestamp(wall: float) -> str:
    text = datetime.fromtimestamp(wall, UTC).isoformat(timespec="milliseconds")
    return text.replace("+00:00", "+0000")
