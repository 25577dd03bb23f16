"""The planner: whether a read opens the table's shards or the index's buckets, by what each is estimated to cost. Pure."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

from spillway.keys import Bucket
from spillway.layouts.model import Layout
from spillway.reading.experience import Known
from spillway.reading.fanout import BUCKET_SPAN, shards_meeting
from spillway.reading.limits import UNIT_BYTES, limit_for
from spillway.reading.query import ReadQuery, Source
from spillway.timestamps import to_epoch

__all__ = ["Estimate", "Plan", "estimated", "planned", "read_units"]

_UNSEEN_BUCKETS: Final = (
    2  # of a series of which nothing is known: the walk is given up where they turn out empty
)
_PAGE_BYTES: Final = 1_000_000  # that one Query reads at most
_SOURCES: Final = (Source.TABLE, Source.INDEX)
_REQUEST: Final = (
    0.5  # what a request weighs beside a read unit: as much as the least that it costs
)


class Estimate(NamedTuple):
    """What a page is expected to cost."""

    requests: float
    read_units: float

    @property
    def weight(self) -> float:
        """Requests and units as one figure, by which plans are compared."""
        return self.read_units + _REQUEST * self.requests


@dataclass(frozen=True, slots=True)
class Plan:
    """Where a read looks.

    Attributes:
        source: the table or the index.
        reason: why.
        estimates: what the page is expected to cost from each source that can serve it.
        may_switch: whether the read may go on from the other source where this one throttles.
        most_requests: requests after which a walk of the index is given up: it has cost as much as the table would
            have, so it costs twice as much at most, whatever the estimate was (the rule for renting or buying skis).
        ahead: bounds of the index to open at once.
    """

    source: Source
    reason: str
    estimates: Mapping[Source, Estimate]
    may_switch: bool = False
    most_requests: float = math.inf
    ahead: int = 1

    @property
    def estimate(self) -> Estimate:
        """What the chosen way is expected to cost."""
        return self.estimates[self.source]


def planned(  # noqa: PLR0913  all that a plan rests on
    layout: Layout,
    query: ReadQuery,
    wanted: int,
    known: Known,
    *,
    index_usable: bool,
    avoided: Source | None,
) -> Plan:
    """Plan a read of the next `wanted` events of a query.

    `index_usable` tells whether the index has all that a read gives out, `avoided` which source throttles.
    """
    estimates = {Source.TABLE: estimated(layout, query, Source.TABLE, wanted, known)}
    if index_usable and not query.consistent:
        estimates[Source.INDEX] = estimated(layout, query, Source.INDEX, wanted, known)
    source, reason = _choice(query, estimates, avoided)
    free = query.source is Source.AUTO and query.sharding_key is None
    walks = free and source is Source.INDEX and avoided is None
    return Plan(
        source,
        reason,
        estimates,
        may_switch=free and len(estimates) == len(_SOURCES),
        most_requests=estimates[Source.TABLE].requests if walks else math.inf,
        ahead=math.ceil(_buckets_needed(layout, query, wanted, known) - 1),
    )


def _choice(
    query: ReadQuery, estimates: Mapping[Source, Estimate], avoided: Source | None
) -> tuple[Source, str]:
    if query.source is not Source.AUTO:
        return query.source, "asked for"
    if query.consistent:
        return Source.TABLE, "an index has no consistent reads"
    if query.sharding_key is not None:
        return Source.TABLE, "only the table's shards know sharding keys"
    if Source.INDEX not in estimates:
        return Source.TABLE, "the index holds no payloads"
    if avoided is not None:
        other = Source.INDEX if avoided is Source.TABLE else Source.TABLE
        return other, f"the {avoided} throttles"
    cheapest = min(estimates, key=lambda source: (estimates[source].weight, source is Source.INDEX))
    return cheapest, "cheapest by the estimates"


def estimated(
    layout: Layout, query: ReadQuery, source: Source, wanted: int, known: Known
) -> Estimate:
    """Return what reading the next `wanted` events of a query from a source is expected to cost."""
    if source is Source.INDEX:
        return _from_index(layout, query, wanted, known)
    shards = len(shards_meeting(layout, query))
    if not shards:
        return Estimate(0, 0)
    held = known.events_in(_seconds(query))
    held = math.inf if held is None else held
    free = max(1, int(UNIT_BYTES / known.item_bytes))
    limit = limit_for(wanted / shards, shards, free)
    first = min(limit, held / shards)
    once = Estimate(
        shards, shards * read_units(first * known.item_bytes, consistent=query.consistent)
    )
    short = min(wanted, held) - shards * first
    further = _refills(wanted / shards, limit, shards) if held > wanted else 0.0
    further = max(further, short * known.item_bytes / _PAGE_BYTES)
    each = max(0.0, short) / max(1.0, further) * known.item_bytes
    more = read_units(each, consistent=query.consistent)
    pages = shards * math.floor(first * known.item_bytes / _PAGE_BYTES)
    return Estimate(once.requests + further + pages, once.read_units + further * more)


def _refills(mean: float, limit: int, shards: int) -> float:
    """Return how many of the shards are expected to run dry at a limit, by the normal distribution."""
    if shards == 1:
        return 0.0
    deviations = (limit - mean) / math.sqrt(2 * max(mean, 0.1))
    return shards * 0.5 * math.erfc(deviations)


def _from_index(layout: Layout, query: ReadQuery, wanted: int, known: Known) -> Estimate:
    width = max((e.index_shards for e in layout.meeting(query.start, query.end)), default=0)
    buckets = _buckets_needed(layout, query, wanted, known)
    held = known.events_in(_seconds(query))
    events = wanted if held is None else min(wanted, held)
    requests = max(1.0, buckets * width)
    units = read_units(events / requests * known.item_bytes, consistent=False)
    return Estimate(requests, requests * units)


def _buckets_needed(layout: Layout, query: ReadQuery, wanted: int, known: Known) -> float:
    """Return how many buckets hold the next `wanted` events, all of the range where it holds fewer."""
    epochs = layout.meeting(query.start, query.end)
    seconds = _seconds(query)
    all_of_it = sum(1 + seconds / BUCKET_SPAN[size] for size in _sizes(layout, query)) * bool(
        epochs
    )
    held = known.events_in(seconds)
    if held is None:
        return min(all_of_it, _UNSEEN_BUCKETS)  # the first two, one after the other
    return min(all_of_it, 1 + all_of_it * wanted / held) if held else all_of_it


def _sizes(layout: Layout, query: ReadQuery) -> set[Bucket]:
    return {epoch.bucket for epoch in layout.meeting(query.start, query.end)}


def _seconds(query: ReadQuery) -> float:
    return to_epoch(query.end) - to_epoch(query.start)


def read_units(items_bytes: float, *, consistent: bool) -> float:
    """Return the read units that a Query of about so many bytes costs: each started 4 KB half a unit, 1 if consistent."""
    started = max(1.0, items_bytes / UNIT_BYTES + (0.5 if items_bytes > UNIT_BYTES else 0.0))
    return started * (1.0 if consistent else 0.5)
