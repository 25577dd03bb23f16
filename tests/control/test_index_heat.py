"""Key ranges of the index throttle: nobody names the keys, so the usage record tells who wants too much."""

from dataclasses import replace

import pytest

from spillway.control.monitoring import Signal, SignalKind
from spillway.scaling.policy import ThrottleTarget
from spillway.scaling.updates import ScalingKind
from tests.control.world import World

HOT = Signal(SignalKind.KEY_RANGE, ThrottleTarget.INDEX, "")


@pytest.fixture
def world() -> World:
    return World()


def test_who_wants_more_of_the_index_than_its_shards_carry_grows_there(world: World) -> None:
    world.has("ORD", (64, 1))
    world.has("DFW", (8, 8))
    world.has("calm", (8, 8))
    world.writes("ORD", 3_000)
    world.writes("DFW", 1_800)
    world.writes("calm", 900)
    world.index_throttles()
    world.scaler().on_alarm(HOT)
    assert world.counts("ORD") == (64, 8)  # a step
    assert world.counts("DFW") == (16, 16)  # the table, too, is filled beyond 70 %
    assert world.counts("calm") == (8, 8)
    (decision,) = world.layout("ORD").decisions
    assert decision.why == "alarm: key ranges of the index throttle"
    assert "index 100 throttled, 3,000 units/s wanted" in decision.evidence


def test_an_index_of_keys_only_is_judged_by_its_own_units(world: World) -> None:
    world.has("ORD", (64, 2))
    world.writes("ORD", 10_000, 400)
    world.has("DFW", (64, 2))
    world.writes("DFW", 10_000, 2_000)
    world.index_throttles()
    world.scaler().on_alarm(HOT)
    assert world.counts("ORD")[1] == 2
    assert world.counts("DFW")[1] == 16


def test_where_nobody_wants_too_much_who_wants_max_shows_that_partitions_are_short(
    world: World,
) -> None:
    world.has("ORD", (64, 64))
    world.has("DFW", (64, 64))
    world.writes("ORD", 1_500)
    world.writes("DFW", 1_000)
    world.index_throttles()
    world.scaler(warm=40_000).on_alarm(HOT)
    (update,) = world.updates
    (change,) = update["GlobalSecondaryIndexUpdates"]
    assert change["Update"]["WarmThroughput"]["WriteUnitsPerSecond"] == 8_000
    assert "WarmThroughput" not in update
    assert world.kinds == [ScalingKind.WARMED, ScalingKind.STOPPED]
    assert [each.series for each in world.reported] == ["ORD", "ORD"]
    assert world.counts("ORD") == (64, 64)


def test_series_that_write_little_are_left_alone(world: World) -> None:
    world.has("ORD", (8, 1))
    world.writes("ORD", 50)
    world.index_throttles()
    world.scaler().on_alarm(HOT)
    assert world.counts("ORD") == (8, 1)


def test_series_of_unknown_demand_are_left_alone(world: World) -> None:
    world.has("ORD", (8, 1))
    world.index_throttles()
    world.scaler().on_alarm(HOT)
    assert (world.counts("ORD"), world.reported) == ((8, 1), [])


@pytest.mark.parametrize(("ago", "grows"), [(61, False), (59, True)])
def test_what_throttled_before_the_last_change_is_no_evidence(
    world: World, ago: float, grows: bool
) -> None:
    world.growth = replace(world.growth, cooldown_seconds=1.0)
    world.has("ORD", (1, 1), (64, 2), age=60)
    world.writes("ORD", 3_000)
    world.index_throttles(ago=ago)
    world.scaler().on_alarm(HOT)
    assert (world.counts("ORD") != (64, 2)) == grows


def test_an_index_that_throttled_nothing_costs_one_look_at_the_metrics(world: World) -> None:
    world.has("ORD", (64, 1))
    world.scaler().on_alarm(HOT)
    assert (world.watched.asked, world.calls) == (["GetMetricData"], set())


def test_of_very_many_series_those_with_too_few_index_shards_are_looked_at_first(
    world: World,
) -> None:
    for n in range(600):
        world.has(f"series-{n:03}", (2, 2))
    world.has("zzz", (64, 1))
    world.writes("zzz", 3_000)
    world.index_throttles()
    queries = len(world.tables.requests)
    world.scaler().on_alarm(HOT)
    assert world.counts("zzz") == (64, 8)
    assert len(world.tables.requests) - queries < 20  # usage is asked elsewhere
