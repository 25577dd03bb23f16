from datetime import datetime

from hypothesis import given
from hypothesis import strategies as st

from spillway import keys
from spillway.timestamps import format_time, parse_time, to_datetime
from tests.support.strategies import (
    buckets,
    event_ids,
    series_names,
    sharding_keys,
    stored_times,
    times,
)

shards = st.integers(0, 255)
identities = st.tuples(stored_times, sharding_keys, event_ids)
labels = st.builds(keys.bucket_label, stored_times, buckets)
# Names that another name becomes when parts of a key are appended.
confusable = series_names | st.builds(
    lambda name, shard: f"{name}#{shard}", st.sampled_from(["a", "a#1", "#", ""]), shards
).filter(bool)


@given(confusable, shards)
def test_a_partition_key_holds_its_series_and_shard(series: str, shard: int) -> None:
    assert keys.parse_partition_key(keys.partition_key(series, shard)) == (series, shard)


@given(identities)
def test_a_sort_key_holds_the_identity(identity: tuple[str, str | None, str]) -> None:
    assert keys.parse_sort_key(keys.sort_key(*identity)) == identity


@given(confusable, labels, shards)
def test_an_index_key_holds_its_series_bucket_and_shard(
    series: str, label: str, shard: int
) -> None:
    assert keys.parse_index_key(keys.index_key(series, label, shard)) == (series, label, shard)


@given(st.tuples(confusable, shards), st.tuples(confusable, shards))
def test_no_two_shards_share_a_partition_key(one: tuple[str, int], other: tuple[str, int]) -> None:
    assert (keys.partition_key(*one) == keys.partition_key(*other)) == (one == other)


@given(st.tuples(confusable, labels, shards), st.tuples(confusable, labels, shards))
def test_no_two_buckets_and_shards_share_an_index_key(
    one: tuple[str, str, int], other: tuple[str, str, int]
) -> None:
    assert (keys.index_key(*one) == keys.index_key(*other)) == (one == other)


@given(identities, identities)
def test_no_two_events_share_a_sort_key(
    one: tuple[str, str | None, str], other: tuple[str, str | None, str]
) -> None:
    assert (keys.sort_key(*one) == keys.sort_key(*other)) == (one == other)


@given(identities, identities)
def test_byte_order_of_sort_keys_is_the_order_of_time_then_of_what_follows(
    one: tuple[str, str | None, str], other: tuple[str, str | None, str]
) -> None:
    if one[0] != other[0]:
        expected = one[0] < other[0]
    elif one[1] == other[1]:
        expected = one[2] < other[2]
    else:
        return
    ours, theirs = keys.sort_key(*one), keys.sort_key(*other)
    assert (ours.encode() < theirs.encode()) == expected
    assert (ours < theirs) == expected  # the order that merging uses


@given(times, times)
def test_text_order_of_stored_times_is_time_order(one: datetime, other: datetime) -> None:
    texts = [format_time(each) for each in (one, other)]
    assert (texts[0] < texts[1]) == (one < other)
    assert {len(text) for text in texts} == {keys.TIME_WIDTH}


@given(times)
def test_stored_times_are_the_times_they_were(time: datetime) -> None:
    stored = format_time(time)
    assert to_datetime(stored) == time == parse_time(stored)


@given(stored_times, buckets, stored_times)
def test_a_bucket_label_orders_as_the_times_in_it(
    one: str, bucket: keys.TimeBucket, other: str
) -> None:
    first, second = keys.bucket_label(one, bucket), keys.bucket_label(other, bucket)
    assert one.startswith(first)
    if first < second:
        assert one < other
