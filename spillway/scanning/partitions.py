"""Which partitions a read has to open: the shards of the epochs that meet its range, or the index's buckets."""

import heapq
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
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

    A read of the table opens one partition a shard: `0 … max(fan_out) - 1` over the epochs that meet its range,
    by sharding key only the shards it can be in. A read of the index opens, lazily, index shards x buckets.
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
    walks = [
        _walk(query, [epoch for epoch in epochs if epoch.bucket is bucket], bucket)
        for bucket in TimeBucket
    ]
    return heapq.merge(*walks, key=lambda partition: partition.bound, reverse=query.descending)


def _walk(query: ReadQuery, epochs: list[Epoch], bucket: TimeBucket) -> Iterator[ScanPartition]:
    """Yield the partitions of all buckets of one size; a bucket has the most index shards of its epochs."""
    for label in _labels(query, bucket) if epochs else ():
        first, after = label + _FIRST_TIME[len(label) :], label + _LAST_TIME[len(label) :]
        count = max(
            (epoch.index_shards for epoch in epochs if epoch.meets(first, after)), default=0
        )
        for index_shard in range(count):
            yield ScanPartition(
                index_key(query.series, label, index_shard),
                after if query.descending else first,
                on_index=True,
            )


def _labels(query: ReadQuery, bucket: TimeBucket) -> Iterator[str]:
    """Yield the labels of all buckets of a size that the range meets, in the order of the read."""
    first, last = to_datetime(query.start), to_datetime(query.end) - timedelta(microseconds=1)
    time, step = (last, -_STEP[bucket]) if query.descending else (first, _STEP[bucket])
    lowest, highest = (bucket_label(format_time(each), bucket) for each in (first, last))
    label = bucket_label(format_time(time), bucket)
    while lowest <= label <= highest:
        yield label
        try:
            time += step
        except OverflowError:  # the first or last year
            return
        label = bucket_label(format_time(time), bucket)
