"""What the scaler asks of CloudWatch: the port that `spillway.storage.alarms` implements."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol

from spillway.scaler.signals import Alarm

__all__ = ["ThrottledKey", "Watching"]


class ThrottledKey(NamedTuple):
    """How often a partition key throttled in the minute that began `at` (epoch seconds)."""

    key: str
    at: float
    times: float


class Watching(Protocol):
    """Alarms, metrics and Contributor Insights. Methods raise StorageError."""

    def in_alarm(self) -> Sequence[Alarm]:
        """Return the alarms of this deployment that are in ALARM. Costs one DescribeAlarms for each 100."""
        ...

    def throttled_keys(self, rule: str, since: float, until: float) -> Sequence[ThrottledKey]:
        """Return the keys that throttled most, by minute. Costs one GetInsightRuleReport."""
        ...

    def index_throttles(self, since: float, until: float) -> Mapping[float, float]:
        """Return how many writes key ranges of the index throttled, by the minute's start. Costs one GetMetricData."""
        ...
