"""Contributor ThrottleInsights: which series' shards throttled, from the partition keys that its rule names."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from spillway.control.monitoring import MonitoringPort, ThrottledKey
from spillway.dynamodb.port import Call, RefusedError
from spillway.keys import parse_partition_key

__all__ = ["ShardThrottles", "ThrottleInsights", "by_series"]

_RULE: Final = "DynamoDBContributorInsights-PKT-"  # throttled partition keys
_KNOWN_FOR: Final = 600.0  # seconds: rules keep their names until insights are switched off and on
_GONE: Final = "ResourceNotFoundException"


@dataclass(slots=True)
class ShardThrottles:
    """How often shards of one series throttled: (shard, start of the minute in epoch seconds, count)."""

    counts: list[tuple[int, float, float]] = field(default_factory=list)

    @property
    def total(self) -> float:
        """All together."""
        return sum(count for _, _, count in self.counts)

    def since(self, at: float, shards: int) -> dict[int, float]:
        """Return the throttles of the first so many shards, in minutes that began no earlier."""
        found: defaultdict[int, float] = defaultdict(float)
        for shard, minute, count in self.counts:
            if minute >= at and shard < shards and count > 0:
                found[shard] += count
        return dict(found)


def by_series(keys: Iterable[ThrottledKey]) -> dict[str, ShardThrottles]:
    """Group by series, the one that throttled most first. Keys that are none of Spillway's are left out."""
    found: defaultdict[str, ShardThrottles] = defaultdict(ShardThrottles)
    for each in keys:
        try:
            series, shard = parse_partition_key(each.key)
        except ValueError:
            continue
        found[series].counts.append((shard, each.at, each.times))
    return dict(sorted(found.items(), key=lambda pair: -pair[1].total))


class ThrottleInsights:
    """The rule on the throttled keys of the main table.

    That of the index is no use: writes that an index holds up are counted by neither rule.
    """

    def __init__(
        self, call: Call, monitoring: MonitoringPort, table: str, monotonic: Callable[[], float]
    ) -> None:
        self._call = call
        self._watching = monitoring
        self._table = table
        self._monotonic = monotonic
        self._known: tuple[float, tuple[str, ...]] | None = None

    def throttled(self, since: float, until: float) -> Mapping[str, ShardThrottles]:
        """Return what throttled in a time, by series; nothing where insights are off. Raises StorageError.

        Costs one GetInsightRuleReport, and a DescribeContributorInsights every ten minutes.
        """
        keys: list[ThrottledKey] = []
        for rule in self._rules():
            try:
                keys += self._watching.throttled_keys(rule, since, until)
            except RefusedError as error:
                if error.code != _GONE:
                    raise
                self._known = None  # switched off since, or off and on: under another name
        return by_series(keys)

    def _rules(self) -> tuple[str, ...]:
        now = self._monotonic()
        if self._known is None or now - self._known[0] >= _KNOWN_FOR:
            answer = self._call("DescribeContributorInsights", {"TableName": self._table})
            rules = answer.get("ContributorInsightsRuleList") or ()
            found = tuple(rule for rule in rules if rule.startswith(_RULE))
            if not found:
                return ()
            self._known = now, found
        return self._known[1]
