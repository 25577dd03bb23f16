"""The calls that the scaler makes are those that it is allowed, one for one."""

from dataclasses import replace

import pytest

from spillway import keys
from spillway.cdk.access import ACCESS, RAISES_CAPACITY, Access
from spillway.control.monitoring import Signal, SignalKind
from spillway.scaling.policy import ThrottleTarget
from tests.control.world import World, alarm
from tests.support.memory_table import EVENTS, LAYOUTS, USAGE


@pytest.fixture
def world() -> World:
    """A world in which everything that the scaler knows of happens."""
    world = World(warm=40_000, provisioned=40_000)
    world.growth = replace(world.growth, cooldown_seconds=1.0)
    world.has("ORD", (1, 1))
    world.throttles("ORD", 0)
    world.has("short", (64, 64))
    world.throttles("short", 1, 2, 3)
    world.writes("short", 1_500)
    world.has("index", (64, 1))
    world.writes("index", 3_000)
    world.index_throttles()
    world.has("idle", (64, 64), age=150_000)
    world.watched.alarms = [alarm(), alarm(index=True)]
    return world


def granted(access: Access) -> set[tuple[str, str]]:
    named = (
        (EVENTS, access.events),
        (f"{EVENTS}/index/{keys.INDEX_NAME}", access.events_index),
        (LAYOUTS, access.layouts),
        (f"{LAYOUTS}/index/{keys.LAYOUT_INDEX_NAME}", access.layouts_index),
        (USAGE, access.usage),
    )
    return {(action.partition(":")[2], on) for on, actions in named for action in actions}


def test_the_scaler_is_allowed_exactly_the_calls_that_it_makes(world: World) -> None:
    scaler = world.shrinking()
    scaler.on_schedule(world.now + 50)
    for kind in SignalKind:
        for target in ThrottleTarget:
            scaler.on_alarm(Signal(kind, target, "metric"))
    assert world.calls == granted(ACCESS["scaler"]) | granted(RAISES_CAPACITY)
    asked = ACCESS["scaler"].insight_rules, ACCESS["scaler"].alarms, ACCESS["scaler"].anything
    assert {f"cloudwatch:{name}" for name in world.watched.asked} == set().union(*asked)
    assert world.counts("idle") == (16, 16)


def test_without_bounds_tables_are_never_changed(world: World) -> None:
    world.options = {}
    world.table["ProvisionedThroughput"] = {"ReadCapacityUnits": 5, "WriteCapacityUnits": 5}
    scaler = world.shrinking()
    scaler.on_schedule(world.now + 50)
    scaler.on_alarm(Signal(SignalKind.PROVISIONED, ThrottleTarget.TABLE, "metric"))
    assert world.calls == granted(ACCESS["scaler"])
