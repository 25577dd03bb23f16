import pytest

from spillway import keys
from spillway.keys import EventKey, IndexKey, SortKey, TimeBucket

TIME = "2001-01-01T00:01:00.000000Z"


@pytest.mark.parametrize(
    ("series", "shard", "stored"),
    [("ORD", 3, "ORD#3"), ("a#1", 0, "a#1#0"), ("a", 1, "a#1"), ("#", 255, "##255")],
)
def test_the_shard_is_the_last_part_of_a_partition_key(
    series: str, shard: int, stored: str
) -> None:
    assert keys.partition_key(series, shard) == stored
    assert keys.parse_partition_key(stored) == EventKey(series, shard)


@pytest.mark.parametrize(
    ("sharding_key", "stored"),
    [
        (None, f"{TIME}#7"),
        ("LGA", f"{TIME}#LGA#7"),
        ("LGA#2", f"{TIME}#LGA#2#7"),
        ("#", f"{TIME}###7"),
    ],
)
def test_a_sort_key_starts_with_the_time_and_ends_with_the_id(
    sharding_key: str | None, stored: str
) -> None:
    assert keys.sort_key(TIME, sharding_key, "7") == stored
    assert keys.parse_sort_key(stored) == SortKey(TIME, sharding_key, "7")


@pytest.mark.parametrize(
    ("bucket", "label"),
    [
        (TimeBucket.DAY, "2001-01-01"),
        (TimeBucket.HOUR, "2001-01-01T00"),
        (TimeBucket.MINUTE, "2001-01-01T00:01"),
    ],
)
def test_index_keys_carry_the_time_truncated_to_the_bucket(bucket: TimeBucket, label: str) -> None:
    assert keys.bucket_label(TIME, bucket) == label
    stored = keys.index_key("a#1", label, 5)
    assert stored == f"a#1#{label}#5"
    assert keys.parse_index_key(stored) == IndexKey("a#1", label, 5)


@pytest.mark.parametrize("text", ["", "ORD", "ORD#", "ORD#x"])
def test_what_is_no_partition_key_is_not_taken_for_one(text: str) -> None:
    with pytest.raises(ValueError, match=r"not a partition key|invalid literal"):
        keys.parse_partition_key(text)


@pytest.mark.parametrize("text", ["", TIME, "2001#7", TIME.replace("Z", "") + "#7"])
def test_what_is_no_sort_key_is_not_taken_for_one(text: str) -> None:
    with pytest.raises(ValueError, match="not a sort key"):
        keys.parse_sort_key(text)


@pytest.mark.parametrize("text", ["", "ORD#2001-01-01", "ORD#2001-01-01#x"])
def test_what_is_no_index_key_is_not_taken_for_one(text: str) -> None:
    with pytest.raises(ValueError, match=r"not an index key|invalid literal"):
        keys.parse_index_key(text)
