"""What the scaler may do against what it does: its own code over tables in memory, in every kind of work that it has."""

from spillway.cdk.access import ACCESS, RAISES_CAPACITY
from spillway.control.monitoring import Signal, SignalKind
from spillway.keys import INDEX_NAME, LAYOUT_INDEX_NAME
from spillway.scaling.policy import ThrottleTarget
from tests.control.world import World, alarm
from tests.support.memory_table import EVENTS, LAYOUTS, USAGE

HOUR = 3_600.0
LONG = 1e12  # a deadline far away


def _worked(**bounds: int) -> World:
    """Return a world whose scaler grew table and index, met its bounds, went on by the schedule and shrank."""
    world = World()
    for series, counts in (("ORD", (1, 1)), ("DFW", (64, 1)), ("full", (64, 64))):
        world.has(series, counts)
    world.has("idle", (64, 64), age=40 * HOUR)
    world.throttles("ORD", 0)
    world.throttles("full", 5, 6, 7)
    world.index_throttles()
    world.writes("DFW", 3_000)
    world.writes("full", 1_500)
    scaler = world.shrinking(**bounds)
    for target in ThrottleTarget:
        for kind in SignalKind:
            scaler.on_alarm(Signal(kind, target, "why"))
    world.watched.alarms = [alarm(), alarm(index=True)]
    for _ in range(3):
        world.clock.seconds += 120
        scaler.on_schedule(LONG)
    assert world.counts("ORD") != (1, 1)
    assert world.counts("idle") != (64, 64)
    return world


def _actions(world: World, target: str) -> set[str]:
    return {f"dynamodb:{operation}" for operation, on in world.calls if on == target}


def test_the_scaler_may_make_exactly_the_calls_that_it_makes() -> None:
    world, granted = _worked(), ACCESS["scaler"]
    assert _actions(world, EVENTS) == set(granted.events)
    assert _actions(world, f"{EVENTS}/index/{INDEX_NAME}") == set(granted.events_index) == set()
    assert _actions(world, LAYOUTS) == set(granted.layouts)
    assert _actions(world, f"{LAYOUTS}/index/{LAYOUT_INDEX_NAME}") == set(granted.layouts_index)
    assert _actions(world, USAGE) == set(granted.usage)
    asked = {f"cloudwatch:{operation}" for operation in world.watched.asked}
    assert asked == {*granted.insight_rules, *granted.alarms, *granted.anything}


def test_with_bounds_it_makes_just_one_call_more() -> None:
    world = _worked(warm=40_000, provisioned=10_000)
    assert world.updates
    assert _actions(world, EVENTS) == {*ACCESS["scaler"].events, *RAISES_CAPACITY.events}
