import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynamoheat.autoscaling import Decreases

HOUR = 3600.0
DAY = 24 * HOUR


def made(attempts: list[float], decreases: Decreases | None = None) -> list[float]:
    """Try to lower a capacity at each time and return when it was allowed."""
    tried = decreases or Decreases()
    done = []
    for now in attempts:
        if tried.allowed(now):
            tried.record(now)
            done.append(now)
    return done


def test_four_decreases_are_allowed_at_once_and_the_fifth_an_hour_later() -> None:
    at = made([60.0 * minute for minute in range(200)])
    assert at[:6] == [0, 60, 120, 180, 180 + HOUR, 180 + 2 * HOUR]


def test_a_day_has_27_decreases_and_no_more() -> None:
    at_once = made([0.0] * 9)
    assert len(at_once) == 4
    assert len(made([60.0 * minute // 60 * 60 for minute in range(1440)])) <= 27
    hourly = [0.0, 0.0, 0.0, *[hour * HOUR for hour in range(24)]]
    assert len(made(sorted(hourly))) == 27


def test_the_four_must_come_within_an_hour_of_the_first() -> None:
    assert made([0, 10, HOUR, HOUR + 1, HOUR + 10]) == [0, 10, HOUR + 10]


def test_a_new_day_starts_anew_at_midnight_in_utc() -> None:
    assert made([DAY - 2, DAY - 1, DAY, DAY, DAY, DAY, DAY]) == [DAY - 2, DAY - 1, *[DAY] * 4]


def test_a_decrease_that_is_not_allowed_cannot_be_recorded() -> None:
    decreases = Decreases()
    made([0.0] * 4, decreases)
    with pytest.raises(ValueError, match="too often"):
        decreases.record(1.0)
    assert decreases.made_today(1.0) == 4
    assert decreases.made_today(DAY) == 0


@given(
    attempts=st.lists(st.floats(0, 3 * DAY), max_size=400).map(sorted),
    hour=st.sampled_from([3600.0, 60.0]),
)
def test_however_it_is_tried_a_day_has_at_most_27_and_later_ones_lie_an_hour_apart(
    attempts: list[float], hour: float
) -> None:
    at = made([now * hour / HOUR for now in attempts], Decreases(hour))
    for day in range(3):
        today = [now for now in at if day * 24 * hour <= now < (day + 1) * 24 * hour]
        assert len(today) <= 27
        first = [now for now in today if now < today[0] + hour]
        assert len(first) <= 4
        later = [before for before in today if before not in first]
        for before, after in zip([first[-1], *later] if later else [], later, strict=False):
            assert after >= before + hour


@given(attempts=st.lists(st.floats(0, DAY), max_size=60).map(sorted))
def test_the_first_four_within_an_hour_of_a_days_first_are_always_allowed(
    attempts: list[float],
) -> None:
    early = [now for now in attempts if now < attempts[0] + HOUR][:4]
    assert made(attempts)[: len(early)] == early
