"""Recorded days replayed: the planner shrinks, the writers grow, and nothing is short of shards for it."""

from typing import Final

import pytest

from spillway.control.shrinking import ShrinkSettings
from tests.scaling.days import DAY, HOUR, Rate, Replay, daily

pytestmark = pytest.mark.slow

MAX_CHANGES: Final = 4


def _weekdays(seconds: float) -> float:
    busiest = 9_000 if seconds // DAY % 7 < 5 else 600
    return daily(500, busiest, peak_at=12 * HOUR)(seconds)


def _with_job_at(hours: float, *, late: float) -> Rate:
    """Return a rate with half an hour of ten times as much, a little later every day."""

    def rate(seconds: float) -> float:
        day, of_day = divmod(seconds, DAY)
        begin = hours * HOUR + late * day
        return 6_000.0 if begin <= of_day < begin + HOUR / 2 else 600.0

    return rate


def _fading(seconds: float) -> float:
    return daily(1_000, 8_000)(seconds) / 2 ** (seconds // DAY)


def _with_one_spike(seconds: float) -> float:
    spike = DAY + 9 * HOUR <= seconds < DAY + 9 * HOUR + 600
    return 20_000.0 if spike else daily(400, 3_000)(seconds)


def test_a_daily_peak_is_kept_and_costs_no_changes() -> None:
    replay = Replay(daily(400, 9_000), ShrinkSettings(), shards=8).run(4)
    assert replay.short.total() == 0
    assert replay.changes[0] <= MAX_CHANGES  # to what the first day needs
    assert [replay.changes[day] for day in range(1, 4)] == [0] * 3
    assert replay.layout.current.shards == 64


@pytest.mark.parametrize("seed", range(2))
def test_a_short_window_follows_the_day_in_four_changes(seed: int) -> None:
    follow = ShrinkSettings(window_seconds=3 * HOUR, cooldown_seconds=3 * HOUR)
    replay = Replay(daily(100, 9_500), follow, shards=64, seed=seed, every=2 * HOUR).run(3)
    assert replay.short.total() == 0
    later = range(1, 3)
    assert all(1 < replay.changes[day] <= MAX_CHANGES for day in later)
    assert all(min(replay.counts[24 * day : 24 * day + 24]) <= 32 for day in later)
    assert all(max(replay.counts[24 * day : 24 * day + 24]) == 64 for day in later)


def test_weekends_give_shards_up_and_mondays_take_them_back() -> None:
    replay = Replay(_weekdays, ShrinkSettings(), shards=64).run(8)
    assert replay.short.total() == 0
    assert max(replay.changes.values()) <= MAX_CHANGES
    assert max(replay.counts[: 4 * 24]) == 64
    assert min(replay.counts[5 * 24 : 7 * 24]) < 64
    assert replay.counts[7 * 24 + 12] == 64


def test_a_daily_job_that_comes_late_finds_its_shards() -> None:
    replay = Replay(_with_job_at(2, late=1_500), ShrinkSettings()).run(4)
    assert [replay.short[day] for day in range(1, 4)] == [0] * 3
    assert max(replay.changes.values()) <= MAX_CHANGES


def test_the_same_job_would_be_short_if_less_than_a_day_were_remembered() -> None:
    forgetful = ShrinkSettings(window_seconds=20 * HOUR)
    replay = Replay(_with_job_at(2, late=1_500), forgetful).run(4)
    assert sum(replay.short[day] for day in range(1, 4)) > 0


def test_a_spike_is_forgotten_after_the_window_step_by_step() -> None:
    replay = Replay(_with_one_spike, ShrinkSettings(), shards=16).run(4)
    assert max(replay.changes.values()) <= MAX_CHANGES
    assert max(replay.counts) == 128
    assert min(replay.counts[33 : 33 + 36]) == 128
    assert replay.counts[-1] == 32
    # Two windows: the spike comes all at once, and a step is of eight times at most.
    assert replay.short.total() <= 2


def test_traffic_that_fades_gives_up_its_shards_day_by_day() -> None:
    replay = Replay(_fading, ShrinkSettings(), shards=64).run(6)
    assert replay.short.total() == 0
    assert replay.counts == sorted(replay.counts, reverse=True)
    assert replay.layout.current.shards <= 8
    assert max(replay.changes.values()) <= 2


def test_an_idle_series_comes_down_to_one_shard() -> None:
    replay = Replay(lambda _: 0.0, ShrinkSettings(), shards=256, every=HOUR).run(4)
    assert replay.layout.current.shards == 1
    # After the window 64, then 16, 4 and 1, each when the cooldown is over and the planner runs
    # again.
    assert 36 + 3 * 6 <= replay.counts.index(1) <= 36 + 3 * 7


@pytest.mark.parametrize("rate", [100.0, 690.0, 2_790.0])
def test_no_step_is_undone_while_the_rate_stays_as_it_is(rate: float) -> None:
    replay = Replay(lambda _: rate, ShrinkSettings(), noise=0.0, shards=256).run(3)
    assert replay.counts == sorted(replay.counts, reverse=True)
    assert replay.layout.current.shards < 64
