"""What the first page of one partition shows of all of them."""

from dataclasses import replace

from spillway.keys import TIME_WIDTH
from spillway.layouts.model import Layout
from spillway.reading.experience import Known, mean_bytes
from spillway.reading.fanout import BUCKET_SPAN, shards_meeting
from spillway.reading.query import ReadQuery
from spillway.reading.stream import Stream
from spillway.timestamps import to_epoch

__all__ = ["seconds_between", "shown_by"]


def seconds_between(one: str, other: str) -> float:
    """Return the seconds from one position to another, whichever comes first; positions begin with a stored time."""
    return abs(to_epoch(one[:TIME_WIDTH]) - to_epoch(other[:TIME_WIDTH]))


def shown_by(stream: Stream, query: ReadQuery, layout: Layout, known: Known) -> Known:
    """Return what is known of a series after the first page of one partition, since hashing makes all alike."""
    epochs = layout.meeting(query.start, query.end)
    begin = query.end if query.descending else query.start
    seconds = seconds_between(query.start, query.end)
    if stream.partition.on_index:
        alike = max(epoch.index_shards for epoch in epochs)
        begin = stream.partition.bound
        seconds = min(seconds, max(BUCKET_SPAN[epoch.bucket] for epoch in epochs))
    else:
        alike = len(shards_meeting(layout, query))
    if not stream.exhausted:
        seconds = seconds_between(begin, stream.reached)
    if stream.buffer:
        known = replace(known, item_bytes=mean_bytes(stream.buffer))
    return replace(known, per_second=alike * len(stream.buffer) / seconds) if seconds else known
