from dataclasses import replace
from random import Random
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spillway import Settings
from spillway.control.shrinking import ShrinkSettings, decide_shrink
from spillway.layouts.model import Layout
from spillway.layouts.transitions import begin_epoch, close_retired, first_layout
from spillway.scaling.policy import (
    ScalingDecision,
    ScalingObservation,
    SideObservation,
    decide_ahead_of_demand,
    shards_needed,
)
from spillway.scaling.usage import WINDOW, UsageSample, UsageWindow, peak_demand
from spillway.settings import Growth
from spillway.sharding import is_power_of_two
from tests.scaling.days import DAY, HOUR, recorded

NOW: Final = 1_780_315_200


def _layout(*counts: int, changed: float = 100 * HOUR, index: int | None = None) -> Layout:
    """Return a layout that had these counts in turn, and was changed last so many seconds ago."""
    settings = Settings(shards=counts[0], index_shards=index or counts[0])
    layout = first_layout("ORD", settings, NOW - changed)
    for count in counts[1:]:
        layout = begin_epoch(layout, settings, NOW - changed, shards=count, index_shards=count)
    return replace(close_retired(layout, NOW - changed), last_updated=NOW - changed)


def _steady(rate: float, hours: float = 48, *, index: float | None = None) -> list[UsageWindow]:
    """Return windows of an exact rate up to now."""
    units = rate * WINDOW
    usage = UsageSample(units, units if index is None else index * WINDOW, units)
    return [UsageWindow(start, usage) for start in range(NOW - round(hours * HOUR), NOW, WINDOW)]


def _decide(
    layout: Layout, windows: list[UsageWindow], growth: Growth | None = None, **settings: Any
) -> ScalingDecision:
    return decide_shrink(layout, windows, NOW, ShrinkSettings(**settings), growth or Growth())


@pytest.mark.parametrize(
    ("shards", "rate", "fewer"),
    [
        (64, 10_000, None), (64, 5_600, None), (64, 5_599, 32), (64, 2_799, 16), (64, 100, 16),
        (16, 100, 4), (4, 100, 1), (2, 100, 1), (1, 0, None), (256, 0, 64), (8, 1_300, None),
    ],
)  # fmt: skip
def test_a_layout_gives_up_what_its_peak_does_not_need_with_the_headroom_of_growth(
    shards: int, rate: float, fewer: int | None
) -> None:
    decision = _decide(_layout(shards), _steady(rate))
    assert (decision.shards, decision.index_shards) == (fewer, fewer)
    assert decision.stop is None


def test_table_and_index_shrink_each_by_its_own_usage() -> None:
    layout = _layout(64, index=32)
    assert _decide(layout, _steady(9_000, index=100)) == ScalingDecision(index_shards=8)
    assert _decide(layout, _steady(100, index=5_000)) == ScalingDecision(shards=16)


def test_one_high_window_within_the_remembered_time_keeps_the_shards() -> None:
    windows = _steady(100)
    for age, fewer in ((35.9, None), (36.1, 16)):
        spike = UsageWindow(
            NOW - int(age * HOUR) // WINDOW * WINDOW, UsageSample(90_000, 90_000, 90_000)
        )
        seen = sorted([*windows, spike], key=lambda each: each.start)
        assert _decide(_layout(64), seen).shards == fewer


@pytest.mark.parametrize(
    ("counts", "hours", "fewer"),
    [
        ((64,), 35.9, None),  # a new series
        ((64,), 36.1, 16),
        ((8, 64), 35.9, None),  # a growth, or a count set by hand ahead of a peak
        ((8, 64), 36.1, 16),
        ((256, 64), 5.9, None),  # a step down
        ((256, 64), 6.1, 16),
    ],
)
def test_growth_is_kept_for_a_whole_window_and_steps_down_rest_between(
    counts: tuple[int, ...], hours: float, fewer: int | None
) -> None:
    layout = _layout(*counts, changed=hours * HOUR)
    assert _decide(layout, _steady(100)).shards == fewer


@pytest.mark.parametrize(
    ("max_factor_below_peak", "fewer"), [(1, None), (2, 32), (4, 16), (16, 16)]
)
def test_a_short_window_goes_down_to_a_part_of_what_the_peak_needs(
    max_factor_below_peak: int, fewer: int | None
) -> None:
    peak = UsageWindow(NOW - 20 * HOUR, UsageSample(100_000, 100_000, 100_000))
    windows = [peak, *_steady(100, hours=10)]
    decision = _decide(
        _layout(64), windows, window_seconds=3.0 * HOUR, max_factor_below_peak=max_factor_below_peak
    )
    assert decision.shards == fewer


