"""Statistics of samples, and samples by periods."""

import statistics
from math import isclose

import pytest
from hypothesis import given
from hypothesis import strategies as st

from local.cloudwatch.metric_store import (
    MINUTE,
    STATISTICS,
    Metric,
    MetricStore,
    MetricTime,
    PeriodGrid,
    Samples,
)

VALUES = st.lists(st.integers(0, 1000).map(lambda value: value / 8), min_size=2, max_size=50)
METRIC = Metric("N", "M", frozenset({("A", "1")}))


@given(VALUES)
def test_percentiles_interpolate_between_the_nearest_ranks(values: list[float]) -> None:
    samples = Samples.of(*values)
    wanted = statistics.quantiles(values, n=100, method="inclusive")
    for share in (1, 25, 50, 90, 99):
        found = samples.statistic(f"p{share}")
        assert found is not None
        assert isclose(found, wanted[share - 1], abs_tol=1e-9)
    assert samples.statistic("p0") == min(values)
    assert samples.statistic("p100") == max(values)


@given(VALUES, VALUES)
def test_merged_samples_are_samples_of_all(left: list[float], right: list[float]) -> None:
    merged = Samples.of(*left).merge(Samples.of(*right))
    whole = Samples.of(*left, *right)
    for name in (*STATISTICS, "p50", "p99.9"):
        assert merged.statistic(name) == pytest.approx(whole.statistic(name))


def test_a_statistic_set_has_statistics_and_no_percentile() -> None:
    samples = Samples.of_set(4, 10, 1, 5)
    found = {name: samples.statistic(name) for name in (*STATISTICS, "p50")}
    assert found == {
        "SampleCount": 4, "Sum": 10, "Average": 2.5, "Minimum": 1, "Maximum": 5, "p50": None,
    }  # fmt: skip


@pytest.mark.parametrize("figures", [(4, 12, 3, 3), (1, 3, 3, 3)])
def test_a_statistic_set_of_one_value_has_percentiles(figures: tuple[float, ...]) -> None:
    assert Samples.of_set(*figures).statistic("p99") == 3


def test_values_below_zero_have_no_percentiles() -> None:
    assert Samples.of(-1, 2).statistic("p50") is None


def test_a_thousand_values_and_more_stay_few_and_nearly_exact() -> None:
    samples = Samples.of(*(1000 + at / 7 for at in range(20_000)))
    assert samples.values is not None
    assert len(samples.values) < 5000
    assert samples.statistic("p50") == pytest.approx(1000 + 10_000 / 7, rel=1e-3)
    assert samples.statistic("SampleCount") == 20_000


@pytest.mark.parametrize("name", ["tm99", "p101", "p", "sum", ""])
def test_unknown_statistics_are_none(name: str) -> None:
    assert Samples.of(1, 2).statistic(name) is None


@given(
    st.lists(st.tuples(st.integers(0, 7199), st.integers(1, 9)), max_size=60),
    st.sampled_from([60, 120, 300]),
    st.sampled_from([1, MINUTE]),
)
def test_periods_lose_and_double_no_sample(
    data: list[tuple[int, int]], period: int, resolution: int
) -> None:
    store = MetricStore()
    for at, value in data:
        store.put(METRIC, at, Samples.of(value), resolution=resolution)
    grid = PeriodGrid(0, period, 7200 // period)
    found = store.values(METRIC, "Sum", grid)
    wanted = [
        sum(value for at, value in data if start <= at < start + period) for start in grid.starts
    ]
    assert [value or 0 for value in found] == wanted


def test_seconds_are_told_apart_only_at_high_resolution() -> None:
    store = MetricStore()
    store.put(METRIC, 75, Samples.of(1), resolution=1)
    store.put(Metric("N", "coarse"), 75, Samples.of(1))
    grid = PeriodGrid(60, 10, 6)
    assert store.values(METRIC, "Sum", grid) == [None, 1, None, None, None, None]
    assert store.values(Metric("N", "coarse"), "Sum", grid) == [1, *[None] * 5]


def test_another_set_of_dimensions_is_another_metric() -> None:
    store = MetricStore()
    store.put(METRIC, 0, Samples.of(1))
    grid = PeriodGrid(0, 60, 1)
    others = [frozenset({("A", "2")}), frozenset(), METRIC.dimensions | {("B", "1")}]
    assert [store.values(Metric("N", "M", each), "Sum", grid) for each in others] == [[None]] * 3


def test_units_are_read_apart_or_together() -> None:
    store = MetricStore()
    store.put(METRIC, 0, Samples.of(1), unit="Count")
    store.put(METRIC, 0, Samples.of(2), unit="Bytes")
    grid = PeriodGrid(0, 60, 1)
    assert store.values(METRIC, "Sum", grid) == [3]
    assert store.values(METRIC, "Sum", grid, "Bytes") == [2]


def test_the_oldest_minutes_give_way() -> None:
    store = MetricStore()
    for minute in range(10_001):
        store.put(METRIC, minute * MINUTE, Samples.of(1))
    assert store.values(METRIC, "Sum", PeriodGrid(0, MINUTE, 2)) == [None, 1]


@given(st.floats(0.5, 600), st.integers(0, 2**33))
def test_metric_time_goes_to_the_wall_and_back(scale: float, seconds: int) -> None:
    time = MetricTime(scale)
    assert time.seconds(time.wall(seconds)) == seconds
    assert MetricTime(60).seconds(1.5) == 90
