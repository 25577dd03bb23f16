from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynamoheat.buckets import TokenBucket
from dynamoheat.studies.generations import Assumptions, GlobalAdmission

ASSUMED = Assumptions()


def offered(
    routers: GlobalAdmission, centre: TokenBucket, weights: list[int], rate: int, seconds: int
) -> list[int]:
    """Offer single units through routers drawn by weight; return how many of each second passed."""
    random = Random(3)
    chosen = random.choices(range(len(weights)), weights, k=rate * seconds)
    passed = [0] * seconds
    for number, router in enumerate(chosen):
        now = number / rate
        if routers.admits(router, 1.0, now):
            routers.spend(router, 1.0)
            centre.fill(now)
            centre.tokens -= 1
            passed[number // rate] += 1
    return passed


def gate(rate: float, saved: float = 0.0) -> tuple[GlobalAdmission, TokenBucket]:
    centre = TokenBucket(rate, rate * 300, rate + saved, 0.0)
    return GlobalAdmission(centre, ASSUMED), centre


@pytest.mark.parametrize(
    "weights", [[1] * 8, [1, 0, 0, 0, 0, 0, 0, 0], [70, 10, 10, 5, 2, 1, 1, 1]]
)
def test_the_tables_whole_rate_passes_however_traffic_falls_on_the_routers(
    weights: list[int],
) -> None:
    passed = offered(*gate(500), weights, 1_000, 60)
    assert sum(passed[20:]) / 40 == pytest.approx(500, rel=0.05)


def test_what_the_table_has_saved_passes_at_once() -> None:
    assert offered(*gate(500, 100_000), [1] * 8, 2_000, 20) == [2_000] * 20


def test_an_idle_routers_tokens_come_back_when_they_expire() -> None:
    routers, centre = gate(0.0)
    centre.tokens = centre.depth = 100.0
    for step in range(5):  # 10 a second, so it takes 20 and goes idle
        assert routers.admits(0, 5.0, step / 2)
        routers.spend(0, 5.0)
        centre.tokens -= 5.0
    held, left = routers.outstanding(2.0), centre.tokens
    assert held > 0
    assert not routers.admits(1, left - held + 1, 2.0)
    later = 2.0 + 2 * ASSUMED.token_lifetime
    assert routers.outstanding(later) == 0
    assert routers.admits(1, left, later)


def test_a_router_that_got_less_than_it_asked_for_waits_before_it_asks_again() -> None:
    routers, centre = gate(0.0)
    centre.tokens, centre.depth = 1.0, 1e9
    assert not routers.admits(0, 10.0, 0.0)
    centre.tokens = 1e6
    assert not routers.admits(0, 10.0, ASSUMED.router_interval - 0.1)
    assert routers.admits(0, 10.0, ASSUMED.router_interval)


@given(
    steps=st.lists(st.tuples(st.floats(0, 5), st.integers(0, 7), st.floats(0.5, 50)), max_size=200),
    rate=st.floats(0, 200),
)
def test_routers_never_hold_or_spend_more_than_the_table_has(
    steps: list[tuple[float, int, float]], rate: float
) -> None:
    centre = TokenBucket(rate, 300 * rate, rate, 0.0)
    routers = GlobalAdmission(centre, ASSUMED)
    now = 0.0
    for pause, router, units in steps:
        now += pause
        if routers.admits(router, units, now):
            routers.spend(router, units)
            centre.fill(now)
            centre.tokens -= units
        assert routers.outstanding(now) <= centre.fill(now) + 1e-6
        assert centre.tokens >= -1e-6
