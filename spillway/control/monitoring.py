"""Alarms as signals, and the port to CloudWatch that the scaler asks."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, NamedTuple, Protocol

from spillway.keys import INDEX_NAME
from spillway.scaling.policy import ThrottleTarget

__all__ = ["AlarmState", "MonitoringPort", "Signal", "SignalKind", "ThrottledKey", "parse_signal"]


_NAMESPACE: Final = "AWS/DynamoDB"
_TABLE: Final = "TableName"
_INDEX: Final = "GlobalSecondaryIndexName"


class SignalKind(StrEnum):
    """Kinds of alarms, by what the scaler does about them."""

    KEY_RANGE = "key_range"  # writes to hot keys: layouts grow
    PROVISIONED = "provisioned"  # writes beyond provisioned capacity: it may be raised
    LIMIT = "limit"  # writes beyond the account's or the on-demand maximum: for people
    READS = "reads"  # for people
    LAYOUTS = "layouts"  # the layout table itself: for people


_KINDS: Final = {
    "WriteKeyRangeThroughputThrottleEvents": SignalKind.KEY_RANGE,
    "WriteProvisionedThroughputThrottleEvents": SignalKind.PROVISIONED,
    "WriteAccountLimitThrottleEvents": SignalKind.LIMIT,
    "WriteMaxOnDemandThroughputThrottleEvents": SignalKind.LIMIT,
    "ReadKeyRangeThroughputThrottleEvents": SignalKind.READS,
    "ReadProvisionedThroughputThrottleEvents": SignalKind.READS,
    "ReadAccountLimitThrottleEvents": SignalKind.READS,
    "ReadMaxOnDemandThroughputThrottleEvents": SignalKind.READS,
    "ReadThrottleEvents": SignalKind.READS,
}
_THROTTLING: Final = frozenset({*_KINDS, "WriteThrottleEvents", "ThrottledRequests"})


@dataclass(frozen=True, slots=True, kw_only=True)
class AlarmState:
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

    kind: SignalKind
    target: ThrottleTarget
    metric: str


def parse_signal(alarm: AlarmState, *, events: str, layouts: str) -> Signal | None:
    """Return the signal of an alarm, None where it does not watch these tables."""
    if alarm.namespace != _NAMESPACE or alarm.metric not in _THROTTLING:
        return None
    rest = dict(alarm.dimensions)
    table = rest.pop(_TABLE, None)
    if table == layouts:
        return Signal(SignalKind.LAYOUTS, ThrottleTarget.TABLE, alarm.metric)
    index = rest.pop(_INDEX, None)
    kind = _KINDS.get(alarm.metric)
    if table != events or index not in (None, INDEX_NAME) or rest or kind is None:
        return None
    return Signal(
        kind, ThrottleTarget.TABLE if index is None else ThrottleTarget.INDEX, alarm.metric
    )


class ThrottledKey(NamedTuple):
    """How often a partition key throttled in the minute that began `at` (epoch seconds)."""

    key: str
    at: float
    times: float


class MonitoringPort(Protocol):
    """Alarms, metrics and Contributor Insights. Methods raise StorageError."""

    def in_alarm(self) -> Sequence[AlarmState]:
        """Return this deployment's alarms that are in ALARM; one DescribeAlarms for each 100."""
        ...

    def throttled_keys(self, rule: str, since: float, until: float) -> Sequence[ThrottledKey]:
        """Return the keys that throttled most, by minute. Costs one GetInsightRuleReport."""
        ...

    def index_throttles(self, since: float, until: float) -> Mapping[float, float]:
        """Return the writes that key ranges of the index throttled, by the minute's start.

        Costs one GetMetricData.
        """
        ...
