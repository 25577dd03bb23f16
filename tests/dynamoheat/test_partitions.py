import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynamoheat import ModelParameters
from dynamoheat.partitions import HASHES, LAST, Partitions, Position, position

KEYS = st.text(min_size=1, max_size=6)
POSITIONS = st.one_of(
    st.tuples(st.integers(1, HASHES - 1)),
    st.tuples(KEYS, KEYS).map(lambda pair: position(*pair)),
)


def divided(cuts: list[Position], count: int = 1) -> Partitions:
    partitions = Partitions(count, None, ModelParameters(), 0.0)
    for cut in cuts:
        home = partitions.at(cut)
        if home.low < cut:
            partitions.split(home, cut, 0.0)
    return partitions


@given(st.lists(POSITIONS, max_size=30), st.integers(1, 5))
def test_ranges_stay_disjoint_and_complete_whatever_is_split(
    cuts: list[Position], count: int
) -> None:
    partitions = divided(cuts, count)
    parts = list(partitions)
    assert parts[0].low == (0,)
    assert [partitions.high(part) for part in parts] == [*(p.low for p in parts[1:]), (HASHES,)]
    assert all(part.low < partitions.high(part) for part in parts)
    assert len({part.number for part in parts}) == len(parts)


@given(st.lists(POSITIONS, max_size=30), st.lists(st.tuples(KEYS, KEYS), min_size=1, max_size=10))
def test_every_key_is_found_in_the_one_range_that_holds_it(
    cuts: list[Position], keys: list[tuple[str, str]]
) -> None:
    partitions = divided(cuts)
    for _ in range(2):  # the second time from the cache
        for key, sort in keys:
            found = partitions.find(key, sort)
            assert found.low <= position(key, sort) < partitions.high(found)


@given(st.lists(POSITIONS, max_size=30))
def test_a_split_never_lowers_the_total(cuts: list[Position]) -> None:
    before = Partitions(1, None, ModelParameters(), 0.0)
    after = divided(cuts)
    assert sum(p.write.rate for p in after) >= sum(p.write.rate for p in before)
    assert sum(p.write.tokens for p in after) >= sum(p.write.tokens for p in before)


def test_children_share_the_data_and_the_debts_of_their_parent() -> None:
    partitions = Partitions(1, None, ModelParameters(), 0.0)
    (parent,) = partitions
    parent.bytes, parent.write.tokens, parent.read.tokens = 1000.0, -30.0, 40.0
    left, right = partitions.split(parent, (HASHES // 2,), 0.0, share=0.25)
    assert (left.bytes, right.bytes) == (250.0, 750.0)
    assert left.write.tokens + right.write.tokens == -30.0
    assert left.read.tokens == right.read.tokens == 40.0


def test_a_cut_outside_the_range_is_refused() -> None:
    partitions = Partitions(2, None, ModelParameters(), 0.0)
    first, second = partitions
    for cut in (first.low, second.low, (HASHES,)):
        with pytest.raises(ValueError, match="not inside"):
            partitions.split(first, cut, 0.0)


def test_a_divided_collection_is_found_by_sort_key_from_either_end() -> None:
    partitions = divided([position("k", "m")])
    assert partitions.find("k", "a") is partitions.find("k") is not partitions.find("k", "z")
    assert partitions.find("k", LAST) is partitions.find("k", "z")
    assert partitions.find("k", "m") is partitions.find("k", "z")
