"""The partitions that a read opens: shards of the epochs in its range, or the index's buckets."""

import heapq
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from spillway.keys import TimeBucket, bucket_label, index_key, partition_key
from spillway.layouts.model import Epoch, Layout
from spillway.scanning.query import ReadQuery, Source
from spillway.sharding import routing_hash
from spillway.timestamps import format_time, to_datetime

__all__ = ["BUCKET_SPAN", "ScanPartition", "partitions_of", "shards_in_range"]

_STEP: Final = {
    TimeBucket.DAY: timedelta(days=1),
    TimeBucket.HOUR: timedelta(hours=1),
    TimeBucket.MINUTE: timedelta(minutes=1),
}
BUCKET_SPAN: Final = {bucket: step.total_seconds() for bucket, step in _STEP.items()}
_FIRST_TIME: Final = "0001-01-01T00:00:00.000000Z"
_LAST_TIME: Final = "9999-12-31T23:59:59.999999Z\U0010ffff"  # sorts after every sort key


@dataclass(frozen=True, slots=True)
class ScanPartition:
    """A partition key to query, of the table or of the index.

    `bound` is where its events may begin in the order of the read: none sorts before it.
    """

    key: str
    bound: str
    on_index: bool


def partitions_of(layout: Layout, query: ReadQuery, source: Source) -> Iterator[ScanPartition]:
    """Yield every partition that may hold an event of the query, in the order of their bounds.

    A read of the table opens one partition for each shard: `0 … max(fan_out) - 1` over the epochs
    that meet its range, with a sharding key only the shards that may hold it. A read of the index
    opens, lazily, index shards x buckets.
    """
    if source is Source.INDEX:
        yield from _index_partitions(layout, query)
        return
    bound = query.end if query.descending else query.start
    for shard in shards_in_range(layout, query):
        yield ScanPartition(partition_key(query.series, shard), bound, on_index=False)


def shards_in_range(layout: Layout, query: ReadQuery) -> list[int]:
    """Return the table's shards that may hold an event of the query, ascending."""
    epochs = layout.meeting(query.start, query.end)
    if query.sharding_key is None:
        return list(range(max((epoch.fan_out for epoch in epochs), default=0)))
    routing = routing_hash(query.series, query.sharding_key)
    return sorted({shard for epoch in epochs for shard in epoch.shards_of(routing)})


def _index_partitions(layout: Layout, query: ReadQuery) -> Iterator[ScanPartition]:
    epochs = layout.meeting(query.start, query.end)
    by_size = [
        _buckets(query, [epoch for epoch in epochs if epoch.bucket is bucket], bucket)
        for bucket in TimeBucket
    ]
    return heapq.merge(*by_size, key=lambda partition: partition.bound, reverse=query.descending)


def _buckets(query: ReadQuery, epochs: list[Epoch], bucket: TimeBucket) -> Iterator[ScanPartition]:
    """Yield the partitions of all buckets of one size that the range and some of the epochs meet.

    A bucket has the most index shards of its epochs. Times without an epoch cost nothing.
    """
    first, last = to_datetime(query.start), to_datetime(query.end) - timedelta(microseconds=1)
    lowest, highest = (bucket_label(format_time(each), bucket) for each in (first, last))
    time: datetime | None = last if query.descending else first
    while time is not None:
        label = bucket_label(format_time(time), bucket)
        if not lowest <= label <= highest:
            return
        low, high = label + _FIRST_TIME[len(label) :], label + _LAST_TIME[len(label) :]
        counts = [epoch.index_shards for epoch in epochs if epoch.meets(low, high)]
        # A bucket that the range meets midway begins where the range does.
        bound = min(high, query.end) if query.descending else max(low, query.start)
        for index_shard in range(max(counts, default=0)):
            yield ScanPartition(index_key(query.series, label, index_shard), bound, on_index=True)
        step = -_STEP[bucket] if query.descending else _STEP[bucket]
        time = _add(time, step) if counts else _nearest_epoch(query, epochs, low, high)


def _add(time: datetime, step: timedelta) -> datetime | None:
    """Return a time that much later, None beyond the first or last year."""
    try:
        return time + step
    except OverflowError:
        return None


def _nearest_epoch(query: ReadQuery, epochs: list[Epoch], low: str, high: str) -> datetime | None:
    """Return where the read meets its next epoch, after a bucket [low, high] without one."""
    if query.descending:
        time = max((epoch.close for epoch in epochs if epoch.close < low), default=None)
    else:
        time = min((epoch.low for epoch in epochs if epoch.low > high), default=None)
    return None if time is None else to_datetime(time)
