"""The planner: read the table's shards or the index's buckets, by estimated cost. Pure."""

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

_DEFAULT_BUCKETS: Final = 2  # for a series without statistics; `max_requests` bounds a mistake
_INDEX_CAUTION: Final = 2.0  # factor on the index's cost: buckets may be emptier than expected
_SOURCES: Final = (Source.TABLE, Source.INDEX)
_REQUEST_WEIGHT: Final = 0.5  # of a request in read units: the least that one costs


class CostEstimate(NamedTuple):
    """The expected cost of a page."""

    requests: float
    read_units: float

    @property
    def weight(self) -> float:
        """Requests and units as one figure, by which sources are compared."""
        return self.read_units + _REQUEST_WEIGHT * self.requests


@dataclass(frozen=True, slots=True)
class ReadPlan:
    """Where a read looks.

    Attributes:
        source: the table or the index.
        reason: why.
        estimates: the expected cost of the page from each source that can serve it.
        may_switch: whether the read may go on from the other source if this one throttles.
        max_requests: abandon the index after this many requests, which caps the cost at twice the
            table's (ski rental).
        initial_bounds: bounds of partitions to open at first.
    """

    source: Source
    reason: str
    estimates: Mapping[Source, CostEstimate]
    may_switch: bool = False
    max_requests: float = math.inf
    initial_bounds: int = 1

    @property
    def estimate(self) -> CostEstimate:
        """The expected cost of the chosen source."""
        return self.estimates[self.source]

    def after(self, cost: ReadCost) -> "ReadPlan":
        """Return the plan with what the read has cost before it added to the estimate."""
        planned = self.estimate
        total = CostEstimate(planned.requests + cost.requests, planned.read_units + cost.read_units)
        return replace(self, estimates={**self.estimates, self.source: total})


def plan_read(  # noqa: PLR0913  all that a plan rests on
    layout: Layout,
    query: ReadQuery,
    events: int,
    stats: SeriesStats,
    *,
    index_usable: bool,
    throttled: Source | None,
) -> ReadPlan:
    """Return the plan for reading the next `events` events of a query.

    `index_usable` is whether the index has payloads, `throttled` the source that throttled lately.
    """
    estimates = {Source.TABLE: estimate_cost(layout, query, Source.TABLE, events, stats)}
    if index_usable and not query.consistent:
        estimates[Source.INDEX] = estimate_cost(layout, query, Source.INDEX, events, stats)
    source, reason = _choose(query, estimates, throttled)
    is_free = query.source is Source.AUTO and query.sharding_key is None
    may_abandon = is_free and source is Source.INDEX and throttled is None
    return ReadPlan(
        source,
        reason,
        estimates,
        may_switch=is_free and len(estimates) == len(_SOURCES),
        max_requests=estimates[Source.TABLE].requests if may_abandon else math.inf,
        initial_bounds=_buckets_needed(layout, query, events, stats) - 1,
    )


def _choose(
    query: ReadQuery, estimates: Mapping[Source, CostEstimate], throttled: Source | None
) -> tuple[Source, str]:
    if query.source is not Source.AUTO:
        return query.source, "asked for"
    reason = _table_only_reason(query, estimates)
    if reason is not None:
        return Source.TABLE, reason
    if throttled is not None:
        other = Source.INDEX if throttled is Source.TABLE else Source.TABLE
        return other, f"the {throttled} throttles"
    # Buckets may be emptier than expected, as at night. Shards, by hashing, are not.
    if _INDEX_CAUTION * estimates[Source.INDEX].weight < estimates[Source.TABLE].weight:
        return Source.INDEX, "cheapest by the estimates"
    return Source.TABLE, "cheapest by the estimates"


def _table_only_reason(query: ReadQuery, estimates: Mapping[Source, CostEstimate]) -> str | None:
    """Return why only the table can serve a read; None if the index can as well."""
    if query.consistent:
        return "an index has no consistent reads"
    if query.sharding_key is not None:
        return "only the table's shards know sharding keys"
    return None if Source.INDEX in estimates else "the index holds no payloads"


def estimate_cost(
    layout: Layout, query: ReadQuery, source: Source, events: int, stats: SeriesStats
) -> CostEstimate:
    """Return the expected cost of reading the next `events` events of a query from a source."""
    if source is Source.INDEX:
        return _estimate_index(layout, query, events, stats)
    shards = len(shards_in_range(layout, query))
    if not shards:
        return CostEstimate(0, 0)
    consistent, item_bytes = query.consistent, stats.item_bytes
    in_range = stats.events_in(_seconds(query))
    in_range = math.inf if in_range is None else in_range
    limit = limit_for(events / shards, shards, max(1.0, UNIT_BYTES / item_bytes))
    # The first round fetches as much from each shard as its limit or its events allow.
    first_items = min(limit, in_range / shards)
    first_units = shards * read_units(first_items * item_bytes, consistent=consistent)
    further_pages = shards * math.floor(first_items * item_bytes / PAGE_BYTES)
    # Refills fetch what the first round lacks.
    lacking = min(events, in_range) - shards * first_items
    refills = _refills(events / shards, limit, shards) if in_range > events else 0.0
    refills = max(refills, lacking * item_bytes / PAGE_BYTES)
    refill_bytes = max(0.0, lacking) / max(1.0, refills) * item_bytes
    refill_units = refills * read_units(refill_bytes, consistent=consistent)
    return CostEstimate(shards + refills + further_pages, first_units + refill_units)


def _refills(mean: float, limit: int, shards: int) -> float:
    """Return how many shards are expected to run dry at a limit, by the normal distribution."""
    if shards == 1:
        return 0.0
    deviations = (limit - mean) / math.sqrt(2 * max(mean, 0.1))
    return shards * 0.5 * math.erfc(deviations)


def _estimate_index(
    layout: Layout, query: ReadQuery, events: int, stats: SeriesStats
) -> CostEstimate:
    width = max((e.index_shards for e in layout.meeting(query.start, query.end)), default=0)
    buckets = _buckets_needed(layout, query, events, stats)
    in_range = stats.events_in(_seconds(query))
    returned = events if in_range is None else min(events, in_range)
    requests = max(1.0, buckets * width)
    fetched = returned + 0.5 * returned / max(1.0, buckets)  # half of the last bucket is surplus
    units = read_units(fetched / requests * stats.item_bytes, consistent=False)
    return CostEstimate(requests, requests * units)


def _buckets_needed(layout: Layout, query: ReadQuery, events: int, stats: SeriesStats) -> int:
    """Return how many buckets hold the next `events` events: all of the range if it holds fewer."""
    sizes = {epoch.bucket for epoch in layout.meeting(query.start, query.end)}
    all_buckets = sum(_buckets_between(query.start, query.end, BUCKET_SPAN[size]) for size in sizes)
    seconds = _seconds(query)
    in_range = stats.events_in(seconds)
    if in_range is None:
        return min(all_buckets, _DEFAULT_BUCKETS)
    if in_range <= events:
        return all_buckets
    # A range begins in the middle of a bucket, of each size.
    share = min(1.0, stats.seconds_for(events) / seconds)
    return min(all_buckets, math.ceil(0.5 * len(sizes) + all_buckets * share))


def _buckets_between(start: str, end: str, span: float) -> int:
    return math.ceil(to_epoch(end) / span) - math.floor(to_epoch(start) / span)


def _seconds(query: ReadQuery) -> float:
    return to_epoch(query.end) - to_epoch(query.start)