def test_counts_stay_above_the_min_that_is_set() -> None:
    quiet = _steady(0.1)
    assert _decide(_layout(64), quiet, min_shards=32).shards == 32
    assert _decide(_layout(64), quiet, min_shards=33).shards is None
    assert _decide(_layout(64), quiet, min_index_shards=64) == ScalingDecision(shards=16)


def test_what_growth_by_throttling_has_reached_keeps_the_same_headroom() -> None:
    growth = Growth(max_utilization=None)
    assert _decide(_layout(64), _steady(5_600), growth).shards is None
    assert _decide(_layout(64), _steady(4_000), Growth(max_utilization=1.0)).shards == 16


powers = st.integers(0, 8).map(lambda power: 2**power)


@given(powers | st.integers(1, 256), st.floats(0, 50_000), st.integers(2, 16))
def test_a_step_goes_down_to_a_power_of_two_that_growth_would_not_undo(
    shards: int, rate: float, max_step: int
) -> None:
    layout = _layout(64)
    current = replace(layout.current, shards=shards)
    layout = replace(layout, epochs=(*layout.epochs[:-1], current))
    fewer = _decide(layout, _steady(rate, hours=0.1), max_step=max_step).shards
    if fewer is None:
        assert shards <= max(1, shards_needed(rate / 0.7))
        return
    assert is_power_of_two(fewer)
    assert shards / max_step <= fewer < shards
    side = SideObservation(shards=fewer, demand=rate)
    assert (
        decide_ahead_of_demand(ScalingObservation(table=side, index=side), Growth())
        == ScalingDecision()
    )


@given(powers, st.floats(0, 20_000), st.floats(0, 20_000))
def test_more_usage_never_keeps_fewer_shards(shards: int, one: float, other: float) -> None:
    kept = [
        _decide(_layout(shards), _steady(rate, hours=0.1)).shards or shards
        for rate in sorted((one, other))
    ]
    assert kept == sorted(kept)


@pytest.mark.parametrize(
    "wrong",
    [{"max_step": 1}, {"min_shards": 0}, {"min_index_shards": 0}, {"window_seconds": 0.0},
     {"window_seconds": 49.0 * HOUR}, {"peak_window_seconds": 49.0 * HOUR}, {"max_factor_below_peak": 0}],
)  # fmt: skip
def test_settings_that_could_not_work_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(ValueError, match=r"max_step|one shard|window"):
        ShrinkSettings(**wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("rate", "units"), [(1.0, 1), (1.0, 400), (20.0, 4), (300.0, 1), (5_000.0, 2)]
)
def test_the_peak_of_steady_traffic_is_its_rate_however_sparse_its_samples(
    rate: float, units: float
) -> None:
    random = Random(3)
    windows = [
        window
        for start in range(NOW - DAY, NOW, WINDOW)
        if (window := recorded(start, rate * WINDOW, random, units=units)) is not None
    ]
    peak = peak_demand(windows)
    # An hour of one event a second is known by seven samples, the busiest of 24 by up to twice
    # that.
    assert 0.8 * rate <= peak.events <= (2.5 if rate < 10 else 1.6) * rate
    assert peak.table_units == pytest.approx(units * peak.events)


def test_a_burst_after_quiet_is_a_peak_of_its_own() -> None:
    quiet = [UsageWindow(NOW + n * 600, UsageSample(500, 500, 500, 240_000)) for n in range(100)]
    burst = UsageWindow(NOW + 60_000, UsageSample(40_000, 20_000, 10_000, 500_000))
    peak = peak_demand([*quiet, burst])
    assert (peak.table_units, peak.index_units, peak.events) == (4_000, 2_000, 1_000)


def test_nothing_recorded_is_no_usage() -> None:
    assert peak_demand([]).events == 0


def test_one_sample_of_a_slow_series_is_spread_over_an_hour() -> None:
    (peak,) = {peak_demand([UsageWindow(NOW, UsageSample(200_000, 500, 500, 249_500))])}
    assert peak.events == pytest.approx(500 / 3_600)
