"""Copies: an event stored under two epochs is returned once, as the newest covering epoch has it."""

from collections.abc import Iterable, Iterator
from itertools import groupby
from operator import itemgetter

from spillway import keys
from spillway.layouts.model import Layout
from spillway.scanning.streams import StoredEvent
from spillway.sharding import routing_hash

__all__ = ["drop_copies", "newest_copy"]

_sort_key = itemgetter(0)


def drop_copies(run: list[StoredEvent], series: str, layout: Layout) -> Iterable[StoredEvent]:
    """Return a run of records with one record a sort key; copies are adjacent in the run."""
    if len(set(map(_sort_key, run))) == len(run):
        return run
    return _resolved(run, series, layout)


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
