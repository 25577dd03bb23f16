"""Hypothesis strategies for everything a client may send."""

from datetime import UTC, datetime, timedelta
from typing import Any

from hypothesis import strategies as st

from spillway.keys import TimeBucket
from spillway.scanning.query import Order
from spillway.timestamps import format_time
from tests.support.fakes import NOON

__all__ = [
    "buckets",
    "event_ids",
    "json_objects",
    "orders",
    "power_of_two_shards",
    "ranges",
    "recent_times",
    "series_names",
    "sharding_keys",
    "stored_times",
    "texts",
    "times",
]

_NASTY = ["#", "##", "a#1", "a#1#0", "/shared/firetvGen2.txt", "\0", "\n", "é", "日本", "😀", "\U0010ffff", " "]  # fmt: skip


def texts(max_bytes: int, *, without: str = "") -> st.SearchStrategy[str]:
    """Return text of 1 to `max_bytes` bytes of UTF-8, often with characters that break naive keys."""
    alphabet = st.characters(exclude_categories=["Cs"], exclude_characters=without)
    nasty = st.sampled_from([text for text in _NASTY if not set(text) & set(without)])
    pieces = st.lists(st.one_of(nasty, st.text(alphabet, max_size=6)), min_size=1, max_size=4)
    return pieces.map("".join).filter(lambda text: 1 <= len(text.encode()) <= max_bytes)


series_names = texts(1_024)
event_ids = texts(128, without="#")
sharding_keys = st.none() | texts(512)
times = st.datetimes(timezones=st.just(UTC))
stored_times = times.map(format_time)
# Close together, so that events share seconds, buckets and times.
recent_times: st.SearchStrategy[datetime] = st.builds(
    lambda hours, micros: NOON - timedelta(hours=hours, microseconds=micros),
    st.integers(0, 5),
    st.integers(0, 3) | st.integers(0, 3_599_999_999),
)


def ranges(first: datetime, last: datetime) -> st.SearchStrategy[tuple[datetime, datetime]]:
    """Return ranges within [first, last] whose ends lie at any microsecond."""
    length = (last - first) // timedelta(microseconds=1)
    ends = st.tuples(st.integers(0, length), st.integers(0, length)).filter(
        lambda two: two[0] != two[1]
    )
    return ends.map(
        lambda two: (
            first + timedelta(microseconds=min(two)),
            first + timedelta(microseconds=max(two)),
        )
    )


power_of_two_shards = st.sampled_from([1, 2, 4, 8, 16])
buckets = st.sampled_from(TimeBucket)
orders = st.sampled_from([order.value for order in Order])

_scalars = (
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
)
_json = st.recursive(
    _scalars,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"]), max_size=4), inner)
    ),
    max_leaves=6,
)
json_objects: st.SearchStrategy[dict[str, Any]] = st.dictionaries(
    st.text(st.characters(exclude_categories=["Cs"]), max_size=4), _json, max_size=4
)
