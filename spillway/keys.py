"""Every table, index and attribute name, and every key that Spillway stores.

Built here, taken apart here.

Keys put the shard last and are split from the right, so any series name is safe: `a#1` in shard 0
is `a#1#0`, `a` in shard 1 is `a#1`. Times are fixed width, so byte order of sort keys is time
order.
"""

from enum import StrEnum
from typing import Final, NamedTuple

__all__ = [
    "EXPIRES",
    "INDEX_NAME",
    "INDEX_PARTITION_KEY",
    "LAYOUT_INDEX_KEY",
    "LAYOUT_INDEX_NAME",
    "LAYOUT_KEY",
    "PARTITION_KEY",
    "PAYLOAD",
    "SORT_KEY",
    "TIME_WIDTH",
    "USAGE_EXPIRES",
    "USAGE_KEY",
    "USAGE_SORT_KEY",
    "EventKey",
    "IndexKey",
    "SortKey",
    "TimeBucket",
    "bucket_label",
    "index_key",
    "parse_index_key",
    "parse_partition_key",
    "parse_sort_key",
    "partition_key",
    "sort_key",
]

# Main table
PARTITION_KEY: Final = "PK"
SORT_KEY: Final = "SK"
PAYLOAD: Final = "payload"
EXPIRES: Final = "expires"
INDEX_NAME: Final = "GSI1-Read-Aggregator"
INDEX_PARTITION_KEY: Final = "GSI1PK"  # its sort key is the table's own

# Layout table
LAYOUT_KEY: Final = "series"
LAYOUT_INDEX_NAME: Final = "Sharded-Series"  # sparse: only series with more than one shard
LAYOUT_INDEX_KEY: Final = "sharded"  # its sort key is the series

# Usage table
USAGE_KEY: Final = "series"
USAGE_SORT_KEY: Final = "window"
USAGE_EXPIRES: Final = "expires"

TIME_WIDTH: Final = 27  # of 2001-01-01T00:01:00.000000Z


class TimeBucket(StrEnum):
    """Length of the time buckets in the index's partition key."""

    DAY = "day"
    HOUR = "hour"
    MINUTE = "minute"


# A label is the leading part of the time. Lengths differ, so buckets of different sizes never
# collide.
_LABEL_WIDTH: Final = {TimeBucket.DAY: 10, TimeBucket.HOUR: 13, TimeBucket.MINUTE: 16}


class EventKey(NamedTuple):
    """What a table partition key holds."""

    series: str
    shard: int


class IndexKey(NamedTuple):
    """What an index partition key holds."""

    series: str
    bucket: str
    index_shard: int


class SortKey(NamedTuple):
    """What a sort key holds: the identity of an event within its series."""

    time: str
    sharding_key: str | None
    id: str


def partition_key(series: str, shard: int) -> str:
    """Return the table's partition key of one shard: `{series}#{shard}`."""
    return f"{series}#{shard}"


def parse_partition_key(text: str) -> EventKey:
    """Take a table partition key apart; ValueError where it is none."""
    series, separator, shard = text.rpartition("#")
    if not separator:
        raise ValueError(f"not a partition key: {text!r}")
    return EventKey(series, int(shard))


def sort_key(time: str, sharding_key: str | None, event_id: str) -> str:
    """Return `{time}#{id}`, or `{time}#{sharding_key}#{id}` for an event with a sharding key.

    `time` is 27 characters (see `spillway.timestamps`); `event_id` has no `#`; a sharding key may.
    """
    if sharding_key is None:
        return f"{time}#{event_id}"
    return f"{time}#{sharding_key}#{event_id}"


def parse_sort_key(text: str) -> SortKey:
    """Take a sort key apart; ValueError where it is none."""
    if len(text) <= TIME_WIDTH or text[TIME_WIDTH] != "#":
        raise ValueError(f"not a sort key: {text!r}")
    sharding_key, separator, event_id = text[TIME_WIDTH + 1 :].rpartition("#")
    return SortKey(text[:TIME_WIDTH], sharding_key if separator else None, event_id)


def bucket_label(time: str, bucket: TimeBucket) -> str:
    """Return the time bucket that a 27-character time falls into, such as `2001-01-01T00`."""
    return time[: _LABEL_WIDTH[bucket]]


def index_key(series: str, label: str, index_shard: int) -> str:
    """Return the index's partition key: `{series}#{bucket}#{index_shard}`."""
    return f"{series}#{label}#{index_shard}"


def parse_index_key(text: str) -> IndexKey:
    """Take an index partition key apart; ValueError where it is none."""
    parts = text.rsplit("#", 2)
    if len(parts) != 3:
        raise ValueError(f"not an index key: {text!r}")
    return IndexKey(parts[0], parts[1], int(parts[2]))
