import statistics
from collections.abc import Callable, Mapping
from random import Random
from typing import Any, Final

import pytest

from spillway.dynamodb.port import ThrottledError
from spillway.scaling.usage import UsageRecorder, UsageSample, WriteDemand
from tests.support.atomic_table import AtomicTables
from tests.support.fakes import FakeClock
from tests.support.faults import throttled_call

USAGE: Final = "usage"


class Fleet:
    """Recorders of several processes on one usage table."""

    def __init__(self, processes: int, seed: int = 1) -> None:
        self.tables = AtomicTables()
        self.clock = FakeClock()
        self.random = Random(seed)
        self.recorders = [self.recorder(self.random.random) for _ in range(processes)]

    def recorder(self, random: Callable[[], float]) -> UsageRecorder:
        return UsageRecorder(self.tables, USAGE, self.clock.now, random)

    def write(self, seconds: float, rate: float, size: int) -> list[WriteDemand]:
        """Record requests of one size in turn at a rate; return the rates that came back."""
        seen = []
        for n in range(round(seconds * rate / size)):
            self.clock.seconds += size / rate
            recorder = self.recorders[n % len(self.recorders)]
            demand = recorder.record("ORD", size, lambda: UsageSample(4 * size, 2 * size, size))
            seen += [demand] if demand is not None else []
        return seen

    @property
    def updates(self) -> int:
        return self.tables.counts["UpdateItem"]


@pytest.mark.parametrize("size", [1, 7, 25, 400, 499, 500, 501, 1_000])
def test_recording_takes_two_requests_for_1000_events_on_average(size: int) -> None:
    fleet = Fleet(3)
    fleet.write(40, 2_500, size)
    allowed = 2 * 2_500 * 40 / 1_000
    assert fleet.updates <= allowed + 3 * allowed**0.5


@pytest.mark.parametrize("processes", [1, 20, 200])
def test_a_busy_series_takes_about_20_updates_a_second(processes: int) -> None:
    fleet = Fleet(processes)
    fleet.write(15, 50_000, 100)  # until all have heard of the rate
    before = fleet.updates
    fleet.write(30, 50_000, 100)
    assert 10 <= (fleet.updates - before) / 30 <= 30


@pytest.mark.parametrize(
    ("rate", "size", "error"),
    [(2_000, 10, 0.25), (10_000, 25, 0.15), (40_000, 600, 0.1)],
)
def test_what_comes_back_is_the_rate_of_the_whole_fleet(
    rate: float, size: int, error: float
) -> None:
    """A little high where samples are few: what comes back always comes with a sample."""
    seen = Fleet(20).write(60, rate, size)
    assert len(seen) > 20
    assert statistics.mean(each.events for each in seen) == pytest.approx(rate, rel=error)
    units = statistics.mean(each.table_units for each in seen)
    assert units == pytest.approx(4 * rate, rel=error)
    assert all(each.index_units == pytest.approx(each.table_units / 2) for each in seen)


def test_slow_writers_of_a_busy_series_count_too() -> None:
    fleet = Fleet(1_000)
    seen = fleet.write(20, 20_000, 1)
    assert statistics.mean(each.events for each in seen) == pytest.approx(20_000, rel=0.15)


def test_the_rate_can_be_asked_for_when_something_throttles() -> None:
    fleet = Fleet(2)
    fleet.write(5, 3_000, 600)
    before = dict(fleet.tables.counts)
    demand = fleet.recorders[0].demand("ORD")
    assert demand is not None
    assert demand.events == pytest.approx(3_000, rel=0.25)
    assert fleet.tables.counts["GetItem"] - before.get("GetItem", 0) == 2
    assert fleet.recorders[0].demand("another") is None


def test_a_series_that_went_quiet_is_sampled_more_again() -> None:
    fleet = Fleet(1)
    fleet.write(15, 100_000, 500)
    fleet.clock.seconds += 900
    before = fleet.updates
    fleet.write(100, 1_000, 100)
    assert fleet.updates - before > 100


def test_nothing_is_measured_for_writes_that_are_not_sampled() -> None:
    def never() -> UsageSample:
        raise AssertionError

    recorder = Fleet(1).recorder(lambda: 0.5)
    assert recorder.record("ORD", 100, never) is None


def test_an_answer_that_fails_costs_precision_only() -> None:
    clock = FakeClock()
    recorder = UsageRecorder(throttled_call, USAGE, clock.now, lambda: 0.0)
    assert recorder.record("ORD", 1_000, lambda: UsageSample(1, 1, 1)) is None
    assert recorder.failures == 1


def test_a_usage_table_out_of_reach_is_told_from_one_that_holds_nothing() -> None:
    recorder = UsageRecorder(throttled_call, USAGE, FakeClock().now, lambda: 0.0)
    with pytest.raises(ThrottledError):
        recorder.demand("ORD")
    assert recorder.failures == 2
    assert Fleet(1).recorders[0].demand("ORD") is None


def test_one_window_that_can_not_be_read_leaves_the_other() -> None:
    fleet = Fleet(1)
    fleet.write(9, 3_000, 600)
    asked = []

    def failing(operation: str, request: Mapping[str, Any], /) -> dict[str, Any]:
        asked.append(operation)
        if len(asked) == 2:
            raise ThrottledError("ThrottlingException", "")
        return fleet.tables(operation, request)

    recorder = UsageRecorder(failing, USAGE, fleet.clock.now, lambda: 0.5)
    demand = recorder.demand("ORD")
    assert demand is not None
    assert demand.events == pytest.approx(3_000, rel=0.25)


def test_many_series_do_not_fill_the_memory() -> None:
    fleet = Fleet(1)
    fleet.clock.seconds += 5.6
    recorder = fleet.recorder(lambda: 0.0)
    for n in range(10_500):
        assert recorder.record(str(n), 500, lambda: UsageSample(1, 1, 500)) is not None
    assert len(recorder._rates) <= 10_000  # noqa: SLF001
    assert recorder._rates.get("10499") is not None, "the latest is known still"  # noqa: SLF001
