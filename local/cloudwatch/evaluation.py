"""Whether an alarm changes its state: from datapoints to a state, as CloudWatch documents it. Pure.

The alarm looks at a *range* of periods that is longer than its evaluation periods (N), so that a few
missing datapoints do not matter. With N real ones in it the latest N decide, and with fewer all of them,
and the missing ones are filled in. M breaching datapoints (`DatapointsToAlarm`) make an alarm; so do
fewer, where nothing else was seen since M periods.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from local.cloudwatch.alarms import DeployedAlarm, State

__all__ = ["RANGE_BEYOND", "AlarmVerdict", "Point", "breaches", "judge"]

RANGE_BEYOND: Final = 2
"""Periods of the range beyond the evaluation periods. CloudWatch does not publish the number; in its
worked examples the range is 5 for 3 evaluation periods."""


@dataclass(frozen=True, slots=True)
class Point:
    """A datapoint that is there: its value, the bounds it is compared with, where its period starts."""

    start: int
    value: float
    lower: float
    upper: float
    samples: float = float("inf")


@dataclass(frozen=True, slots=True)
class AlarmVerdict:
    """The state that the datapoints make, and the datapoints that decided it, oldest first."""

    state: State
    decided: tuple[Point, ...] = ()
    filled: int = 0
    breaching: int = 0


def judge(alarm: DeployedAlarm, points: Sequence[Point | None]) -> AlarmVerdict:
    """Return the state that follows from the range's datapoints, oldest first, None where one is missing."""
    needed = alarm.evaluation_periods
    real = tuple(point for point in points if point is not None)[-needed:]
    breaching = sum(breaches(alarm.comparison, point) for point in real)
    filled = needed - len(real)
    return AlarmVerdict(_state(alarm, points, real, breaching, filled), real, filled, breaching)


def _state(
    alarm: DeployedAlarm,
    points: Sequence[Point | None],
    real: Sequence[Point],
    breaching: int,
    filled: int,
) -> State:
    enough = alarm.datapoints_to_alarm
    if _too_few_samples(alarm, real):
        return alarm.state
    if not real:
        return _ALL_MISSING.get(alarm.missing, alarm.state)
    if alarm.missing == "breaching":
        breaching += filled
    if breaching >= enough:
        return "ALARM"
    if breaching == len(real) and _age(points) >= enough and alarm.missing in _UNFILLED:
        return "ALARM" if alarm.missing == "missing" else alarm.state
    return "OK"


def breaches(comparison: str, point: Point) -> bool:
    """Say whether a datapoint is beyond its bounds."""
    return _COMPARISONS[comparison](point)


_UNFILLED: Final = ("missing", "ignore")
_ALL_MISSING: Final[Mapping[str, State]] = {
    "missing": "INSUFFICIENT_DATA",
    "breaching": "ALARM",
    "notBreaching": "OK",
}  # ignore: the state stays
_COMPARISONS: Final[Mapping[str, Callable[[Point], bool]]] = {
    "GreaterThanThreshold": lambda point: point.value > point.upper,
    "GreaterThanOrEqualToThreshold": lambda point: point.value >= point.upper,
    "LessThanThreshold": lambda point: point.value < point.lower,
    "LessThanOrEqualToThreshold": lambda point: point.value <= point.lower,
    "GreaterThanUpperThreshold": lambda point: point.value > point.upper,
    "LessThanLowerThreshold": lambda point: point.value < point.lower,
    "LessThanLowerOrGreaterThanUpperThreshold": lambda point: (
        not point.lower <= point.value <= point.upper
    ),
}


def _age(points: Sequence[Point | None]) -> int:
    """Return how many periods ago the first datapoint's period began."""
    return len(points) - next(at for at, point in enumerate(points) if point is not None)


def _too_few_samples(alarm: DeployedAlarm, real: Sequence[Point]) -> bool:
    """Say whether a percentile rests on too few samples and the alarm wants to know nothing of it."""
    statistic = alarm.statistic or ""
    if alarm.low_samples != "ignore" or not statistic.startswith("p"):
        return False
    share = float(statistic[1:]) / 100
    rarest = min(share, 1 - share)
    return rarest > 0 and any(point.samples < 10 / rarest for point in real)
