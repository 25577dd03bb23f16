"""What is reported, and how often; what is remembered of many series, and how much of it."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Final

import pytest
from msgspec import structs

from spillway import Settings
from spillway.dynamodb.port import ThrottlingReason
from spillway.memo import IntervalLimiter, Memo
from spillway.scaling.evidence import ThrottledRates
from spillway.scaling.policy import ScalingDecision
from spillway.scaling.updates import Reporter, ScalingEvent, ScalingKind
from spillway.settings import Growth
from tests.scaling.world import World, events_table, pressure_on
from tests.support.fakes import FakeClock

MANY: Final = 100_000
MAX_REMEMBERED: Final = 10_000
PROVISIONED: Final = ThrottlingReason("TableWriteProvisionedThroughputExceeded", "table/events")
ACCOUNT: Final = ThrottlingReason("TableWriteAccountLimitExceeded", "table/events")


def _limited(series: str, *reasons: ThrottlingReason) -> ScalingEvent:
    kind = ScalingKind.CAPACITY_LIMITED
    return ScalingEvent(kind=kind, series=series, throttling=reasons or (PROVISIONED,))


def _stopped(series: str) -> ScalingEvent:
    return ScalingEvent(kind=ScalingKind.STOPPED, series=series)


@pytest.mark.parametrize("series", [1, 100])
def test_an_exhausted_table_is_reported_once_a_minute(series: int) -> None:
    world = World(events_table(max_write=100.0, warm_write=40_000.0))
    store = world.store()

    def write() -> None:
        events = [
            structs.replace(event, series=f"s-{n % series}")
            for n, event in enumerate(world.events(400))
        ]
        store.write(events, timeout=0.5)

    begun = world.clock.seconds
    while world.clock.seconds < begun + 7:
        write()
    assert world.kinds == [ScalingKind.CAPACITY_LIMITED]
    world.clock.seconds = begun + 61
    write()
    assert world.kinds == [ScalingKind.CAPACITY_LIMITED] * 2
    assert world.reported[1].unreported > 10


def test_each_limit_is_reported_of_its_own() -> None:
    told: list[ScalingEvent] = []
    reporter = Reporter(told.append, FakeClock().now)
    events = [_limited("a"), _limited("b", ACCOUNT), _limited("c"), _limited("d", ACCOUNT)]
    for event in events:
        reporter.report(event)
    assert told == events[:2]


def test_a_stop_is_reported_once_a_minute_for_each_series_and_ten_times_in_all() -> None:
    clock, told = FakeClock(), list[ScalingEvent]()
    reporter = Reporter(told.append, clock.now)
    for _ in range(3):
        for number in range(4):
            reporter.report(_stopped(f"s-{number}"))
    assert [each.series for each in told] == ["s-0", "s-1", "s-2", "s-3"]
    for number in range(1_000):
        reporter.report(_stopped(f"t-{number}"))
    assert len(told) == 10
    clock.seconds += 60
    reporter.report(_stopped("s-0"))
    assert told[-1] == replace(_stopped("s-0"), unreported=994)
    assert sum(each.unreported for each in told) == 8 + 994
    reporter.report(_stopped("s-1"))
    assert told[-1] == _stopped("s-1")


def test_changes_are_all_reported() -> None:
    told: list[ScalingEvent] = []
    reporter = Reporter(told.append, FakeClock().now)
    changes = [
        ScalingEvent(kind=kind, series="a")
        for kind in (ScalingKind.GREW, ScalingKind.LOST_RACE)
        for _ in range(100)
    ]
    for event in changes:
        reporter.report(event)
    assert told == changes


def _memories(owner: object) -> Iterator[Any]:
    """Yield everything that an object keeps by series."""
    names = getattr(owner, "__slots__", None) or vars(owner)
    for name in names:
        value = getattr(owner, name)
        if isinstance(value, (Memo, IntervalLimiter, ThrottledRates, dict, set)):
            yield value
        elif isinstance(value, Reporter):
            yield from _memories(value)


@pytest.mark.slow
def test_what_is_remembered_of_100_000_series_is_bounded() -> None:
    world = World(events_table(provisioned_write=100.0))
    grower = world.grower(Settings(growth=Growth(confirm_seconds=0)))
    layout = world.layout
    observation = pressure_on().observation(layout, None, world.clock.now())
    for number in range(MANY):
        series = f"s-{number}"
        grower.grow_on_throttle(series, pressure_on(), world.clock.seconds)
        grower.report_capacity_limit(series, pressure_on())
        grower._refreshes.may_pass(series)  # noqa: SLF001
        grower._hot.put(series, 0.0)  # noqa: SLF001
        grower._confirm_stop(  # noqa: SLF001
            replace(layout, series=series), observation, ScalingDecision()
        )
        grower._reporter.report(_stopped(series))  # noqa: SLF001
    sizes = [len(each) for each in _memories(grower)]
    assert max(sizes) == MAX_REMEMBERED
    assert sizes.count(MAX_REMEMBERED) == 6, "each of these was filled"


def test_the_probes_of_many_series_are_remembered_within_the_same_bound() -> None:
    world = World()
    handler = world.store()._writer._throttling  # noqa: SLF001
    assert [type(each) for each in _memories(handler)] == [IntervalLimiter]
