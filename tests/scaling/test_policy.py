from dataclasses import replace
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spillway.scaling.policy import (
    GrowthStopReason,
    ScalingDecision,
    ScalingObservation,
    SideObservation,
    decide_ahead_of_demand,
    decide_on_throttle,
    shards_needed,
    supported_units,
)
from spillway.settings import Growth, GrowthPolicy
from spillway.sharding import MAX_SHARDS, is_power_of_two

KEYS: Final = ("a", "b", "c")

growths = st.builds(
    Growth,
    policy=st.sampled_from(GrowthPolicy),
    max_shards=st.integers(1, MAX_SHARDS),
    max_step=st.integers(2, 16),
    max_utilization=st.none() | st.floats(0.05, 1),
)
demands = st.none() | st.floats(0, 100_000)
throttles = st.dictionaries(st.integers(0, 255), st.integers(1, 1_000), max_size=3)
key_shares = st.dictionaries(st.sampled_from(KEYS), st.integers(0, 3_000))
counts = st.integers(0, 8).map(lambda power: 2**power)
sides = st.builds(
    SideObservation, shards=counts, demand=demands, throttled=throttles, key_shares=key_shares
)
observations = st.builds(ScalingObservation, table=sides, index=sides) | st.builds(
    ScalingObservation,
    table=st.builds(
        SideObservation,
        shards=st.integers(1, 256),
        demand=demands,
        throttled=throttles,
        key_shares=key_shares,
    ),
    index=sides,
    any_count=st.just(True),
)


def _seen(
    table: SideObservation, index: SideObservation | None = None, *, any_count: bool = False
) -> ScalingObservation:
    quiet = SideObservation(shards=table.shards, demand=0.0)
    return ScalingObservation(table=table, index=index or quiet, any_count=any_count)


def _hot(shards: int, demand: float | None = None, **shares: float) -> SideObservation:
    return SideObservation(shards=shards, demand=demand, throttled={0: 100.0}, key_shares=shares)


@pytest.mark.parametrize(
    ("demand", "shards"),
    [(0, 1), (10, 1), (250, 1), (251, 2), (1_000, 4), (1_001, 8), (2_000, 8), (2_001, 16),
     (10_000, 64), (12_800, 64), (16_001, 128)],
)  # fmt: skip
def test_four_shards_carry_the_rate_of_one_partition(demand: float, shards: int) -> None:
    assert shards_needed(demand) == shards


@given(observations, growths, st.integers(-10, 4).map(lambda power: 2.0**power))
def test_smaller_partitions_decide_as_whole_ones_do_at_rates_as_much_smaller(
    seen: ScalingObservation, growth: Growth, scale: float
) -> None:
    def scaled(side: SideObservation) -> SideObservation:
        return replace(side, demand=None if side.demand is None else side.demand * scale)

    smaller = replace(growth, partition_wcu=growth.partition_wcu * scale)
    small = replace(seen, table=scaled(seen.table), index=scaled(seen.index))
    assert decide_ahead_of_demand(small, smaller) == decide_ahead_of_demand(seen, growth)
    assert decide_on_throttle(small, smaller) == decide_on_throttle(seen, growth)


@given(counts)
def test_a_count_carries_what_it_is_wanted_for(shards: int) -> None:
    assert shards_needed(supported_units(shards)) == max(4, shards)


@pytest.mark.parametrize(
    ("shards", "demand", "grown"),
    [
        (1, None, None), (1, 699, None), (1, 700, None), (1, 701, 8), (4, 701, 8),
        (8, 1_400, None), (8, 1_401, 16), (1, 10_000, 8), (8, 10_000, 64), (64, 10_000, None),
        (256, 1_000_000, None),
    ],
)  # fmt: skip
def test_a_layout_grows_ahead_once_it_is_filled_to_70_percent(
    shards: int, demand: float | None, grown: int | None
) -> None:
    seen = _seen(SideObservation(shards=shards, demand=demand))
    assert decide_ahead_of_demand(seen, Growth()).shards == grown


