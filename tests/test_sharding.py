import pytest

from spillway import recommended_shards, shards_for
from spillway.sharding import is_power_of_two, routing_hash, shard_of

CLOUD = "user.v1.User"


@pytest.mark.parametrize(
    ("series", "routing", "shard"),
    [
        (CLOUD, "abc:123", 11),
        *zip(
            [CLOUD] * 16,
            [f"abc:{n}" for n in range(16)],
            [12, 14, 13, 6, 6, 5, 12, 11, 13, 5, 12, 15, 13, 5, 14, 14],
            strict=True,
        ),
        ("", "a", 12),
        ("", "b", 15),
        ("", "c", 14),
    ],
)
def test_events_go_where_the_published_vectors_say(series: str, routing: str, shard: int) -> None:
    assert shard_of(routing_hash(series, routing), 16) == shard


def test_hashes_are_those_of_utf_8() -> None:
    assert routing_hash("é", "日") != routing_hash("e", "日")
    with pytest.raises(UnicodeEncodeError):
        routing_hash("a", "\ud800")


@pytest.mark.parametrize("shards", [1, 2, 4, 8, 128])
def test_doubling_sends_a_shard_only_to_itself_and_to_one_new_shard(shards: int) -> None:
    for n in range(500):
        routing = routing_hash("ORD", f"row-{n}")
        before, after = shard_of(routing, shards), shard_of(routing, 2 * shards)
        assert after in {before, before + shards}


def test_one_shard_takes_everything() -> None:
    assert {shard_of(routing_hash("ORD", str(n)), 1) for n in range(100)} == {0}


@pytest.mark.parametrize("count", [1, 2, 64, 256])
def test_powers_of_two_leave_no_shard_empty(count: int) -> None:
    assert is_power_of_two(count)
    shards = {shard_of(routing_hash("ORD", str(n)), count) for n in range(20 * count)}
    assert shards == set(range(count))


@pytest.mark.parametrize("count", [0, -1, -2, 3, 6, 255])
def test_other_counts_are_told_apart(count: int) -> None:
    assert not is_power_of_two(count)


@pytest.mark.parametrize(
    ("rate", "item_bytes", "floor"),
    [
        (10_000, 1_024, 10),
        (10_000, 1_025, 20),
        (10_001, 1_000, 11),
        (1, 1, 1),
        (999.5, 100, 1),
        (1_000, 400 * 1_024, 400),
    ],
)
def test_the_textbook_floor_counts_started_kilobytes(
    rate: float, item_bytes: int, floor: int
) -> None:
    assert shards_for(rate, item_bytes) == floor


@pytest.mark.parametrize(
    ("rate", "item_bytes", "recommended"),
    [
        (10_000, 1_024, 64),
        (4_000, 500, 16),
        (4_001, 500, 32),
        (250, 100, 1),
        (251, 100, 2),
        (8_000, 2_048, 64),
    ],
)
def test_the_recommended_count_is_four_times_the_need_up_to_a_power_of_two(
    rate: float, item_bytes: int, recommended: int
) -> None:
    assert recommended_shards(rate, item_bytes) == recommended
    assert recommended_shards(rate, item_bytes) >= shards_for(rate, item_bytes)


@pytest.mark.parametrize(("rate", "item_bytes"), [(0, 100), (-1, 100), (100, 0), (100, -5)])
def test_rates_and_sizes_must_be_positive(rate: float, item_bytes: int) -> None:
    for count in (shards_for, recommended_shards):
        with pytest.raises(ValueError, match="greater than 0"):
            count(rate, item_bytes)
