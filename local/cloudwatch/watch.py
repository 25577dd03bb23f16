"""Evaluates the deployed alarms, minute by minute of metric time, and sets their states.

Which alarms there are, and their states, MiniStack says (DescribeAlarms); SetAlarmState there makes it
record the transition and publish to the alarm's topics. A state is set only where it changes, so each
transition publishes once. As in AWS an alarm that somebody set by hand is set right again a minute later.
"""

import json
import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from typing import Any, Final

from local.cloudwatch.alarms import DeployedAlarm
from local.cloudwatch.evaluation import AlarmVerdict, judge
from local.cloudwatch.expressions import ExpressionError
from local.cloudwatch.queries import points
from local.cloudwatch.reasons import reason, reason_data
from local.cloudwatch.store import MINUTE, MetricStore, MetricTime

__all__ = ["AlarmWatch", "Ask"]

_log = logging.getLogger(__name__)

_HIGH_RESOLUTION: Final = 10  # seconds between evaluations of alarms with a period below a minute
_MAX_MISSED: Final = 10  # evaluations that are caught up on after a pause

Ask = Callable[[str, Mapping[str, Any]], Awaitable[dict[str, Any]]]
"""Calls an operation of MiniStack's CloudWatch and returns its answer; `ConnectionError` where it fails."""


class AlarmWatch:
    """The alarms of the local cloud."""

    def __init__(self, store: MetricStore, time: MetricTime, ask: Ask) -> None:
        """Take the metrics, the time scale, and how to call MiniStack's CloudWatch."""
        self._store = store
        self._time = time
        self._ask = ask
        self._evaluated: int | None = None  # up to which metric second
        self._unreadable: set[str] = set()
        self.step = MINUTE  # metric seconds between evaluations

    async def evaluate(self, now: float) -> None:
        """Evaluate every alarm at each minute (or ten seconds) up to `now` that was not evaluated yet."""
        last = self._time.seconds(now) // self.step * self.step
        if self._evaluated is None:
            self._evaluated = last - self.step
        first = max(self._evaluated + self.step, last - (_MAX_MISSED - 1) * self.step)
        moments = range(first, last + 1, self.step)
        if not moments:
            return
        alarms = await self._alarms()
        self._evaluated = last
        self.step = _HIGH_RESOLUTION if any(alarm.period < MINUTE for alarm in alarms) else MINUTE
        for alarm in alarms:
            await self._follow(alarm, moments, now)

    async def _follow(self, alarm: DeployedAlarm, moments: range, now: float) -> None:
        for at in moments:
            if alarm.period >= MINUTE and at % MINUTE:
                continue
            verdict = self._verdict(alarm, at)
            if verdict is not None and verdict.state != alarm.state:
                await self._set(alarm, verdict, now)
                alarm = replace(alarm, state=verdict.state)

    def _verdict(self, alarm: DeployedAlarm, at: int) -> AlarmVerdict | None:
        try:
            return judge(alarm, points(alarm, self._store, at))
        except (ExpressionError, LookupError) as error:
            self._complain(alarm.name, error)
            return None

    async def _set(self, alarm: DeployedAlarm, verdict: AlarmVerdict, now: float) -> None:
        request = {
            "AlarmName": alarm.name,
            "StateValue": verdict.state,
            "StateReason": reason(alarm, verdict, self._time),
            "StateReasonData": reason_data(alarm, verdict, self._time, now),
        }
        await self._ask("SetAlarmState", request)

    async def _alarms(self) -> list[DeployedAlarm]:
        found: list[DeployedAlarm] = []
        token: dict[str, str] = {}
        while True:
            page = await self._ask("DescribeAlarms", {"MaxRecords": 100, **token})
            for described in page.get("MetricAlarms") or ():
                try:
                    found.append(DeployedAlarm.from_description(described))
                except (AttributeError, LookupError, TypeError, ValueError) as error:
                    self._complain(json.dumps(described), error)
            if not page.get("NextToken"):
                return found
            token = {"NextToken": page["NextToken"]}

    def _complain(self, alarm: str, error: Exception) -> None:
        """Say once that an alarm cannot be evaluated; it keeps its state."""
        if alarm not in self._unreadable:
            self._unreadable.add(alarm)
            _log.warning("the alarm %s is not evaluated: %r", alarm, error)
