from random import Random
from typing import Any
from weakref import ref

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynamoheat import ModelParameters
from dynamoheat.aggregated import Keys, Sorts
from dynamoheat.aggregated.routes import PartitionRouter, Route
from dynamoheat.partitions import HASHES, Partitions, position

SHARES = st.dictionaries(st.sampled_from("abcdefgh"), st.floats(0.01, 100), min_size=1, max_size=8)
KEYS = st.one_of(
    st.builds(Keys.of, SHARES, st.sampled_from(Sorts)),
    st.just(Keys.everywhere()),
    st.builds(
        lambda low, width: Keys.arc(low, min(1.0, low + width)),
        st.floats(0, 0.9),
        st.floats(0.001, 1),
    ),
)


def partitions(count: int = 4) -> Partitions:
    return Partitions(count, None, ModelParameters(), 0.0)


def split_anywhere(parts: Partitions, keys: Keys, random: Random, times: int) -> None:
    """Split where the traffic of some keys is, as heat would."""
    for now in range(times):
        route = route_of(keys, parts, now / 10)
        partition = random.choice(list(route.shares))
        cut = route.sample(partition, random, now / 10)
        if partition.low < cut < parts.high(partition):
            parts.split(partition, cut, now / 10)


def route_of(keys: Keys, parts: Partitions, now: float = 0.0) -> Route:
    return Route(keys.spots(sortable=True), parts, now)


@given(KEYS, st.integers(0, 99), st.integers(0, 30))
def test_shares_are_of_todays_partitions_and_add_up_to_one(
    keys: Keys, seed: int, times: int
) -> None:
    parts = partitions()
    split_anywhere(parts, keys, Random(seed), times)
    shares = route_of(keys, parts, times / 10).shares
    assert sum(shares.values()) == pytest.approx(1)
    assert min(shares.values()) > 0
    assert set(shares) <= set(parts)


@given(KEYS, st.integers(0, 99), st.integers(0, 30))
def test_samples_lie_in_the_partition_they_were_drawn_for(
    keys: Keys, seed: int, times: int
) -> None:
    parts, random = partitions(), Random(seed)
    split_anywhere(parts, keys, random, times)
    now = times / 10
    route = route_of(keys, parts, now)
    for partition in route.shares:
        where: Any = route.sample(partition, random, now)
        assert parts.at(where) is partition


@given(KEYS, st.integers(0, 99), st.integers(1, 30))
def test_what_a_split_partition_was_to_get_goes_to_its_children(
    keys: Keys, seed: int, times: int
) -> None:
    parts, random = partitions(), Random(seed)
    before = {
        partition: (partition.low, parts.high(partition))
        for partition in route_of(keys, parts).shares
    }
    split_anywhere(parts, keys, random, times)
    route = route_of(keys, parts, times / 10)
    for old, (low, high) in before.items():
        heirs = dict(route.heirs(old, 12.0))
        assert sum(heirs.values()) == pytest.approx(12)
        assert all(low <= heir.low < high for heir in heirs)


def test_an_arc_is_divided_by_the_hashes_that_partitions_hold() -> None:
    parts = partitions(4)
    shares = list(route_of(Keys.arc(0.125, 0.5), parts).shares.values())
    assert shares == pytest.approx([1 / 3, 2 / 3])


def test_a_key_is_where_the_event_mode_has_it() -> None:
    parts = partitions(64)
    for name in ("a", "ü", "ORD#3"):
        assert list(route_of(Keys.one(name), parts).shares) == [parts.find(name)]


@pytest.mark.parametrize(
    ("sorts", "left"), [(Sorts.SPREAD, 0.3), (Sorts.GROWING, None), (Sorts.ONE, None)]
)
def test_only_spread_sort_keys_are_divided_by_a_cut_inside_their_key(
    sorts: Sorts, left: float | None
) -> None:
    parts, keys = partitions(1), Keys.one("k", sorts)
    (whole,) = parts
    children = parts.split(whole, (position("k")[0], 0.3), 1.0)
    shares = route_of(keys, parts, 1.0).shares
    assert shares == pytest.approx(
        {children[1]: 1.0} if left is None else {children[0]: left, children[1]: 0.7}
    )


def test_without_a_sort_key_a_key_is_one_item() -> None:
    parts = partitions(1)
    (whole,) = parts
    parts.split(whole, (position("k")[0], 0.3), 1.0)
    route = Route(Keys.one("k").spots(sortable=False), parts, 1.0)
    assert len(route.shares) == 1


def test_routes_are_made_again_only_after_a_split() -> None:
    parts, router, keys = partitions(2), PartitionRouter(), Keys.everywhere()
    first = router.route(keys, parts, 0.0, sortable=True)
    assert router.route(keys, parts, 1.0, sortable=True) is first
    parts.split(next(iter(parts)), (HASHES // 8,), 1.0)
    again = router.route(keys, parts, 1.0, sortable=True)
    assert again is not first
    assert list(again.shares.values()) == pytest.approx([1 / 8, 3 / 8, 1 / 2])


def test_routes_go_with_their_keys() -> None:
    parts, router = partitions(2), PartitionRouter()
    gone = ref(router.route(Keys.everywhere(), parts, 0.0, sortable=True))
    assert gone() is None


@pytest.mark.parametrize("shares", [{}, {"a": 0.0}, {"a": -1.0}])
def test_keys_need_a_share(shares: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="shares"):
        Keys.of(shares)


@pytest.mark.parametrize(("low", "high"), [(0.5, 0.5), (-0.1, 0.5), (0.5, 1.1)])
def test_an_arc_lies_on_the_hash_range(low: float, high: float) -> None:
    with pytest.raises(ValueError, match="arc"):
        Keys.arc(low, high)