@pytest.mark.parametrize(
    ("shards", "demand", "grown"),
    [
        (1, None, 8), (2, None, 8), (8, None, 16), (128, None, 256),
        (1, 300, 8), (1, 3_000, 8), (8, 10_000, 64), (16, 3_000, 32), (2, 0, None),
    ],
)  # fmt: skip
def test_what_throttles_grows_to_its_demand_and_to_twice_its_count_at_least(
    shards: int, demand: float | None, grown: int | None
) -> None:
    assert decide_on_throttle(_seen(_hot(shards, demand)), Growth()).shards == grown


@pytest.mark.parametrize(
    ("policy", "any_count", "grown"),
    [("double", False, 2), ("increment", False, 2), ("increment", True, 2), ("demand", True, 8)],
)
@pytest.mark.parametrize("throttles", [True, False])
def test_a_step_goes_as_far_as_the_policy(
    policy: str, grown: int, *, any_count: bool, throttles: bool
) -> None:
    side = _hot(1, 5_000) if throttles else SideObservation(shards=1, demand=5_000)
    decide = decide_on_throttle if throttles else decide_ahead_of_demand
    growth = Growth(policy=GrowthPolicy(policy))
    assert decide(_seen(side, any_count=any_count), growth).shards == grown


def test_increments_add_one_to_any_count_of_a_random_layout() -> None:
    growth = Growth(policy=GrowthPolicy.INCREMENT, max_shards=7)
    assert decide_on_throttle(_seen(_hot(6), any_count=True), growth).shards == 7
    assert (
        decide_on_throttle(_seen(_hot(7), any_count=True), growth).stop
        is GrowthStopReason.MAX_SHARDS
    )


def test_the_index_grows_alone_where_it_alone_throttles() -> None:
    decision = decide_on_throttle(
        _seen(SideObservation(shards=8, demand=1_000), _hot(1, 1_200)), Growth()
    )
    assert (decision.shards, decision.index_shards) == (None, 8)


def test_the_other_side_grows_with_it_where_its_demand_is_as_high() -> None:
    decision = decide_on_throttle(
        _seen(_hot(1, 5_000), SideObservation(shards=1, demand=5_000)), Growth()
    )
    assert (decision.shards, decision.index_shards) == (8, 8)


@pytest.mark.parametrize(
    ("side", "stop"),
    [
        (_hot(8, 1_000, a=90), GrowthStopReason.HOT_SHARDING_KEY),
        (_hot(8, None, a=51), GrowthStopReason.HOT_SHARDING_KEY),
        (_hot(256, 100_000, a=90), GrowthStopReason.HOT_SHARDING_KEY),
        (_hot(8, 1_000, a=50, b=50), GrowthStopReason.TOO_FEW_PARTITIONS),
        (_hot(8, 1_000), GrowthStopReason.TOO_FEW_PARTITIONS),
        (_hot(2, 0), GrowthStopReason.TOO_FEW_PARTITIONS),
        (_hot(256, 100_000), GrowthStopReason.MAX_SHARDS),
        (_hot(256), GrowthStopReason.MAX_SHARDS),
    ],
)
def test_growth_stops_where_it_does_not_help_and_says_why(
    side: SideObservation, stop: GrowthStopReason
) -> None:
    decision = decide_on_throttle(_seen(side), Growth())
    assert (decision.grows, decision.stop) == (False, stop)
    hot = stop is GrowthStopReason.HOT_SHARDING_KEY
    assert decision.hot_sharding_keys == (("a",) if hot else ())


def test_one_key_grows_first_while_one_shard_holds_all_keys() -> None:
    assert decide_on_throttle(_seen(_hot(1, 1_200, a=100)), Growth()).shards == 8


