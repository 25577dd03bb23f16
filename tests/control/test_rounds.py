"""Idle layouts give up shards, a page a run, on as little reading as does."""

from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest

from spillway.scaling.updates import ScalingKind
from spillway.scaling.usage import WINDOW, UsageSample, add_request, window_of
from tests.control.world import World
from tests.support.memory_table import LAYOUTS, USAGE

HOUR = 3_600.0
LONG = 1e12  # a deadline far away


@pytest.fixture
def world() -> World:
    return World()


def _peak(world: World, series: str, rate: float, ago: float) -> None:
    units = rate * WINDOW
    at = window_of(world.now - ago)
    world.tables("UpdateItem", add_request(USAGE, series, at, UsageSample(units, units, units)))


def test_a_layout_that_nobody_needs_steps_down_and_says_why(world: World) -> None:
    world.has("idle", (64, 64), age=40 * HOUR)
    _peak(world, "idle", 100, ago=30 * HOUR)
    world.shrinking().on_schedule(LONG)
    assert world.counts("idle") == (16, 16)
    (decision,) = world.layout("idle").decisions
    assert decision.why == "idle"
    assert decision.evidence == "at most 100 (table) and 100 (index) units/s in 36 hours"
    assert world.kinds == [ScalingKind.SHRANK]


@pytest.mark.parametrize("ago", [0.1, 3.0, 35.0])
def test_a_peak_within_the_window_keeps_the_shards(world: World, ago: float) -> None:
    world.has("daily", (64, 64), age=40 * HOUR)
    _peak(world, "daily", 9_000, ago=ago * HOUR)
    world.shrinking().on_schedule(LONG)
    assert world.counts("daily") == (64, 64)


def test_a_layout_that_changed_within_the_window_is_left_alone_without_a_look(
    world: World,
) -> None:
    world.has("new", (64, 64), age=35 * HOUR)
    world.shrinking().on_schedule(LONG)
    assert world.counts("new") == (64, 64)
    assert ("Query", USAGE) not in world.calls


def _queries(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    asked: list[Any] = []
    original = World._query  # noqa: SLF001

    def query(self: World, request: Any) -> Any:
        if request["TableName"] == USAGE:
            asked.append(request["ExpressionAttributeValues"])
        return original(self, request)

    monkeypatch.setattr(World, "_query", query)
    return asked


def test_usage_is_read_back_only_until_it_is_seen_that_all_shards_are_needed(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = _queries(monkeypatch)
    world.has("busy", (64, 64), age=40 * HOUR)
    _peak(world, "busy", 9_000, ago=600)
    world.shrinking().on_schedule(LONG)
    assert len(asked) == 1
    world.has("busy", (64, 64), age=40 * HOUR)
    world.tables.items[USAGE].clear()
    _peak(world, "busy", 9_000, ago=10 * HOUR)
    asked.clear()
    world.shrinking().on_schedule(LONG)
    bounds = [(int(each[":low"]["N"]), int(each[":high"]["N"])) for each in asked]
    assert [round((world.now - low) / HOUR, 1) for low, _ in bounds] == [0.5, 6.0, 36.0]
    assert all(high < low for (low, _), (_, high) in pairwise(bounds))
    assert world.counts("busy") == (64, 64)


def test_a_run_looks_at_50_layouts_and_a_round_at_all_once_an_hour(world: World) -> None:
    for n in range(120):
        world.has(f"idle-{n:03}", (2, 2), age=40 * HOUR)
    scaler = world.shrinking()
    seen = []
    for _ in range(5):
        scaler.on_schedule(LONG)
        seen.append(len(world.reported))
        world.clock.seconds += 60
    assert seen == [50, 100, 120, 120, 120]
    for n in range(120):
        world.has(f"idle-{n:03}", (2, 2), age=40 * HOUR)
    world.clock.seconds += HOUR
    scaler.on_schedule(LONG)
    assert len(world.reported) == 170


def test_a_run_that_has_no_time_left_goes_on_where_it_stopped(world: World) -> None:
    for n in range(3):
        world.has(f"idle-{n}", (2, 2), age=40 * HOUR)
    scaler = world.shrinking()

    def slow(operation: str, _: object) -> None:
        world.clock.seconds += 10 if operation == "UpdateItem" else 0

    world.before = slow
    shrunk = []
    for _ in range(3):
        scaler.on_schedule(world.now + 5)
        shrunk.append([world.counts(f"idle-{n}") for n in range(3)].count((1, 1)))
    assert shrunk == [1, 2, 3]


def test_a_layout_that_changed_since_it_was_listed_is_left_to_the_next_round(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.has("idle", (64, 64), age=40 * HOUR)
    stale = world.layout("idle")
    world.put(replace(stale, version=9))
    scaler = world.shrinking()
    listing = scaler.candidates.listing
    monkeypatch.setattr(type(listing), "page", lambda *_: ([stale], None))
    scaler.on_schedule(LONG)
    assert world.counts("idle") == (64, 64)


def test_a_damaged_layout_does_not_stop_the_round(world: World) -> None:
    for name in ("a", "b", "c"):
        world.has(name, (2, 2), age=40 * HOUR)
    del world.tables.items[LAYOUTS]["b",]["epochs"]
    world.shrinking().on_schedule(LONG)
    assert (world.counts("a"), world.counts("c")) == ((1, 1), (1, 1))


def test_counts_never_fall_below_those_of_a_new_series(world: World) -> None:
    world.settings = replace(world.settings, shards=8, index_shards=4)
    world.has("idle", (16, 16), age=40 * HOUR)
    world.shrinking().on_schedule(LONG)
    assert world.counts("idle") == (8, 4)


def test_a_dry_run_shrinks_nothing(world: World) -> None:
    world.has("idle", (64, 64), age=40 * HOUR)
    world.shrinking(dry_run=True).on_schedule(LONG)
    assert (world.counts("idle"), world.kinds) == ((64, 64), [ScalingKind.SHRANK])


def test_alarms_come_first(world: World) -> None:
    world.has("idle", (64, 64), age=40 * HOUR)
    world.shrinking().on_schedule(LONG)
    assert world.watched.asked == ["DescribeAlarms"]
