import statistics
from collections.abc import Mapping
from random import Random
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spillway.keys import USAGE_EXPIRES, USAGE_KEY, USAGE_SORT_KEY
from spillway.scaling.usage import (
    WINDOW,
    UsageSample,
    add_request,
    sampling_probability,
    steady_demand,
    window_of,
)
from tests.support.atomic_table import AtomicTables

T0: Final = 1_780_315_200  # the start of a window
request_sizes = st.integers(1, 1_000)
rates = st.just(0.0) | st.floats(0.1, 1_000_000)


@given(request_sizes, rates)
def test_usage_takes_two_requests_for_1000_events_at_most(events: int, rate: float) -> None:
    probability = sampling_probability(events, rate)
    assert 0 < probability <= 1
    assert probability / events <= 2 / 1_000


@given(request_sizes, st.floats(0.1, 1_000_000))
def test_a_busy_series_takes_20_updates_a_second_at_most(events: int, rate: float) -> None:
    requests_a_second = rate / events
    assert sampling_probability(events, rate) * requests_a_second <= 20.000001


@given(request_sizes, rates)
def test_a_sample_stands_for_those_not_taken(events: int, rate: float) -> None:
    """The expectation of what is added is what was written, whatever the probability."""
    probability = sampling_probability(events, rate)
    taken = UsageSample(3 * events, 2 * events, events).extrapolated(probability)
    expected = (3 * events, 2 * events, events)
    added = (taken.table_units, taken.index_units, taken.events)
    assert tuple(each * probability for each in added) == pytest.approx(expected)
    # Of a Bernoulli variable that is x / p with probability p: x^2 (1 - p) / p.
    variance = events**2 * (1 - probability) / probability
    assert taken.variance * probability == pytest.approx(variance)


def _recorded(sizes: list[int], rate: float, random: Random) -> UsageSample:
    total = UsageSample(0, 0, 0)
    for size in sizes:
        probability = sampling_probability(size, rate)
        if random.random() < probability:
            taken = UsageSample(4 * size, size, size).extrapolated(probability)
            total = UsageSample(
                total.table_units + taken.table_units,
                total.index_units + taken.index_units,
                total.events + taken.events,
                total.variance + taken.variance,
            )
    return total


@pytest.mark.parametrize("rate", [0.0, 20_000.0])
def test_sums_of_samples_are_right_on_average_and_know_their_variance(rate: float) -> None:
    random = Random(5)
    sizes = [random.choice((1, 5, 25, 25, 25, 200, 700)) for _ in range(400)]
    runs = [_recorded(sizes, rate, random) for _ in range(600)]
    wanted = sum(sizes)
    found = [run.events for run in runs]
    spread = statistics.stdev(found)
    assert statistics.mean(found) == pytest.approx(wanted, abs=4 * spread / 600**0.5)
    assert statistics.mean(run.table_units for run in runs) == pytest.approx(4 * wanted, rel=0.05)
    assert statistics.mean(run.variance for run in runs) == pytest.approx(spread**2, rel=0.2)


@given(st.floats(0, 4e9))
def test_every_time_lies_in_the_window_that_is_named_for_it(now: float) -> None:
    window = window_of(now)
    assert window % WINDOW == 0
    assert window <= now < window + WINDOW


def test_a_sample_goes_to_the_second_it_was_taken_in() -> None:
    tables = AtomicTables()
    for offset, units in ((0.0, 1.5), (0.9, 2.25), (9.99, 4.0), (10.0, 8.0)):
        answer = tables(
            "UpdateItem", add_request("u", "ORD", T0 + offset, UsageSample(units, 2, 3, 0.5))
        )
    (first, second) = sorted(tables.usage.values(), key=lambda item: item[USAGE_SORT_KEY]["N"])
    assert answer["Attributes"] == second
    assert _numbers(first) == {
        "t0": 3.75, "i0": 4, "e0": 6, "v0": 1, "t9": 4, "i9": 2, "e9": 3, "v9": 0.5,
        USAGE_SORT_KEY: T0, USAGE_EXPIRES: T0 + 2 * 86_400,
    }  # fmt: skip
    assert _numbers(second)["t0"] == 8
    assert first[USAGE_KEY] == {"S": "ORD"}


def _numbers(item: Mapping[str, Any]) -> dict[str, float]:
    return {name: float(value["N"]) for name, value in item.items() if "N" in value}


def _windows(seconds: Mapping[int, tuple[float, float]]) -> dict[int, dict[str, Any]]:
    """Return windows with (events, variance) at seconds after T0; an event is 4 units, 2 in the index."""
    found: dict[int, dict[str, Any]] = {}
    for second, (events, variance) in seconds.items():
        window = window_of(T0 + second)
        slot = T0 + second - window
        item = found.setdefault(window, {})
        values = {"t": 4 * events, "i": 2 * events, "e": events, "v": variance}
        item |= {f"{name}{slot}": {"N": str(value)} for name, value in values.items()}
    return found


SURE: Final = dict.fromkeys(range(-10, 10), (100.0, 0.0))


@pytest.mark.parametrize(
    ("seconds", "now", "least", "rate"),
    [
        (SURE, 5.0, 1, 100),  # the second before
        (SURE, 5.4, 3, 100),
        (SURE | {5: (50.0, 0.0)}, 5.5, 1, 100),  # half of the second under way counts
        (SURE | {5: (50.0, 0.0)}, 5.49, 1, 100),  # less does not
        (SURE | {4: (400.0, 0.0)}, 5.2, 1, 400),
        (SURE | {4: (400.0, 0.0)}, 5.2, 3, 200),
        ({4: (400.0, 0.0)}, 5.2, 4, 100),  # nothing recorded is nothing wanted
        (SURE | {-1: (700.0, 0.0)}, 0.2, 1, 700),  # in the window before
        (SURE, 0.2, 3, 100),  # over the edge of a window
    ],
)
def test_rates_are_those_of_the_last_seconds(
    seconds: Mapping[int, tuple[float, float]], now: float, least: int, rate: float
) -> None:
    demand = steady_demand(T0 + now, _windows(seconds), least)
    assert demand is not None
    assert demand.events == pytest.approx(rate)
    assert (demand.table_units, demand.index_units) == pytest.approx((4 * rate, 2 * rate))


def test_rough_samples_are_averaged_over_as_many_seconds_as_it_takes() -> None:
    """One second is known to 50 %, two to 35.4 %, three to 29 %."""
    rough = dict.fromkeys(range(10), (100.0, 2_500.0)) | {5: (400.0, 2_500.0)}
    demand = steady_demand(T0 + 8.0, _windows(rough), 1)
    assert demand is not None
    assert demand.events == pytest.approx(200)


@pytest.mark.parametrize(
    ("seconds", "now", "least"),
    [
        ({}, 5.0, 1),
        (dict.fromkeys(range(-10, 10), (100.0, 90_000.0)), 8.0, 1),  # not sure in 18 seconds
        ({4: (100.0, 90_000.0)}, 5.0, 1),
        ({0: (100.0, 0.0), 1: (100.0, 0.0)}, 2.0, 3),  # the window is too young
    ],
)
def test_too_few_samples_are_no_rate(
    seconds: Mapping[int, tuple[float, float]], now: float, least: int
) -> None:
    assert steady_demand(T0 + now, _windows(seconds), least) is None
