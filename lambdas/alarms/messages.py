"""Messages to the scaler, decoded into alarms, scheduled runs, or a reason to drop them."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

import msgspec
from msgspec import Struct, field

from spillway.control import AlarmState

__all__ = ["Dropped", "Scheduled", "decode"]


@dataclass(frozen=True, slots=True)
class Dropped:
    """A message that is not for the scaler, and why."""

    reason: str


@dataclass(frozen=True, slots=True)
class Scheduled:
    """A run by the schedule."""


_DECODE_ERRORS: Final = (
    msgspec.MsgspecError,
    ArithmeticError,
    LookupError,
    RecursionError,
    TypeError,
    ValueError,
)


class _Pair(Struct):
    name: str
    value: str


class _Trigger(Struct):
    namespace: str = field(name="Namespace")
    metric: str = field(name="MetricName")
    dimensions: list[_Pair] = field(name="Dimensions", default_factory=list)


class _Message(Struct):
    """The message that an alarm publishes to its topic."""

    name: str = field(name="AlarmName")
    state: str = field(name="NewStateValue")
    changed: str = field(name="StateChangeTime")
    trigger: _Trigger = field(name="Trigger")

    def alarm(self) -> AlarmState:
        return AlarmState(
            name=self.name,
            state=self.state,
            at=_seconds(self.changed),
            namespace=self.trigger.namespace,
            metric=self.trigger.metric,
            dimensions={each.name: each.value for each in self.trigger.dimensions},
        )


class _Metric(Struct):
    namespace: str
    name: str
    dimensions: dict[str, str] = {}


class _Stat(Struct):
    metric: _Metric


class _Query(Struct):
    stat: _Stat = field(name="metricStat")


class _Configuration(Struct):
    metrics: list[_Query]


class _State(Struct):
    value: str
    timestamp: str


class _Direct(Struct):
    """The event that an alarm calls a function with."""

    name: str = field(name="alarmName")
    state: _State
    configuration: _Configuration

    def alarm(self) -> AlarmState:
        (query,) = self.configuration.metrics
        metric = query.stat.metric
        return AlarmState(
            name=self.name,
            state=self.state.value,
            at=_seconds(self.state.timestamp),
            namespace=metric.namespace,
            metric=metric.name,
            dimensions=metric.dimensions,
        )


def decode(event: object) -> Iterator[AlarmState | Scheduled | Dropped]:
    """Yield the messages of an event; never raises."""
    if not isinstance(event, Mapping):
        yield Dropped("not an object")
    elif event.get("source") == "aws.events":
        yield Scheduled()
    elif event.get("source") == "aws.cloudwatch":
        yield _direct(event.get("alarmData"))
    elif isinstance(event.get("Records"), list):
        yield from (_published(record) for record in event["Records"])
    else:
        yield Dropped("neither an alarm nor the schedule")


def _published(record: Any) -> AlarmState | Dropped:
    try:
        return msgspec.json.decode(record["Sns"]["Message"], type=_Message).alarm()
    except _DECODE_ERRORS as error:
        return Dropped(f"not an alarm on one metric: {error!r}")


def _direct(data: object) -> AlarmState | Dropped:
    try:
        return msgspec.convert(data, _Direct).alarm()
    except _DECODE_ERRORS as error:
        return Dropped(f"not an alarm on one metric: {error!r}")


def _seconds(text: str) -> float:
    """Return the epoch seconds of `2026-06-01T12:00:00.123+0000`; ValueError."""
    at = datetime.fromisoformat(text)
    if at.tzinfo is None:
        raise ValueError(f"a time without a zone: {text}")
    return at.timestamp()
