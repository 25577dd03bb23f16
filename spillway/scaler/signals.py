"""Signals: what an alarm tells, known by the metric and the dimensions that it watches, never by its name. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from spillway.keys import INDEX_NAME
from spillway.scaling.observation import Target

__all__ = ["Alarm", "Kind", "Signal", "signal_of"]

_NAMESPACE: Final = "AWS/DynamoDB"
_TABLE: Final = "TableName"
_INDEX: Final = "GlobalSecondaryIndexName"


class Kind(StrEnum):
    """What an alarm is about, as far as it decides what is done."""

    KEY_RANGE = "key_range"  # writes to hot keys: layouts grow
    PROVISIONED = "provisioned"  # writes beyond provisioned capacity: it may be raised
    LIMIT = "limit"  # writes beyond the account's or the on-demand maximum: for people
    READS = "reads"  # for people
    LAYOUTS = "layouts"  # the layout table itself: for people


_KINDS: Final = {
    "WriteKeyRangeThroughputThrottleEvents": Kind.KEY_RANGE,
    "WriteProvisionedThroughputThrottleEvents": Kind.PROVISIONED,
    "WriteAccountLimitThrottleEvents": Kind.LIMIT,
    "WriteMaxOnDemandThroughputThrottleEvents": Kind.LIMIT,
    "ReadKeyRangeThroughputThrottleEvents": Kind.READS,
    "ReadProvisionedThroughputThrottleEvents": Kind.READS,
    "ReadAccountLimitThrottleEvents": Kind.READS,
    "ReadMaxOnDemandThroughputThrottleEvents": Kind.READS,
    "ReadThrottleEvents": Kind.READS,
}
_THROTTLING: Final = frozenset({*_KINDS, "WriteThrottleEvents", "ThrottledRequests"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Alarm:
    """An alarm on one metric.

    Attributes:
        name: of the alarm, for logs.
        state: OK, ALARM or INSUFFICIENT_DATA.
        at: when it changed to that state, in epoch seconds.
        namespace, metric, dimensions: what it watches.
    """

    name: str
    state: str
    at: float
    namespace: str
    metric: str
    dimensions: Mapping[str, str]

    @property
    def fires(self) -> bool:
        """Whether it is in ALARM."""
        return self.state == "ALARM"


@dataclass(frozen=True, slots=True)
class Signal:
    """What throttles, and where; `metric` for people."""

    kind: Kind
    target: Target
    metric: str


def signal_of(alarm: Alarm, *, events: str, layouts: str) -> Signal | None:
    """Return what an alarm tells about the tables named, None where it watches something else."""
    if alarm.namespace != _NAMESPACE or alarm.metric not in _THROTTLING:
        return None
    rest = dict(alarm.dimensions)
    table = rest.pop(_TABLE, None)
    if table == layouts:
        return Signal(Kind.LAYOUTS, Target.TABLE, alarm.metric)
    index = rest.pop(_INDEX, None)
    kind = _KINDS.get(alarm.metric)
    if table != events or index not in (None, INDEX_NAME) or rest or kind is None:
        return None
    return Signal(kind, Target.TABLE if index is None else Target.INDEX, alarm.metric)
