"""Key ranges of the table throttle: who grows, who does not, and what is done where more shards are no help."""

from dataclasses import replace

import pytest

from spillway import ThrottledError
from spillway.control.monitoring import Signal, SignalKind
from spillway.layouts.model import GrowthStop
from spillway.scaling.policy import ThrottleTarget
from spillway.scaling.updates import ScalingKind
from tests.control.world import World, alarm

HOT = Signal(SignalKind.KEY_RANGE, ThrottleTarget.TABLE, "")


@pytest.fixture
def world() -> World:
    return World()


def test_series_that_insights_name_grow_to_what_the_fleet_wants(world: World) -> None:
    world.has("ORD", (8, 8))
    world.has("DFW", (1, 1))
    world.has("calm", (1, 1))
    world.throttles("ORD", 0, 3, 5)
    world.throttles("DFW", 0)
    world.writes("ORD", 10_000)
    world.scaler().on_alarm(HOT)
    assert world.counts("ORD") == (64, 64)
    assert world.counts("DFW") == (8, 8)
    assert world.counts("calm") == (1, 1)
    assert world.kinds == [ScalingKind.GREW] * 2


def test_a_growth_is_recorded_with_why_and_by_what_evidence(world: World) -> None:
    world.has("ORD", (8, 8))
    world.throttles("ORD", 0, 3, times=150)
    world.writes("ORD", 10_000)
    world.scaler().on_alarm(HOT)
    (decision,) = world.layout("ORD").decisions
    assert (decision.before, decision.after) == ((8, 8), (64, 64))
    assert decision.why == "alarm: key ranges of the table throttle"
    assert decision.evidence == (
        "table 300 throttled, 10,000 units/s wanted; index 10,000 units/s wanted"
    )
    assert world.reported[0].evidence == decision.evidence


@pytest.mark.parametrize(("ago", "grows"), [(61, False), (60, True), (30, True)])
def test_what_throttled_before_the_last_change_is_no_evidence(
    world: World, ago: float, grows: bool
) -> None:
    world.growth = replace(world.growth, cooldown_seconds=1.0)
    world.has("ORD", (1, 1), (8, 8), age=60)
    world.throttles("ORD", 0, ago=ago)
    world.scaler().on_alarm(HOT)
    assert (world.counts("ORD") != (8, 8)) == grows


def test_the_first_layout_of_a_series_is_judged_by_all_of_the_window(world: World) -> None:
    world.has("ORD", (1, 1), age=10)
    world.throttles("ORD", 0, ago=60)
    world.scaler().on_alarm(HOT)
    assert world.counts("ORD") == (8, 8)


@pytest.mark.parametrize(("age", "grows"), [(59, False), (61, True)])
def test_a_layout_rests_for_the_cooldown(world: World, age: float, grows: bool) -> None:
    world.has("ORD", (1, 1), (8, 8), age=age)
    world.throttles("ORD", 0, ago=1)
    world.scaler().on_alarm(HOT)
    assert (world.counts("ORD") != (8, 8)) == grows


def test_a_series_without_a_layout_gets_none(world: World) -> None:
    world.throttles("nobody", 0)
    world.scaler().on_alarm(HOT)
    assert world.tables.items["layouts"] == {}


def test_a_key_that_is_only_read_too_much_leaves_its_layout(world: World) -> None:
    """The rule counts throttled reads, too."""
    world.has("ORD", (1, 1))
    world.throttles("ORD", 0)
    world.writes("ORD", 50)
    world.scaler().on_alarm(HOT)
    assert world.counts("ORD") == (1, 1)


def test_a_finding_of_the_writers_that_one_key_is_hot_is_respected(world: World) -> None:
    world.has("ORD", (8, 8))
    stop = GrowthStop(reason="hot_sharding_key", at=world.now - 30, hot_sharding_keys=("k",))
    world.put(replace(world.layout("ORD"), stop=stop))
    world.throttles("ORD", 0, ago=30)
    world.scaler().on_alarm(HOT)
    assert world.counts("ORD") == (8, 8)
    world.clock.seconds += 31
    world.scaler().on_alarm(HOT)
    assert world.counts("ORD") == (16, 8)


