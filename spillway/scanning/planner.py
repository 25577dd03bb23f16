"""The planner: whether a read opens the table's shards or the index's buckets, by what each is estimated to cost. Pure."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

from spillway.layouts.model import Layout
from spillway.scanning.costs import PAGE_BYTES, UNIT_BYTES, ReadCost, read_units
from spillway.scanning.limits import limit_for
from spillway.scanning.partitions import BUCKET_SPAN, shards_in_range
from spillway.scanning.query import ReadQuery, Source
from spillway.scanning.series_stats import SeriesStats
from spillway.timestamps import to_epoch

__all__ = ["CostEstimate", "ReadPlan", "estimate_cost", "plan_read"]

_UNSEEN_BUCKETS: Final = (
    2  # of a series of which nothing is known: the walk is given up where they turn out empty
)
_CAUTION: Final = 2.0
_SOURCES: Final = (Source.TABLE, Source.INDEX)
_REQUEST: Final = (
    0.5  # what a request weighs beside a read unit: as much as the least that it costs
)


class CostEstimate(NamedTuple):
    """What a page is expected to cost."""

    requests: float
    read_units: float

    @property
    def weight(self) -> float:
        """Requests and units as one figure, by which plans are compared."""
        return self.read_units + _REQUEST * self.requests


@dataclass(frozen=True, slots=True)
class ReadPlan:
    """Where a read looks.

    Attributes:
        source: the table or the index.
        reason: why.
        estimates: what the page is expected to cost from each source that can serve it.
        may_switch: whether the read may go on from the other source where this one throttles.
        max_requests: requests after which a walk of the index is given up: it has cost as much as the table would
            have, so it costs twice as much at most, whatever the estimate was (the rule for renting or buying skis).
        ahead: bounds of the index to open at once.
    """

    source: Source
    reason: str
    estimates: Mapping[Source, CostEstimate]
    may_switch: bool = False
    max_requests: float = math.inf
    ahead: int = 1

    @property
    def estimate(self) -> CostEstimate:
        """What the chosen way is expected to cost."""
        return self.estimates[self.source]

    def after(self, spent: ReadCost) -> "ReadPlan":
        """Return the plan of a read that has spent something beforehand."""
        so_far = self.estimate
        total = CostEstimate(so_far.requests + spent.requests, so_far.read_units + spent.read_units)
        return replace(self, estimates={**self.estimates, self.source: total})


def plan_read(  # noqa: PLR0913  all that a plan rests on
    layout: Layout,
    query: ReadQuery,
    wanted: int,
    known: SeriesStats,
    *,
    index_usable: bool,
    avoided: Source | None,
) -> ReadPlan:
    """ReadPlan a read of the next `wanted` events of a query.

    `index_usable` tells whether the index has all that a read gives out, `avoided` which source throttles.
    """
    estimates = {Source.TABLE: estimate_cost(layout, query, Source.TABLE, wanted, known)}
    if index_usable and not query.consistent:
        estimates[Source.INDEX] = estimate_cost(layout, query, Source.INDEX, wanted, known)
    source, reason = _choice(query, estimates, avoided)
    free = query.source is Source.AUTO and query.sharding_key is None
    walks = free and source is Source.INDEX and avoided is None
    return ReadPlan(
        source,
        reason,
        estimates,
        may_switch=free and len(estimates) == len(_SOURCES),
        max_requests=estimates[Source.TABLE].requests if walks else math.inf,
        ahead=_buckets_needed(layout, query, wanted, known) - 1,
    )


def _choice(
    query: ReadQuery, estimates: Mapping[Source, CostEstimate], avoided: Source | None
) -> tuple[Source, str]:
    if query.source is not Source.AUTO:
        return query.source, "asked for"
    reason = _bound_to_table(query, estimates)
    if reason is not None:
        return Source.TABLE, reason
    if avoided is not None:
        other = Source.INDEX if avoided is Source.TABLE else Source.TABLE
        return other, f"the {avoided} throttles"
    # Buckets may be emptier than expected, as at night; shards, by hashing, are not.
    if _CAUTION * estimates[Source.INDEX].weight < estimates[Source.TABLE].weight:
        return Source.INDEX, "cheapest by the estimates"
    return Source.TABLE, "cheapest by the estimates"


def _bound_to_table(query: ReadQuery, estimates: Mapping[Source, CostEstimate]) -> str | None:
    """Return why only the table can serve a read, None where the index can as well."""
    if query.consistent:
        return "an index has no consistent reads"
    if query.sharding_key is not None:
        return "only the table's shards know sharding keys"
    return None if Source.INDEX in estimates else "the index holds no payloads"


def estimate_cost(
    layout: Layout, query: ReadQuery, source: Source, wanted: int, known: SeriesStats
) -> CostEstimate:
    """Return what reading the next `wanted` events of a query from a source is expected to cost."""
    if source is Source.INDEX:
        return _from_index(layout, query, wanted, known)
    shards = len(shards_in_range(layout, query))
    if not shards:
        return CostEstimate(0, 0)
    held = known.events_in(_seconds(query))
    held = math.inf if held is None else held
    unit_items = max(1.0, UNIT_BYTES / known.item_bytes)
    limit = limit_for(wanted / shards, shards, unit_items)
    first = min(limit, held / shards)
    once = CostEstimate(
        shards, shards * read_units(first * known.item_bytes, consistent=query.consistent)
    )
    short = min(wanted, held) - shards * first
    further = _refills(wanted / shards, limit, shards) if held > wanted else 0.0
    further = max(further, short * known.item_bytes / PAGE_BYTES)
    each = max(0.0, short) / max(1.0, further) * known.item_bytes
    more = read_units(each, consistent=query.consistent)
    pages = shards * math.floor(first * known.item_bytes / PAGE_BYTES)
    return CostEstimate(once.requests + further + pages, once.read_units + further * more)


def _refills(mean: float, limit: int, shards: int) -> float:
    """Return how many of the shards are expected to run dry at a limit, by the normal distribution."""
    if shards == 1:
        return 0.0
    deviations = (limit - mean) / math.sqrt(2 * max(mean, 0.1))
    return shards * 0.5 * math.erfc(deviations)


def _from_index(layout: Layout, query: ReadQuery, wanted: int, known: SeriesStats) -> CostEstimate:
    width = max((e.index_shards for e in layout.meeting(query.start, query.end)), default=0)
    buckets = _buckets_needed(layout, query, wanted, known)
    held = known.events_in(_seconds(query))
    events = wanted if held is None else min(wanted, held)
    requests = max(1.0, buckets * width)
    fetched = events + 0.5 * events / max(1.0, buckets)  # of the last bucket more than is wanted
    units = read_units(fetched / requests * known.item_bytes, consistent=False)
    return CostEstimate(requests, requests * units)


def _buckets_needed(layout: Layout, query: ReadQuery, wanted: int, known: SeriesStats) -> int:
    """Return how many buckets hold the next `wanted` events, all of the range where it holds fewer."""
    sizes = {epoch.bucket for epoch in layout.meeting(query.start, query.end)}
    all_of_it = sum(_buckets_between(query.start, query.end, BUCKET_SPAN[size]) for size in sizes)
    seconds = _seconds(query)
    held = known.events_in(seconds)
    if held is None:
        return min(all_of_it, _UNSEEN_BUCKETS)
    if held <= wanted:
        return all_of_it
    # The first bucket is met in its midst; each size is walked by itself.
    share = min(1.0, known.seconds_for(wanted) / seconds)
    return min(all_of_it, math.ceil(0.5 * len(sizes) + all_of_it * share))


def _buckets_between(start: str, end: str, span: float) -> int:
    return math.ceil(to_epoch(end) / span) - math.floor(to_epoch(start) / span)


def _seconds(query: ReadQuery) -> float:
    return to_epoch(query.end) - to_epoch(query.start)