def test_a_request_of_one_key_proves_nothing_while_the_fleet_needs_more_shards() -> None:
    assert decide_on_throttle(_seen(_hot(8, 10_000, a=100)), Growth()).shards == 64


def test_no_key_is_hot_where_shards_are_chosen_at_random() -> None:
    decision = decide_on_throttle(_seen(_hot(8, a=100), any_count=True), Growth())
    assert (decision.shards, decision.stop) == (16, None)


def test_a_key_that_heats_the_index_alone_is_named_too() -> None:
    decision = decide_on_throttle(
        _seen(SideObservation(shards=8, demand=1_200), _hot(8, 1_200, a=90)), Growth()
    )
    assert (decision.stop, decision.hot_sharding_keys) == (
        GrowthStopReason.HOT_SHARDING_KEY,
        ("a",),
    )


def test_bounds_that_are_no_power_of_two_stop_growth_below_them() -> None:
    growth = Growth(max_shards=100)
    assert decide_on_throttle(_seen(_hot(32, 100_000)), growth).shards == 64
    assert decide_on_throttle(_seen(_hot(64, 100_000)), growth).stop is GrowthStopReason.MAX_SHARDS


@given(observations, growths)
def test_counts_grow_within_the_bounds_and_one_step(
    seen: ScalingObservation, growth: Growth
) -> None:
    by_one = growth.policy is GrowthPolicy.INCREMENT and seen.any_count
    for decision in (decide_on_throttle(seen, growth), decide_ahead_of_demand(seen, growth)):
        for side, grown in ((seen.table, decision.shards), (seen.index, decision.index_shards)):
            if grown is None:
                continue
            assert side.shards < grown <= min(growth.max_step * side.shards, growth.max_shards)
            if by_one and side is seen.table:
                assert grown == side.shards + 1
            else:
                assert is_power_of_two(grown)


@given(observations, growths)
def test_what_throttles_either_grows_or_is_told_why_not(
    seen: ScalingObservation, growth: Growth
) -> None:
    decision = decide_on_throttle(seen, growth)
    if seen.table.throttled or seen.index.throttled:
        assert decision.grows != (decision.stop is not None)
    else:
        assert decision == ScalingDecision()


@given(observations, growths, st.floats(0, 100_000), st.floats(0, 100_000))
def test_more_demand_never_wants_fewer_shards(
    seen: ScalingObservation, growth: Growth, one: float, other: float
) -> None:
    for decide in (decide_on_throttle, decide_ahead_of_demand):
        after = [
            decide(replace(seen, table=replace(seen.table, demand=demand)), growth).shards
            or seen.table.shards
            for demand in sorted((one, other))
        ]
        assert after == sorted(after)


@given(counts, st.floats(0, 1_000_000), growths)
def test_growing_ahead_comes_to_rest_where_the_demand_fits(
    shards: int, demand: float, growth: Growth
) -> None:
    for _ in range(300):
        grown = decide_ahead_of_demand(
            _seen(SideObservation(shards=shards, demand=demand)), growth
        ).shards
        if grown is None:
            break
        shards = grown
    fits = growth.max_utilization is None or demand <= growth.max_utilization * supported_units(
        shards
    )
    assert fits or 2 * shards > growth.max_shards


@given(observations)
def test_a_policy_that_is_off_changes_nothing(seen: ScalingObservation) -> None:
    off = Growth(policy=None)
    assert decide_on_throttle(seen, off) == decide_ahead_of_demand(seen, off) == ScalingDecision()


@pytest.mark.parametrize(
    "wrong",
    [
        {"max_shards": 0}, {"max_shards": 257}, {"max_step": 1}, {"min_wait_seconds": 1.0},
        {"min_wait_seconds": -1.0}, {"max_utilization": 0.0}, {"max_utilization": 1.1},
    ],
)  # fmt: skip
def test_settings_that_could_not_work_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(ValueError, match=next(iter(wrong))):
        Growth(**wrong)  # type: ignore[arg-type]
