"""What the first page of one shard shows of all of them."""

from dataclasses import replace

from spillway.keys import TIME_WIDTH
from spillway.reading.experience import Known, mean_bytes
from spillway.reading.query import ReadQuery
from spillway.reading.stream import Stream
from spillway.timestamps import to_epoch

__all__ = ["seconds_between", "shown_by"]


def seconds_between(one: str, other: str) -> float:
    """Return the seconds from one position to another, whichever comes first; positions begin with a stored time."""
    return abs(to_epoch(one[:TIME_WIDTH]) - to_epoch(other[:TIME_WIDTH]))


def shown_by(stream: Stream, query: ReadQuery, shards: int, known: Known) -> Known:
    """Return what is known of a series after the first page of one of so many shards, since hashing makes all alike."""
    records = stream.buffer
    begin, end = query.start, query.end
    if query.descending:
        begin, end = end, begin
    seconds = seconds_between(begin, end if stream.exhausted else stream.reached)
    if not records or not seconds:
        return replace(known, per_second=0.0 if seconds else None)
    offsets = tuple(seconds_between(begin, record.sort_key) for record in records)
    return Known(mean_bytes(records), shards * len(records) / seconds, offsets, shards)
