"""Copies: an event stored under two epochs is returned once, and exists while one is unexpired.

Expired copies are dropped first, so that an answer is the same before and after DynamoDB has
deleted them. Of the others the one that the newest covering epoch has is returned.
"""

from collections.abc import Iterable, Iterator
from itertools import groupby

from spillway import keys
from spillway.layouts.model import Layout
from spillway.scanning.streams import StoredEvent, sort_key_of
from spillway.sharding import routing_hash

__all__ = [
    "candidate_shards",
    "copies_by_event",
    "copy_rank",
    "drop_copies",
    "newest_copy",
    "unexpired",
]


def unexpired(records: Iterable[StoredEvent], now: float) -> list[StoredEvent]:
    """Return the records that have not expired at `now`, in epoch seconds; decided here alone."""
    return [each for each in records if each.expires is None or each.expires > now]


def drop_copies(
    batch: list[StoredEvent], series: str, layout: Layout, now: float
) -> list[StoredEvent]:
    """Return the unexpired events of a sorted batch, each once."""
    records = unexpired(batch, now)
    if len(set(map(sort_key_of, records))) == len(records):
        return records
    return [newest_copy(copies, series, layout) for copies in copies_by_event(records)]


def copies_by_event(records: Iterable[StoredEvent]) -> Iterator[list[StoredEvent]]:
    """Yield the copies of each event of sorted records."""
    return (list(copies) for _, copies in groupby(records, key=sort_key_of))


def newest_copy(copies: list[StoredEvent], series: str, layout: Layout) -> StoredEvent:
    """Return the copy in the event's shard under the newest epoch that has one.

    An epoch may allow several shards. Then the copy in the first of these is returned.
    """
    shards = candidate_shards(copies[0].sort_key, series, layout)
    return min(copies, key=lambda copy: copy_rank(copy, shards))


def candidate_shards(sort_key: str, series: str, layout: Layout) -> list[int]:
    """Return the shards that may hold an event, the newest epoch's first."""
    time, sharding_key, _ = keys.parse_sort_key(sort_key)
    return layout.candidates(time, routing_hash(series, sharding_key or sort_key))


def copy_rank(copy: StoredEvent, shards: list[int]) -> int:
    """Return the place of a copy's shard in `shards`, which is the last for any other shard."""
    shard = keys.parse_partition_key(copy.partition_key).shard
    return shards.index(shard) if shard in shards else len(shards)
