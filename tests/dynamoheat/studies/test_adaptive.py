from dataclasses import replace
from itertools import pairwise

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
from dynamoheat.studies.generations.storage import PartitionDemand, next_boosts

ASSUMED = DesignAssumptions(neighbours=(Neighbours(0, 0),))
RATES = st.floats(0, 1_000)
DEMANDS = st.lists(
    st.builds(
        PartitionDemand,
        consumed=RATES,
        throttled=RATES,
        share=st.just(100.0),
        boost=st.floats(0, 900),
        throttled_seconds=st.floats(0, 2_000),
    ),
    min_size=1,
    max_size=12,
)


def minutes(
    tried: StorageTable, rates: dict[str, float], count: int, start: float = 0.0
) -> list[dict[str, float]]:
    """Offer each key its rate, 4 units a request; return the admitted units a second."""
    passed = []
    for minute in range(count):
        done = dict.fromkeys(rates, 0.0)
        for second in range(60):
            now = start + 60 * minute + second
            for key, rate in rates.items():
                for n in range(int(rate // 4)):
                    at = now + 4 * n / rate
                    done[key] += 4 * tried.put(ItemRequest(key, str(at), 4.0), at)
        tried.advance(start + 60 * (minute + 1))
        passed.append({key: units / 60 for key, units in done.items()})
    return passed


def four(
    *, adapts: bool, bursts: bool = True, assumptions: DesignAssumptions = ASSUMED
) -> tuple[StorageTable, dict[str, float]]:
    """The developer guide's table: 400 W over four partitions, which want 50, 50, 50 and 150."""
    tried = StorageTable(
        NewTable(read=0, write=400, stored_bytes=31e9),
        bursts=bursts,
        adapts=adapts,
        assumptions=assumptions,
    )
    keys: dict[int, str] = {}
    for number in range(99):
        keys.setdefault(tried.partitions.find(f"k{number}").number, f"k{number}")
    return tried, dict(zip([keys[n] for n in range(4)], [48.0, 48.0, 48.0, 148.0], strict=True))


def test_the_guides_hot_partition_of_150_on_a_share_of_100_is_boosted_within_the_hour() -> None:
    tried, rates = four(adapts=True)
    passed = minutes(tried, rates, 30)
    hot = list(rates)[3]
    assert passed[5][hot] == pytest.approx(100, rel=0.05)  # after the burst, before the boost
    assert passed[-1] == pytest.approx(rates)


def test_without_adaptive_capacity_it_throttles_for_good() -> None:
    tried, rates = four(adapts=False)
    assert minutes(tried, rates, 20)[-1][list(rates)[3]] == pytest.approx(100, rel=0.02)


def test_adaptive_capacity_waits_for_five_minutes_of_throttling() -> None:
    tried, rates = four(adapts=True)
    granted = []
    for minute in range(12):
        minutes(tried, rates, 1, 60.0 * minute)
        granted.append(tried.granted_rates(write=True)[3])
    raised = next(at for at, grant in enumerate(granted) if grant > 100)
    throttled = next(at for at in range(12) if at and granted[at - 1 : at + 1] == [100, 100])
    assert raised - throttled >= 5 - 1
    assert all(later >= earlier - 1e-6 for earlier, later in pairwise(granted))


def test_throttling_that_stopped_in_between_does_not_add_up_to_five_minutes() -> None:
    tried, rates = four(adapts=True, bursts=False)
    cool = dict.fromkeys(rates, 48.0)
    for start in (0, 5, 10):
        minutes(tried, rates, 4, 60.0 * start)
        minutes(tried, cool, 1, 60.0 * (start + 4))
    assert tried.granted_rates(write=True) == [100] * 4


def test_a_boost_ends_when_the_heat_has_moved_on() -> None:
    tried, rates = four(adapts=True)
    minutes(tried, rates, 15)
    assert tried.granted_rates(write=True)[3] > 140
    cool = dict.fromkeys(rates, 48.0)
    minutes(tried, cool, 10, 900.0)
    assert tried.granted_rates(write=True) == pytest.approx([100] * 4, abs=0.5)


def test_boosted_partitions_move_to_nodes_with_room() -> None:
    assumptions = replace(
        ASSUMED,
        node_capacity=450.0,
        neighbours=(Neighbours(50, 50), Neighbours(100, 100)),
    )  # four partitions of 100 fill the first node of each zone; the second has room for more
    tried, rates = four(adapts=True, assumptions=assumptions)
    first, second = tried.fleet.zones[0]
    hot = list(tried.partitions)[3]
    assert tried.group_of(hot)[0] is first
    minutes(tried, rates, 15)
    assert tried.group_of(hot)[0] is second
    assert first.allocated_rate == 50 + 300
    assert second.allocated_rate == pytest.approx(100 + tried.granted_rates(write=True)[3])


def test_a_boost_is_no_larger_than_the_room_on_any_node() -> None:
    assumptions = replace(ASSUMED, node_capacity=470.0, neighbours=(Neighbours(50, 50),))
    tried, rates = four(adapts=True, assumptions=assumptions)
    minutes(tried, rates, 20)
    assert tried.granted_rates(write=True)[3] == pytest.approx(120)


@given(demands=DEMANDS, provisioned=st.floats(100, 5_000))
def test_boosts_stay_within_the_partitions_limit_and_what_the_table_left_unused(
    demands: list[PartitionDemand], provisioned: float
) -> None:
    after = next_boosts(demands, provisioned, 1_000.0, ASSUMED)
    assert all(0 <= boost <= 900 + 1e-6 for boost in after)
    raised = sum(max(new - old.boost, 0) for new, old in zip(after, demands, strict=True))
    unused = provisioned - sum(demand.consumed for demand in demands)
    assert raised <= max(unused, 0) + 1e-6


@given(demands=DEMANDS)
def test_a_table_that_consumes_more_than_it_has_loses_boosts_and_gains_none(
    demands: list[PartitionDemand],
) -> None:
    consumed = sum(demand.consumed for demand in demands)
    after = next_boosts(demands, consumed / 2 - 1, 1_000.0, ASSUMED) if consumed > 2 else []
    assert all(new <= old.boost for new, old in zip(after, demands, strict=False))


@given(wanted=st.floats(100, 2_000), throttled_seconds=st.floats(300, 1_000))
def test_a_steady_demand_is_met_up_to_the_partitions_limit(
    wanted: float, throttled_seconds: float
) -> None:
    boost = 0.0
    for _ in range(30):
        consumed = min(wanted, 100 + boost)
        demand = PartitionDemand(
            consumed=consumed,
            throttled=wanted - consumed,
            share=100.0,
            boost=boost,
            throttled_seconds=throttled_seconds,
        )
        (boost,) = next_boosts([demand], 3_000.0, 1_000.0, ASSUMED)
    assert 100 + boost == pytest.approx(min(wanted, 1_000), rel=1e-3)
