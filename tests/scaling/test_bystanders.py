"""Series that throttle beside the cause, and do not write enough to be it: they keep their layouts."""

from collections.abc import Mapping
from contextlib import suppress
from functools import partial
from random import Random
from typing import Any, Final

import pytest
from msgspec import structs

from benchmarks.fleet.dynamodb import SimulatedDynamoDB, events_table
from benchmarks.fleet.virtual_time import VirtualTime
from benchmarks.fleet.writers import WriterFleet
from spillway import EventStore, Settings, ThrottledError, keys
from spillway.dynamodb.port import UnreachableError
from spillway.scaling.autoscaler import WriterAutoscaler
from spillway.scaling.policy import writes_enough
from spillway.scaling.updates import ScalingKind
from spillway.scaling.usage import UsageSample
from spillway.settings import Growth
from tests.scaling.world import (
    INDEX_KEY_RANGE,
    SERIES,
    TABLE_KEY_RANGE,
    USAGE,
    World,
    pressure_on,
    throttled,
)
from tests.support.fakes import NOON
from tests.support.memory_table import LAYOUTS

pytestmark = pytest.mark.slow

FEW: Final = 6  # units that throttle at a time


def _relieve(world: World, grower: WriterAutoscaler, *writes: Any, units: int = FEW) -> None:
    pressure = pressure_on(*writes, new_units=units)
    grower.grow_on_throttle(SERIES, pressure, world.clock.seconds + 10)


def _record(world: World, rate: float, *, seconds: int = 4, index_units: float = 1.0) -> None:
    """Let other processes record what they write of the series."""
    recorder = world.grower().recorder
    assert recorder is not None
    for _ in range(seconds * 4):
        recorder.record(
            SERIES, 500, lambda: UsageSample(rate / 4, rate / 4 * index_units, rate / 4)
        )
        world.clock.seconds += 0.25


@pytest.mark.parametrize(
    ("units", "enough"), [(0, False), (6, False), (250, False), (251, True), (5_000, True)]
)
def test_a_series_that_one_shard_is_meant_to_carry_is_not_the_cause(
    units: float, *, enough: bool
) -> None:
    assert writes_enough(units, Growth()) is enough
    assert writes_enough(units / 20, Growth(partition_wcu=50)) is enough


@pytest.mark.parametrize("rate", [0, 60, 240])
def test_a_series_that_writes_little_grows_nothing_however_long_it_throttles(rate: int) -> None:
    world = World()
    grower = world.grower()
    for _ in range(20):
        _record(world, rate, seconds=1) if rate else world.clock.sleep(1)
        _relieve(world, grower)
    assert world.counts == (1, 1)
    assert world.layout.stop is None


def test_the_fleets_rate_grows_a_series_of_which_a_process_writes_next_to_nothing() -> None:
    world = World()
    _record(world, 10_000)
    grower = world.grower()
    _relieve(world, grower, units=1)
    assert world.counts == (8, 8)


def test_what_counts_is_the_side_that_throttles() -> None:
    world = World()
    _record(world, 240, index_units=4.0)
    grower = world.grower()
    _relieve(world, grower, throttled(TABLE_KEY_RANGE))
    assert world.counts == (1, 1)
    world.clock.seconds += 1
    _relieve(world, grower, throttled(INDEX_KEY_RANGE))
    assert world.counts[1] == 8


def test_what_a_process_alone_has_throttled_is_enough_before_anybody_knows_the_rate() -> None:
    world = World()
    grower = world.grower()
    _relieve(world, grower, units=150)
    assert world.counts[0] == 1
    _relieve(world, grower, units=150)
    assert world.counts[0] == 8


@pytest.mark.parametrize("out_of_reach", [True, False])
def test_without_the_fleets_rate_a_process_takes_itself_for_one_of_ten(
    *, out_of_reach: bool
) -> None:
    def fail(_: str, request: Mapping[str, Any]) -> None:
        if request.get("TableName") == USAGE:
            raise UnreachableError("EndpointConnectionError", "")

    world = World()
    grower = world.grower(with_usage=out_of_reach)
    world.before = fail
    for _ in range(20):
        _relieve(world, grower)
        world.clock.seconds += 1
    assert world.counts == (1, 1)
    _relieve(world, grower, units=26)
    assert world.counts[0] == 8


def test_events_that_throttle_again_and_again_count_once() -> None:
    world = World()

    def before(operation: str, _: Mapping[str, Any]) -> None:
        if operation == "BatchWriteItem":
            raise ThrottledError("ThrottlingException", "", (TABLE_KEY_RANGE,))

    world.before = before
    store = world.store(usage=None)
    assert store.write(world.events(24), timeout=5).rejected
    assert world.counts == (1, 1)
    world.clock.seconds += 10
    assert store.write(world.events(26), timeout=5).rejected
    assert world.counts[0] == 8


def test_a_process_looks_at_few_of_many_series_that_throttle() -> None:
    world = World()
    grower = world.grower(Settings(growth=Growth(max_wait_seconds=0)))
    for number in range(1_000):
        grower.layouts.load_for_write(f"s-{number}")
    world.calls.clear()
    begun = world.clock.seconds
    for _ in range(3):
        for number in range(1_000):
            grower.grow_on_throttle(f"s-{number}", pressure_on(new_units=FEW), begun + 60)
        world.clock.seconds += 1
    looks = 5 + 5 * 3
    assert world.calls[f"GetItem {USAGE}"] <= 2 * looks
    assert world.calls[f"GetItem {LAYOUTS}"] <= looks
    assert world.calls[f"UpdateItem {LAYOUTS}"] == 0


