from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynamoheat.autoscaling import CapacityTracker, TargetTrackingPolicy

POLICY = TargetTrackingPolicy(min_capacity=5, max_capacity=10_000)
CONSUMED = st.lists(st.floats(0, 20_000), min_size=1, max_size=120)


def followed(
    consumed: Sequence[float], provisioned: float = 100.0, policy: TargetTrackingPolicy = POLICY
) -> list[float]:
    """Return the capacity after each minute."""
    tracker, capacities = CapacityTracker(policy), []
    for minute, figure in enumerate(consumed):
        provisioned = tracker.update(figure, provisioned, 60.0 * (minute + 1))
        capacities.append(provisioned)
    return capacities


def test_capacity_rises_after_two_minutes_above_the_target_and_meets_it() -> None:
    assert followed([71, 71]) == [100, 102]
    assert followed([69, 90, 90]) == [100, 100, 129]
    assert followed([70, 70, 70]) == [100, 100, 100]


def test_spikes_more_than_a_minute_apart_raise_nothing() -> None:
    assert followed([95, 10] * 30)[-1] == 100


def test_capacity_falls_after_fifteen_minutes_below_fifty_percent() -> None:
    assert followed([49] * 14) == [100] * 14
    assert followed([49] * 15)[-1] == 70
    assert followed([50] * 60)[-1] == 100
    assert followed([49] * 14 + [51] + [49] * 14)[-1] == 100


def test_it_falls_to_where_the_highest_of_the_fifteen_minutes_meets_the_target() -> None:
    assert followed([7] * 14 + [35])[-1] == 50


def test_an_idle_capacity_never_falls() -> None:
    assert followed([0] * 300)[-1] == 100
    assert followed([10] * 14 + [0] + [10] * 14)[-1] == 100


def test_the_margin_and_the_target_move_both_alarms() -> None:
    eager = replace(POLICY, target=0.9)
    assert followed([89] * 5, policy=eager)[-1] == 100
    assert followed([69] * 15, policy=eager)[-1] == 77
    assert followed([21, 21], policy=replace(POLICY, target=0.2))[-1] == 105


def test_within_its_cooldown_a_rise_is_followed_by_larger_ones_only() -> None:
    slow = replace(POLICY, scale_out_cooldown_seconds=600)
    assert followed([80, 80, 90, 90], policy=slow) == [100, 115, 115, 115]
    assert followed([80, 80, 115, 115], policy=slow)[-1] == 165
    assert followed([80, 80, *[90] * 12], policy=slow)[-1] == 129


def test_a_fall_waits_for_the_cooldown_of_the_last_unless_a_rise_ends_it() -> None:
    slow = replace(POLICY, scale_in_cooldown_seconds=3_600)
    falls = followed([40] * 15 + [20] * 30, policy=slow)
    assert (falls[14], falls[-1]) == (58, 58)
    assert followed([40] * 15 + [20] * 75, policy=slow)[-1] == 29
    ended = followed([40] * 15 + [50] * 2 + [20] * 15, policy=slow)
    assert (ended[16], ended[-1]) == (72, 29)


def test_capacity_does_not_fall_where_scaling_in_is_disabled() -> None:
    assert followed([1] * 60, policy=replace(POLICY, scales_in=False))[-1] == 100


def test_a_policy_outside_of_what_aws_takes_is_refused() -> None:
    for wrong in (
        {"target": 0.19},
        {"target": 0.91},
        {"min_capacity": 0},
        {"min_capacity": 20_000},
    ):
        with pytest.raises(ValueError, match=r"target|min_capacity"):
            replace(POLICY, **wrong)


@given(consumed=CONSUMED, provisioned=st.integers(5, 10_000))
def test_capacities_are_whole_and_within_the_bounds(
    consumed: list[float], provisioned: int
) -> None:
    for capacity in followed(consumed, provisioned):
        assert 5 <= capacity <= 10_000
        assert capacity == int(capacity)


@given(consumed=CONSUMED, provisioned=st.integers(5, 10_000))
def test_it_rises_only_above_the_target_and_falls_only_below_the_margin(
    consumed: list[float], provisioned: int
) -> None:
    before = float(provisioned)
    for figure, after in zip(consumed, followed(consumed, provisioned), strict=True):
        if after > before:
            assert figure > 0.7 * before
        if after < before:
            assert figure < 0.5 * before
        before = after


@given(figure=st.floats(5, 6_900), provisioned=st.integers(5, 10_000))
def test_a_steady_load_ends_between_the_two_alarms_and_stays(
    figure: float, provisioned: int
) -> None:
    capacities = followed([figure] * 60, provisioned)
    settled = capacities[-1]
    assert capacities[-20:] == [settled] * 20
    assert settled == 5 or 0.5 * settled - 1e-6 <= figure
    assert figure <= 0.7 * settled + 1e-6


@given(consumed=CONSUMED, more=st.floats(1, 3))
def test_more_consumption_never_ends_in_less_capacity_while_it_only_rises(
    consumed: list[float], more: float
) -> None:
    rising = replace(POLICY, scales_in=False)
    less = followed(consumed, policy=rising)[-1]
    assert followed([figure * more for figure in consumed], policy=rising)[-1] >= less
