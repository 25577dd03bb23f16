from math import ceil

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynamoheat.studies.generations import (
    Opening,
    StorageTable,
    equal_shares,
    initial_partitions,
    partitions_after,
)

UNITS = st.integers(1, 100_000)


@pytest.mark.parametrize(
    ("read", "write", "gigabytes", "partitions"),
    [
        (1_500, 500, 0, 1),
        (2_500, 1_000, 0, 2),
        (3_000, 1_000, 0, 2),
        (3_000, 0, 0, 1),
        (1, 1, 0, 1),
        (1, 1, 10, 1),
        (1, 1, 101, 11),
        (9_000, 2_000, 40, 5),
    ],
)
def test_a_new_table_has_partitions_for_its_throughput_and_for_its_data(
    read: float, write: float, gigabytes: float, partitions: int
) -> None:
    assert initial_partitions(read, write, gigabytes * 1e9) == partitions


@pytest.mark.parametrize(
    ("read", "write", "partitions", "each"),
    [
        (2_500, 1_000, 2, (1_250, 500)),
        (10_000, 5_000, 10, (1_000, 500)),
        (10_000, 5_000, 20, (500, 250)),
        (10_000, 5_000, 5, (2_000, 1_000)),
    ],
)
def test_throughput_is_divided_equally(
    read: float, write: float, partitions: int, each: tuple[float, float]
) -> None:
    shares = equal_shares(read, write, partitions)
    assert (shares.read, shares.write) == each


def table(write: float, read: float = 0.0, stored_bytes: float = 0.0) -> StorageTable:
    opening = Opening(read=read, write=write, stored_bytes=stored_bytes)
    return StorageTable(opening, bursts=False, adapts=False)


def test_the_papers_table_has_4_by_800_then_4_by_900_then_8_by_750() -> None:
    papers = table(3_200)
    assert papers.granted(write=True) == [800] * 4
    papers.provision(0, 3_600, 1.0)
    assert papers.granted(write=True) == [900] * 4
    papers.provision(0, 6_000, 2.0)
    assert papers.granted(write=True) == [750] * 8
    papers.provision(0, 5_000, 3.0)
    assert papers.granted(write=True) == [625] * 8


def test_a_split_for_size_leaves_the_children_half_of_their_parents_share_each() -> None:
    grown = table(3_200, stored_bytes=39.9e9)
    parts = list(grown.partitions)
    parts[1].bytes = 10e9
    grown.advance(60.0)
    assert grown.granted(write=True) == [800, 400, 400, 800, 800]
    assert [part.bytes for part in grown.partitions][1:3] == [5e9, 5e9]


@given(read=UNITS, write=UNITS, gigabytes=st.integers(0, 500))
def test_no_partition_of_a_new_table_is_allocated_or_stores_more_than_it_can(
    read: int, write: int, gigabytes: int
) -> None:
    count = initial_partitions(read, write, gigabytes * 1e9)
    shares = equal_shares(read, write, count)
    assert shares.read / 3_000 + shares.write / 1_000 <= 1 + 1e-6
    assert gigabytes / count <= 10
    assert count == max(1, ceil(read / 3_000 + write / 1_000 - 1e-9), ceil(gigabytes / 10))


@given(count=st.integers(1, 64), read=UNITS, write=UNITS)
def test_partitions_are_only_ever_doubled_and_never_merged(
    count: int, read: int, write: int
) -> None:
    after = partitions_after(count, read, write)
    assert after >= count
    assert (after // count).bit_count() == 1
    assert after % count == 0
    assert after >= initial_partitions(read, write)
    assert after == count or after // 2 < initial_partitions(read, write)


@given(changes=st.lists(st.tuples(UNITS, UNITS), min_size=1, max_size=4))
def test_what_partitions_are_granted_is_what_the_table_has(changes: list[tuple[int, int]]) -> None:
    changed = table(1_000, read=1_000)
    for now, (read, write) in enumerate(changes):
        changed.provision(min(read, 20_000), min(write, 20_000), float(now))
        assert sum(changed.granted(write=True)) == pytest.approx(min(write, 20_000))
        assert sum(changed.granted(write=False)) == pytest.approx(min(read, 20_000))