def test_a_series_that_was_just_looked_at_takes_no_look_from_others() -> None:
    world = World()
    _record(world, 10_000)
    grower = world.grower(Settings(growth=Growth(max_wait_seconds=0)))
    grower.layouts.load_for_write("another")
    for _ in range(20):
        grower.grow_on_throttle("another", pressure_on(new_units=1), world.clock.seconds + 10)
    _relieve(world, grower, units=1)
    assert world.counts == (8, 8)


@pytest.mark.parametrize("by_others", [True, False])
def test_a_series_that_was_found_to_be_the_cause_is_looked_at_freely(*, by_others: bool) -> None:
    world = World()
    _record(world, 10_000)
    grower = world.grower()
    if by_others:
        _relieve(world, world.grower(), units=1)
    _relieve(world, grower, units=1)
    assert world.counts[0] == 8
    _relieve(world, grower, units=1)
    assert world.counts[0] == 64


def test_a_hot_series_is_looked_at_before_its_many_neighbours() -> None:
    world = World()
    _record(world, 10_000)

    def before(operation: str, _: Mapping[str, Any]) -> None:
        if operation == "BatchWriteItem" and world.counts == (1, 1):
            raise ThrottledError("ThrottlingException", "", (TABLE_KEY_RANGE,))

    world.before = before
    events = world.events(120)
    mixed = [structs.replace(each, series=f"s-{n}") for n, each in enumerate(events[:100])]
    store: EventStore = world.store()
    assert store.write([*mixed, *events[100:]], timeout=10).accepted == 120
    assert world.counts[0] == 8
    assert {each.series for each in world.reported} == {SERIES}


def _throttle_for(world: World, grower: WriterAutoscaler, seconds: int) -> list[tuple[str, str]]:
    until = world.clock.seconds + seconds
    while world.clock.seconds < until:
        _relieve(world, grower)
        world.clock.seconds += 0.5
    return [(each.series, each.reason) for each in world.reported]


def test_a_table_on_which_only_small_series_throttle_is_reported_once_a_minute() -> None:
    world = World()
    grower = world.grower()
    assert _throttle_for(world, grower, 6) == [], "a hot neighbour would be relieved by now"
    assert _throttle_for(world, grower, 12) == [("", "too_few_partitions")]
    assert len(_throttle_for(world, grower, 60)) == 2
    assert set(world.kinds) == {ScalingKind.STOPPED}
    assert world.reported[1].unreported > 0


def test_small_series_that_throttle_now_and_then_are_not_reported() -> None:
    world = World()
    grower = world.grower()
    for _ in range(10):
        _throttle_for(world, grower, 4)
        world.clock.seconds += 30
    assert world.reported == []


def _fleet(**options: Any) -> WriterFleet:
    warm = options.pop("warm")
    return WriterFleet(
        database=lambda time, random: SimulatedDynamoDB(
            time, events_table(warm_write=warm), random
        ),
        settings=Settings(),
        **options,
    )


def test_neighbours_of_a_hot_series_keep_their_layouts_while_it_grows() -> None:
    fleet = _fleet(warm=20_000, rate=lambda _: 6_000.0, seconds=6, writers=60, neighbours=150)
    outcome = fleet.run(seed=1)
    assert outcome.grown == []
    assert outcome.layout is not None
    assert outcome.layout.current.shards >= 32
    assert outcome.settled_after() in {2, 3, 4}
    assert outcome.kinds[ScalingKind.GREW] <= 3


def test_even_series_on_a_table_short_of_partitions_keep_their_layouts() -> None:
    fleet = _fleet(
        warm=None, rate=None, seconds=4, writers=50, neighbours=300,
        neighbour_rate=20.0, neighbour_batch=10,
    )  # fmt: skip
    outcome = fleet.run(seed=1)
    assert outcome.neighbours_at_once < 0.8, "it throttles"
    assert outcome.grown == []
    assert outcome.kinds.total() == 0


def test_many_small_processes_relieve_the_one_series_that_they_all_write() -> None:
    fleet = _fleet(warm=40_000, rate=lambda _: 2_000.0, seconds=6, writers=2_000, batch=1)
    outcome = fleet.run(seed=1)
    assert outcome.layout is not None
    assert outcome.layout.current.shards >= 16
    assert outcome.at_once[-1] >= 0.99 * outcome.offered[-1]


@pytest.mark.parametrize(("entering", "throttles"), [(3_500, True), (900, False)])
def test_all_entries_of_the_layouts_index_share_the_rate_of_one_partition(
    entering: int, *, throttles: bool
) -> None:
    """Layouts that enter it cost a unit under its one key, other changes of layouts cost nothing."""
    time = VirtualTime(NOON.timestamp())
    database = SimulatedDynamoDB(time, events_table(warm_write=None), Random(1))

    def change(number: int) -> None:
        attribute = keys.LAYOUT_INDEX_KEY if number < entering else "version"
        request = {
            "TableName": LAYOUTS,
            "Key": {keys.LAYOUT_KEY: {"S": f"s-{number}"}},
            "UpdateExpression": "SET #name = :value",
            "ExpressionAttributeNames": {"#name": attribute},
            "ExpressionAttributeValues": {":value": {"S": "yes"}},
        }
        with suppress(ThrottledError):
            for _ in range(3 if number < 300 else 1):
                database("UpdateItem", request)

    for number in range(3_500):
        time.at(time.now + 0.5 * number / 3_500, partial(change, number))
    time.run_until(time.now + 10)
    index = database.heat.resource(LAYOUTS, keys.LAYOUT_INDEX_NAME).meter.total
    assert (index.throttled.total() > 0) is throttles
    entered = sum(keys.LAYOUT_INDEX_KEY in each for each in database.kept.layouts.values())
    assert index.consumed_write == entered <= entering
