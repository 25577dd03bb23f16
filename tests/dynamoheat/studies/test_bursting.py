from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynamoheat.studies.generations import (
    DesignAssumptions,
    ItemRequest,
    Neighbours,
    NewTable,
    StorageTable,
)

QUIET = DesignAssumptions(neighbours=(Neighbours(0, 0),))


def table(
    write: float = 0.0,
    read: float = 0.0,
    assumptions: DesignAssumptions = QUIET,
    *,
    bursts: bool = True,
) -> StorageTable:
    return StorageTable(
        NewTable(read=read, write=write), bursts=bursts, adapts=False, assumptions=assumptions
    )


def offered(
    tried: StorageTable, rate: int, seconds: int, start: float, *, write: bool, key: str = "k"
) -> list[int]:
    """Offer single units evenly and return how many of each second passed."""
    request = tried.put if write else tried.get
    return [
        sum(
            request(ItemRequest(key, str(n), 1.0), start + second + (n + 1) / rate)
            for n in range(rate)
        )
        for second in range(seconds)
    ]


def test_150_units_idle_for_five_minutes_carry_200_for_900_seconds() -> None:
    passed = offered(table(read=150), 200, 960, 300.0, write=False)
    saved, refilled, of_a_second = 45_000, 960 * 150, 150
    assert sum(passed) == pytest.approx(saved + refilled + of_a_second, abs=1)
    assert passed[:900] == [200] * 900
    assert sum(passed[910:]) == 150 * 50


def test_without_bursting_an_idle_partition_takes_its_share_and_no_more() -> None:
    passed = offered(table(read=150, bursts=False), 200, 60, 300.0, write=False)
    assert passed[10:] == [150] * 50


def test_nothing_is_saved_beyond_300_seconds() -> None:
    tried = table(write=2)
    tried.put(ItemRequest("k", "0", 1.0), 86_400.0)
    assert tried.saved_units(write=True) == [600]


def test_a_burst_lifts_no_partition_above_its_own_limit() -> None:
    passed = offered(table(write=800), 1_500, 20, 300.0, write=True)
    assert max(passed[2:]) <= 1_001
    assert sum(passed[2:]) / 18 == pytest.approx(1_000, abs=1)


@given(
    gaps=st.lists(st.floats(0.0, 400.0), min_size=1, max_size=40),
    units=st.integers(1, 300),
    write=st.booleans(),
)
def test_what_is_admitted_never_exceeds_share_times_time_and_what_was_there_at_first(
    gaps: list[float], units: int, write: bool
) -> None:
    tried = table(write=100, read=100)
    now, admitted = 0.0, 0.0
    for number, gap in enumerate(gaps):
        now += gap
        ask = ItemRequest("k", str(number), float(units))
        passed = tried.put(ask, now) if write else tried.get(ask, now)
        admitted += units * passed
        debt = max(units - 100, 0)  # of a request larger than its bucket
        assert admitted <= 100 * (now + 1) + debt + 1e-6


def fleet(*used: float) -> DesignAssumptions:
    """Zones of one node each, on which others use so much of 1,000."""
    nodes = tuple(Neighbours(500, each) for each in used)
    return replace(QUIET, node_capacity=1_000.0, neighbours=nodes)


def crowded() -> StorageTable:
    """Partitions of 500 W and R; the leader's node has all its tokens, one other has none."""
    tried = table(write=300, read=300, assumptions=fleet(0.0))
    group = tried.group_of(next(iter(tried.partitions)))
    full = group[2].bucket
    full.resize(0.0, 0.0, 0.0)
    return tried


def test_a_burst_of_writes_needs_tokens_on_every_node_of_the_replication_group() -> None:
    passed = offered(crowded(), 400, 20, 300.0, write=True)
    assert passed[5:] == [300] * 15


def test_a_burst_of_reads_uses_any_free_node_of_the_replication_group() -> None:
    passed = offered(crowded(), 400, 20, 300.0, write=False)
    assert passed == [400] * 20


def test_partitions_on_one_node_share_what_it_has_for_bursts_and_keep_their_own() -> None:
    tried = table(write=1_600, assumptions=replace(QUIET, node_capacity=1_700.0))  # two of 800
    keys = one_key_each(tried)
    alone = table(write=1_600, assumptions=replace(QUIET, node_capacity=1_700.0))
    assert offered(alone, 950, 10, 300.0, write=True, key=keys[0])[3:] == [950] * 7
    both = [0, 0]
    for step in range(60 * 950):
        now = 300 + step / 950
        for at, key in enumerate(keys):
            both[at] += tried.put(ItemRequest(key, str(step), 1.0), now)
    assert sum(both) == pytest.approx(1_700 * (60 + 1), rel=0.005)  # and a second's bucket
    assert min(both) >= 800 * 60


def test_a_write_costs_all_nodes_of_its_group_and_a_read_a_third_of_that_on_one() -> None:
    tried = table(write=300, read=300)
    nodes = tried.group_of(next(iter(tried.partitions)))
    full = nodes[0].bucket.depth
    tried.put(ItemRequest("k", "0", 3.0), 0.0)
    assert [full - node.bucket.tokens for node in nodes] == [3, 3, 3]
    tried.get(ItemRequest("k", "0", 3.0), 0.0)
    assert [full - node.bucket.tokens for node in nodes] == [4, 3, 3]


def test_a_split_for_size_divides_what_was_saved() -> None:
    tried = table(write=100)
    tried.put(ItemRequest("k", "0", 1.0), 300.0)
    before = tried.saved_units(write=True)[0]
    next(iter(tried.partitions)).bytes = 1e10
    tried.advance(301.0)
    assert tried.saved_units(write=True) == pytest.approx([before / 2] * 2, abs=100)
    assert sum(tried.saved_units(write=True)) <= before + 100


def test_a_partition_gets_what_it_is_allocated_however_busy_its_nodes_are() -> None:
    tried = table(write=500, assumptions=fleet(1_000.0))
    assert offered(tried, 700, 10, 300.0, write=True)[4:] == [500] * 6


def one_key_each(tried: StorageTable) -> list[str]:
    found: dict[int, str] = {}
    for number in range(99):
        found.setdefault(tried.partitions.find(f"k{number}").number, f"k{number}")
    return [found[number] for number in sorted(found)]