def test_one_hot_shard_of_many_is_said_to_be_one_keys_and_warms_nothing(world: World) -> None:
    world.has("ORD", (64, 64))
    world.throttles("ORD", 5, times=900)
    world.throttles("ORD", 6)
    world.writes("ORD", 1_500)
    world.scaler(warm=40_000).on_alarm(HOT)
    stop = world.layout("ORD").stop
    assert stop is not None
    assert stop.reason == "hot_sharding_key"
    assert world.updates == []


def test_a_table_short_of_partitions_is_warmed_once_and_says_so(world: World) -> None:
    world.has("ORD", (64, 64))
    world.throttles("ORD", 5, 6, 7)
    world.writes("ORD", 1_500)
    scaler = world.scaler(warm=40_000)
    for _ in range(3):
        scaler.on_alarm(HOT)
    (update,) = world.updates
    assert update["WarmThroughput"] == {"WriteUnitsPerSecond": 8_000, "ReadUnitsPerSecond": 12_000}
    assert world.kinds == [ScalingKind.WARMED, ScalingKind.STOPPED]
    layout = world.layout("ORD")
    assert layout.current.shards == 64
    (decision,) = layout.decisions
    assert decision.why == "warm throughput of the table raised from 4,000 to 8,000 write units/s"
    assert decision.before == decision.after
    assert layout.stop is not None
    assert layout.stop.reason == "too_few_partitions"


def test_a_dry_run_says_what_it_would_do_and_does_nothing(world: World) -> None:
    world.has("ORD", (8, 8))
    world.has("DFW", (64, 64))
    before = {name: world.layout(name) for name in ("ORD", "DFW")}
    world.throttles("ORD", 0)
    world.throttles("DFW", 1, 2, 3)
    world.writes("DFW", 1_500)
    world.scaler(dry_run=True, warm=40_000).on_alarm(HOT)
    assert {name: world.layout(name) for name in before} == before
    assert world.updates == []
    assert sorted(world.kinds) == [ScalingKind.GREW, ScalingKind.STOPPED, ScalingKind.WARMED]
    assert all(each.dry_run for each in world.reported)


def test_a_series_that_fails_holds_no_other_up(world: World) -> None:
    world.has("ORD", (1, 1))
    world.has("DFW", (1, 1))
    world.throttles("ORD", 0, times=900)
    world.throttles("DFW", 0)
    world.tables.items["layouts"]["ORD",]["epochs"] = {"L": []}
    with pytest.raises(Exception, match="LayoutDamaged"):
        world.scaler().on_alarm(HOT)
    assert world.counts("DFW") == (8, 8)


def test_a_second_hot_series_grows_by_the_schedule_while_the_alarm_lasts(world: World) -> None:
    scaler = world.scaler()
    world.has("ORD", (1, 1))
    world.has("DFW", (1, 1))
    world.throttles("ORD", 0)
    scaler.on_alarm(HOT)
    assert (world.counts("ORD"), world.counts("DFW")) == ((8, 8), (1, 1))
    world.throttles("DFW", 0, ago=0)
    world.clock.seconds += 60
    scaler.on_schedule(world.now + 50)
    assert world.counts("DFW") == (1, 1)
    world.watched.alarms = [alarm(), replace(alarm(), name="the same, for people")]
    scaler.on_schedule(world.now + 50)
    assert (world.counts("ORD"), world.counts("DFW")) == ((8, 8), (8, 8))


def test_a_throttled_layout_table_is_told_to_who_called(world: World) -> None:
    world.has("ORD", (1, 1))
    world.throttles("ORD", 0)
    scaler = world.scaler()
    calm = world.before

    def throttled(*_: object) -> None:
        raise ThrottledError("ThrottlingException", "")

    world.before = throttled
    with pytest.raises(ThrottledError):
        scaler.on_alarm(HOT)
    world.before = calm
    scaler.on_alarm(HOT)
    assert world.counts("ORD") == (8, 8)
