"""Which series heat the table or its index.

Contributor Insights names the table's throttled partition keys, so the table's hot series are
known. It counts no writes that an index held up. But what a series writes to one index partition
it also writes to the table. So where only the index throttles, the series has more than one shard
in the table and stands in the sparse index of layouts. The usage record tells what each of these
demands of the index.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from typing import Final

from spillway.control.monitoring import MonitoringPort, ThrottledKey
from spillway.dynamodb.port import Call, RefusedError
from spillway.keys import parse_partition_key
from spillway.layouts.model import Layout
from spillway.layouts.repository import ShardedSeries
from spillway.runtime import Parallel
from spillway.scaling.evidence import ThrottleSummary
from spillway.scaling.policy import decide_ahead_of_demand, writes_enough
from spillway.scaling.usage import UsageReader, WriteDemand
from spillway.settings import Growth

__all__ = [
    "IndexCandidate",
    "IndexCandidates",
    "ShardThrottles",
    "ThrottleInsights",
    "by_series",
    "evidence_since",
    "overloaded",
]


def evidence_since(layout: Layout) -> float:
    """Return the time from which throttles count against the layout as it is."""
    return 0.0 if layout.version == 1 else layout.last_updated


_RULE: Final = "DynamoDBContributorInsights-PKT-"  # its rule on throttled partition keys
_RULES_SECONDS: Final = 600.0  # rules keep their names until insights are switched off and on
_GONE: Final = "ResourceNotFoundException"


@dataclass(slots=True)
class ShardThrottles:
    """Throttles of one series: (shard, start of the minute in epoch seconds, count)."""

    counts: list[tuple[int, float, float]] = field(default_factory=list)

    @property
    def total(self) -> float:
        """Throttles of all shards."""
        return sum(count for _, _, count in self.counts)

    def since(self, at: float, shards: int) -> dict[int, float]:
        """Return throttles of the first `shards` shards in minutes that began at `at` or later."""
        found: defaultdict[int, float] = defaultdict(float)
        for shard, minute, count in self.counts:
            if minute >= at and shard < shards and count > 0:
                found[shard] += count
        return dict(found)


def by_series(keys: Iterable[ThrottledKey]) -> dict[str, ShardThrottles]:
    """Group by series, most throttles first. Leaves out keys that are not Spillway's."""
    found: defaultdict[str, ShardThrottles] = defaultdict(ShardThrottles)
    for each in keys:
        try:
            series, shard = parse_partition_key(each.key)
        except ValueError:
            continue
        found[series].counts.append((shard, each.at, each.times))
    return dict(sorted(found.items(), key=lambda pair: -pair[1].total))


class ThrottleInsights:
    """Contributor Insights' rule on throttled keys of the main table.

    The index's rule is of no use: neither rule counts writes that an index holds up. Remembers the
    rules' names, nothing by series.
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
        """Return throttles by series; none where insights are off. Raises StorageError.

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
        if self._known is None or now - self._known[0] >= _RULES_SECONDS:
            answer = self._call("DescribeContributorInsights", {"TableName": self._table})
            rules = answer.get("ContributorInsightsRuleList") or ()
            found = tuple(rule for rule in rules if rule.startswith(_RULE))
            if not found:
                return ()
            self._known = now, found
        return self._known[1]


_PAGE: Final = 250
_MAX_USAGE_READS: Final = 500  # series a run


@dataclass(frozen=True, slots=True)
class IndexCandidate:
    """A series, its demand, and the index's throttles of all series since its layout changed."""

    layout: Layout
    demand: WriteDemand
    throttles: float


@dataclass(frozen=True, slots=True)
class IndexCandidates:
    """Finds the series that may heat the index. Raises StorageError."""

    listing: ShardedSeries
    usage: UsageReader
    parallel: Parallel

    def find(
        self, throttles: Mapping[float, float], since: float, now: float
    ) -> Sequence[IndexCandidate]:
        """Return series of known demand; `throttles` are those of the index by minute.

        Costs a Query and three BatchGetItems for each 250 series with more than one shard, and a
        Query for each of up to 500 that have not changed since; series with fewer shards in the
        index than in the table come first.
        """
        unchanged = (
            (layout, count)
            for layout in sorted(self._list_sharded(), key=_unevenness, reverse=True)
            if (count := _since(throttles, evidence_since(layout))) > 0
        )
        chosen = list(islice(unchanged, _MAX_USAGE_READS))
        demands = self.parallel(
            [partial(self.usage.recent, layout.series, since, now) for layout, _ in chosen]
        )
        return [
            IndexCandidate(layout, demand, count)
            for (layout, count), demand in zip(chosen, demands, strict=True)
            if demand is not None
        ]

    def _list_sharded(self) -> Iterable[Layout]:
        after: str | None = None
        while True:
            page, after = self.listing.page(after, _PAGE)
            yield from page
            if after is None:
                return


def overloaded(
    candidates: Sequence[IndexCandidate], growth: Growth, now: float
) -> Sequence[IndexCandidate]:
    """Return the series that demand more than their index shards take, highest demand first.

    Where none does, returns the one of highest demand, if that is enough to heat a partition.
    """
    exceeding = [each for each in candidates if _overloads(each, growth, now)]
    if exceeding:
        return sorted(exceeding, key=lambda each: -each.demand.index_units)
    highest = max(candidates, key=lambda each: each.demand.index_units, default=None)
    return (
        [highest]
        if highest is not None and writes_enough(highest.demand.index_units, growth)
        else []
    )


def _overloads(candidate: IndexCandidate, growth: Growth, now: float) -> bool:
    observation = ThrottleSummary().observation(candidate.layout, candidate.demand, now)
    return decide_ahead_of_demand(observation, growth).index_shards is not None


def _since(throttles: Mapping[float, float], at: float) -> float:
    return sum(count for minute, count in throttles.items() if minute >= at)


def _unevenness(layout: Layout) -> float:
    return layout.current.shards / layout.current.index_shards
