"""Copies: an event stored under two epochs is returned once, and exists while one is unexpired.

Expired copies are dropped first, so that an answer is the same before and after DynamoDB has
deleted them. Of the others the one that the newest covering epoch has is returned.
"""

from collections.abc import Iterable, Iterator
from itertools import groupby
from operator import itemgetter

from spillway import keys
from spillway.layouts.model import Layout
from spillway.scanning.streams import StoredEvent
from spillway.sharding import routing_hash

__all__ = ["drop_copies", "newest_copy", "unexpired"]

_sort_key = itemgetter(0)


def unexpired(records: Iterable[StoredEvent], now: float) -> list[StoredEvent]:
    """Return the records that have not expired at `now`, in epoch seconds; decided here alone."""
    return [each for each in records if each.expires is None or each.expires > now]


def drop_copies(
    run: list[StoredEvent], series: str, layout: Layout, now: float
) -> Iterable[StoredEvent]:
    """Return the unexpired events of a run, each once; copies are adjacent in the run."""
    kept = unexpired(run, now)
    if len(set(map(_sort_key, kept))) == len(kept):
        return kept
    return _resolved(kept, series, layout)


def _resolved(run: list[StoredEvent], series: str, layout: Layout) -> Iterator[StoredEvent]:
    for _, copies in groupby(run, key=_sort_key):
        yield newest_copy(list(copies), series, layout)


def newest_copy(copies: list[StoredEvent], series: str, layout: Layout) -> StoredEvent:
    """Return the copy whose shard the newest epochs give the event, of several the one in the first such shard."""
    time, sharding_key, _ = keys.parse_sort_key(copies[0].sort_key)
    routing = routing_hash(series, sharding_key or copies[0].sort_key)
    ranks = {
        keys.partition_key(series, shard): rank
        for rank, shard in enumerate(layout.candidates(time, routing))
    }
    return min(copies, key=lambda copy: ranks.get(copy.partition_key, len(ranks)))
