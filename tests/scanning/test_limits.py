"""How many items each partition is asked for."""

import math
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spillway.scanning.costs import UNIT_BYTES
from spillway.scanning.limits import fit_limits, limit_for, limit_with_filter


def _counts(random: Random, wanted: int, shards: int) -> list[int]:
    """Return how many of the next `wanted` events each shard holds, as hashing spreads them."""
    counts = [0] * shards
    for _ in range(wanted):
        counts[random.randrange(shards)] += 1
    return counts


@pytest.mark.parametrize("shards", [2, 4, 16, 64, 256])
@pytest.mark.parametrize("wanted", [2, 11, 101])
def test_small_pages_need_one_round_in_nearly_all_cases(shards: int, wanted: int) -> None:
    random = Random(1)
    limit = limit_for(wanted / shards, shards, unit_items=1_000)
    enough = sum(max(_counts(random, wanted, shards)) <= limit for _ in range(400))
    assert enough >= 0.95 * 400


@pytest.mark.parametrize("shards", [16, 64])
@pytest.mark.parametrize("wanted", [10_001, 20_001])
def test_large_pages_ask_for_little_more_than_their_share(shards: int, wanted: int) -> None:
    assert limit_for(wanted / shards, shards, unit_items=20) * shards <= 1.1 * wanted


def test_one_partition_is_asked_for_exactly_what_is_wanted() -> None:
    assert limit_for(101, 1, unit_items=20) == 101
    assert limit_for(1, 1, unit_items=20) == 1


@given(st.floats(0.01, 5_000), st.integers(2, 256), st.floats(1, 60))
def test_slack_is_free_or_slight(expected: float, partitions: int, unit_items: float) -> None:
    limit = limit_for(expected, partitions, unit_items)
    assert limit >= max(1, expected)
    slight = 1.03 * expected + 2
    units = math.ceil(slight / unit_items)  # those that are paid for in any case
    assert limit <= max(units * unit_items, 1.1 * expected, slight)


@given(
    st.lists(st.integers(1, 5_000), min_size=1, max_size=64),
    st.floats(0, 3_000),
    st.floats(30, 400_000),
    st.sampled_from([0.5, 1.0]),
)
def test_limits_never_cost_more_than_is_left(
    limits: list[int], units: float, item_bytes: float, unit: float
) -> None:
    cut = fit_limits(limits, units, item_bytes, unit)
    if cut is None:
        assert units < unit * len(limits)
        return
    assert all(1 <= each <= limit for each, limit in zip(cut, limits, strict=True))
    whole_units = [unit * max(1, -(-(each * item_bytes) // UNIT_BYTES)) for each in cut]
    larger_than_a_unit = item_bytes > UNIT_BYTES  # one item a request is the least there is
    assert sum(whole_units) <= units + 1e-6 or larger_than_a_unit


def test_a_read_that_passes_items_over_asks_for_more_the_more_it_passes_over() -> None:
    limits = [limit_with_filter(10, kept, 100 - kept, 1) for kept in (100, 50, 10, 1)]
    assert limits == sorted(limits)
    assert limits[0] < 15
    assert limits[-1] == 1_000
