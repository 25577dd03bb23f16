import statistics
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spillway.settings import Growth

below_one = st.floats(0, 1, exclude_max=True)
bounds = st.tuples(st.floats(0, 100), st.floats(0, 100)).map(sorted)


@given(below_one, bounds, st.floats(0, 50))
def test_waits_lie_within_their_bounds(random: float, given: list[float], shape: float) -> None:
    growth = Growth(min_wait_seconds=given[0], max_wait_seconds=given[1], wait_shape=shape)
    assert given[0] <= growth.wait(random) <= given[1] * (1 + 1e-12)


@given(below_one, below_one, st.floats(0, 50))
def test_waits_rise_with_the_number_that_is_drawn(one: float, other: float, shape: float) -> None:
    waits = [Growth(wait_shape=shape).wait(each) for each in sorted((one, other))]
    assert waits == sorted(waits)


def _who_acts(growth: Growth, writers: int, seen_after: float, seed: int) -> int:
    """Return how many writers act before they can see what the first one did."""
    random = Random(seed)
    waits = sorted(growth.wait(random.random()) for _ in range(writers))
    return sum(wait <= waits[0] + seen_after for wait in waits)


@pytest.mark.parametrize("writers", [20, 200, 1_000])
def test_of_many_writers_about_one_acts_before_the_others_see_it(writers: int) -> None:
    acting = [_who_acts(Growth(), writers, 0.025, seed) for seed in range(300)]
    assert statistics.mean(acting) <= 2
    assert sorted(acting)[285] <= 4


def test_even_waits_would_let_many_act() -> None:
    even = Growth(wait_shape=0)
    assert statistics.mean(_who_acts(even, 200, 0.025, seed) for seed in range(50)) > 8
