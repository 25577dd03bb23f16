"""TableThroughput is raised where that is what is missing, never beyond its bound."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spillway import keys
from spillway.control.capacity import (
    TableThroughput,
    next_provisioned_throughput,
    next_warm_throughput,
)
from spillway.control.monitoring import Signal, SignalKind
from spillway.scaling.policy import ThrottleTarget
from spillway.scaling.updates import ScalingKind
from tests.control.world import World, alarm

METRIC = "WriteProvisionedThroughputThrottleEvents"
RATE = Signal(SignalKind.PROVISIONED, ThrottleTarget.TABLE, METRIC)
units = st.integers(0, 100_000)
throughputs = st.builds(
    TableThroughput,
    active=st.booleans(),
    read=units,
    write=units,
    warm_read=units,
    warm_write=units,
    raised_at=st.floats(0, 2_000),
)


def _provisioned(write: int, **more: Any) -> dict[str, Any]:
    return {"ReadCapacityUnits": 10, "WriteCapacityUnits": write, **more}


@given(throughputs, units | st.none(), units)
def test_warm_throughput_never_falls_and_stays_within_its_bound(
    now: TableThroughput, demand: float | None, most: int
) -> None:
    raised = next_warm_throughput(now, demand, most)
    if raised is not None:
        assert now.active
        assert now.warm_write == raised.before <= raised.after <= max(most, raised.before)
        assert raised.is_raise == (most > now.warm_write)


@given(throughputs, st.floats(0, 4_000), units)
def test_provisioned_throughput_never_falls_and_stays_within_its_bound(
    now: TableThroughput, at: float, most: int
) -> None:
    raised = next_provisioned_throughput(now, at, most)
    if raised is not None:
        assert now.active
        assert at - now.raised_at >= 120
        assert now.write == raised.before <= raised.after <= max(most, raised.before)
        assert raised.after <= 1.5 * raised.before + 1


def test_a_rate_that_throttles_gets_half_as_much_again_and_no_layout_changes() -> None:
    world = World(provisioned=1_000)
    world.table["ProvisionedThroughput"] = _provisioned(100)
    world.has("ORD", (1, 1))
    world.throttles("ORD", 0)
    world.writes("ORD", 5_000)
    world.scaler().on_alarm(RATE)
    assert world.updates == [{"TableName": "events", "ProvisionedThroughput": _provisioned(150)}]
    assert world.kinds == [ScalingKind.PROVISIONED]
    assert world.counts("ORD") == (1, 1)


def test_the_index_has_its_own_rate() -> None:
    world = World(provisioned=1_000)
    world.table["ProvisionedThroughput"] = _provisioned(100)
    world.table["GlobalSecondaryIndexes"][0]["ProvisionedThroughput"] = _provisioned(40)
    world.scaler().on_alarm(Signal(SignalKind.PROVISIONED, ThrottleTarget.INDEX, METRIC))
    change = {"IndexName": keys.INDEX_NAME, "ProvisionedThroughput": _provisioned(60)}
    assert world.updates == [
        {"TableName": "events", "GlobalSecondaryIndexUpdates": [{"Update": change}]}
    ]


def test_the_schedule_goes_on_raising_up_to_the_bound_and_then_says_that_it_is_reached() -> None:
    world = World(provisioned=200)
    world.table["ProvisionedThroughput"] = _provisioned(100)
    world.watched.alarms = [alarm(METRIC)]
    scaler = world.scaler()
    for _ in range(4):
        scaler.on_schedule(world.now + 50)
        world.table["ProvisionedThroughput"]["LastIncreaseDateTime"] = 0.0
    written = [each["ProvisionedThroughput"]["WriteCapacityUnits"] for each in world.updates]
    assert written == [150, 200]
    assert world.kinds == [ScalingKind.PROVISIONED] * 2 + [ScalingKind.AT_BOUND] * 2


@pytest.mark.parametrize(
    "change",
    [
        {"TableStatus": "UPDATING"},
        {"ProvisionedThroughput": _provisioned(100, LastIncreaseDateTime=1_780_315_100.0)},
    ],
)
def test_a_raise_under_way_or_too_young_to_show_is_waited_for(change: dict[str, Any]) -> None:
    world = World(provisioned=200)
    world.table["ProvisionedThroughput"] = _provisioned(100)
    world.table |= change
    world.scaler().on_alarm(RATE)
    assert (world.updates, world.reported) == ([], [])


def test_without_a_bound_nothing_is_raised_and_people_are_told() -> None:
    world = World()
    world.table["ProvisionedThroughput"] = _provisioned(100)
    world.scaler().on_alarm(RATE)
    assert (world.updates, world.kinds) == ([], [ScalingKind.AT_BOUND])


def test_on_demand_the_rate_is_nothing_to_raise() -> None:
    world = World(provisioned=200)
    world.scaler().on_alarm(RATE)
    assert (world.updates, world.kinds) == ([], [ScalingKind.CAPACITY_LIMITED])


@pytest.mark.parametrize(
    ("code", "kinds"),
    [
        ("ResourceInUseException", []),
        ("LimitExceededException", [ScalingKind.AT_BOUND]),
        ("ValidationException", [ScalingKind.AT_BOUND]),
    ],
)
def test_what_dynamodb_refuses_is_told_and_raises_no_error(
    code: str, kinds: list[ScalingKind]
) -> None:
    world = World(provisioned=200)
    world.refusal = code
    world.table["ProvisionedThroughput"] = _provisioned(100)
    world.scaler().on_alarm(RATE)
    assert world.kinds == kinds


@pytest.mark.parametrize(
    ("kind", "told"),
    [
        (SignalKind.LIMIT, ScalingKind.CAPACITY_LIMITED),
        (SignalKind.READS, ScalingKind.READS_THROTTLED),
        (SignalKind.LAYOUTS, ScalingKind.LAYOUTS_THROTTLED),
    ],
)
@pytest.mark.parametrize("target", ThrottleTarget)
def test_what_no_layout_helps_is_reported_with_advice_and_changes_nothing(
    kind: SignalKind, told: ScalingKind, target: ThrottleTarget
) -> None:
    world = World(warm=100_000, provisioned=100_000)
    world.has("ORD", (1, 1))
    world.throttles("ORD", 0)
    world.index_throttles()
    world.writes("ORD", 5_000)
    world.scaler().on_alarm(Signal(kind, target, "metric"))
    (event,) = world.reported
    assert (event.kind, event.evidence) == (told, "metric")
    assert event.reason
    assert (world.calls, world.watched.asked) == (set(), [])
