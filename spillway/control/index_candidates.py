"""IndexCandidates: which series may be what throttles the index, since nothing names its keys.

Contributor Insights counts no writes that an index held up. But what one series writes to one index partition it also
writes to the table, so where only the index throttles, the series has more shards there, and stands in the sparse index
of layouts. Of these the usage record tells what each wants of the index.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import Final

from spillway.control.resharding import evidence_since
from spillway.layouts.model import Layout
from spillway.layouts.repository import ShardedSeries
from spillway.runtime import Parallel
from spillway.scaling.evidence import ThrottleSummary
from spillway.scaling.policy import decide_ahead_of_demand, writes_enough
from spillway.scaling.usage import UsageReader, WriteDemand
from spillway.settings import Growth

__all__ = ["IndexCandidate", "IndexCandidates", "overloaded"]

_PAGE: Final = 250
_MOST: Final = 500  # series whose usage is read at a time


@dataclass(frozen=True, slots=True)
class IndexCandidate:
    """A series, what it wants, and the throttles since its layout last changed, of all series together."""

    layout: Layout
    demand: WriteDemand
    throttles: float


@dataclass(frozen=True, slots=True)
class IndexCandidates:
    """Finds the series that may be to blame. Raises StorageError."""

    listing: ShardedSeries
    usage: UsageReader
    parallel: Parallel

    def of(
        self, throttles: Mapping[float, float], since: float, now: float
    ) -> Sequence[IndexCandidate]:
        """Return series with known demand, by the throttles of the index in each minute.

        Costs a Query and three BatchGetItems for each 250 series with more than one shard, and a
        Query for each of up to 500 that have not changed since; series with fewer shards in the
        index than in the table come first.
        """
        accused = (
            (layout, left)
            for layout in sorted(self._listed(), key=_unevenness, reverse=True)
            if (left := _since(throttles, evidence_since(layout))) > 0
        )
        chosen = list(islice(accused, _MOST))
        demands = self.parallel(
            [partial(self.usage.recent, layout.series, since, now) for layout, _ in chosen]
        )
        return [
            IndexCandidate(layout, demand, left)
            for (layout, left), demand in zip(chosen, demands, strict=True)
            if demand is not None
        ]

    def _listed(self) -> Iterable[Layout]:
        after: str | None = None
        while True:
            page, after = self.listing.page(after, _PAGE)
            yield from page
            if after is None:
                return


def overloaded(
    candidates: Sequence[IndexCandidate], growth: Growth, now: float
) -> Sequence[IndexCandidate]:
    """Return those who want more than their index shards carry; if none does, the one who wants most, if that is much."""
    over = [each for each in candidates if _overloads(each, growth, now)]
    if over:
        return sorted(over, key=lambda each: -each.demand.index_units)
    most = max(candidates, key=lambda each: each.demand.index_units, default=None)
    return [most] if most is not None and writes_enough(most.demand.index_units, growth) else []


def _overloads(candidate: IndexCandidate, growth: Growth, now: float) -> bool:
    observation = ThrottleSummary().observation(candidate.layout, candidate.demand, now)
    return decide_ahead_of_demand(observation, growth).index_shards is not None


def _since(throttles: Mapping[float, float], at: float) -> float:
    return sum(count for minute, count in throttles.items() if minute >= at)


def _unevenness(layout: Layout) -> float:
    return layout.current.shards / layout.current.index_shards
