from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Final

import pytest

from dynamoheat import ModelParameters
from spillway import Settings, ShardingMode
from spillway.dynamodb.port import StorageError, ThrottledError, UnreachableError
from spillway.layouts.repository import LayoutRepository
from spillway.layouts.transitions import extend_low
from spillway.scaling.autoscaler import WriterAutoscaler
from spillway.scaling.updates import ScalingKind
from spillway.scaling.usage import UsageSample, WriteDemand
from spillway.settings import Growth, GrowthPolicy
from spillway.timestamps import format_epoch
from tests.scaling.world import (
    INDEX_KEY_RANGE,
    SERIES,
    TABLE_KEY_RANGE,
    USAGE,
    World,
    pressure_on,
    throttled,
)
from tests.support.memory_table import LAYOUTS

KEYED: Final = throttled(TABLE_KEY_RANGE, sharding_key="a")
BUSY: Final = WriteDemand(5_000, 5_000, 5_000)


def _relieve(
    world: World, grower: WriterAutoscaler, *, within: float = 10, **pressure: Any
) -> None:
    grower.grow_on_throttle(SERIES, pressure_on(**pressure), world.clock.seconds + within)


def _known(grower: WriterAutoscaler) -> int:
    layout = grower.layouts.cached_layout(SERIES)
    assert layout is not None
    return layout.current.shards


def _once(
    world: World, operation: str, table: str, action: Callable[[], object], *, at: int = 1
) -> None:
    """Run an action ahead of the n-th call of an operation from now on."""
    calls = 0

    def before(called: str, request: Mapping[str, Any]) -> None:
        nonlocal calls
        if (called, request.get("TableName")) != (operation, table):
            return
        calls += 1
        if calls == at:
            action()

    world.before = before


def _fail(error: StorageError) -> None:
    raise error


def test_what_throttles_grows_after_a_short_wait_and_is_told() -> None:
    world = World()
    grower = world.grower()
    _relieve(world, grower)
    assert world.counts[0] == 8
    (event,) = world.reported
    assert (event.kind, event.series, event.reason) == (ScalingKind.GREW, SERIES, "throttled")
    assert (event.shards, event.index_shards) == (1, 1)
    assert (event.new_shards, event.new_index_shards) == world.counts
    assert _known(grower) == 8
    assert world.layout.has_closed_retired
    assert sum(world.clock.naps) <= Growth().max_wait_seconds


def test_of_two_growers_that_race_one_changes_the_layout_and_both_go_on_with_it() -> None:
    world = World()
    one, other = world.grower(), world.grower()
    _once(world, "UpdateItem", LAYOUTS, lambda: _relieve(world, other))
    _relieve(world, one)
    assert world.kinds == [ScalingKind.GREW, ScalingKind.LOST_RACE]
    assert len(world.layout.epochs) == 2
    assert _known(one) == _known(other) == 8


def test_a_change_that_came_during_the_wait_is_the_relief() -> None:
    world = World()
    one, other = world.grower(), world.grower()
    _once(world, "GetItem", LAYOUTS, lambda: _relieve(world, other))
    _relieve(world, one)
    assert world.kinds == [ScalingKind.GREW]
    assert _known(one) == 8


def test_of_200_growers_of_one_process_at_max_one_works_on_a_series() -> None:
    world = World()
    grower = world.grower()

    def others() -> None:
        for _ in range(200):
            _relieve(world, grower)

    _once(world, "GetItem", LAYOUTS, others)
    _relieve(world, grower)
    assert world.kinds == [ScalingKind.GREW]
    assert len(world.clock.naps) == 1


def test_what_throttled_under_an_older_layout_grows_nothing() -> None:
    world = World()
    grower = world.grower()
    retired = world.layout.current.id
    _relieve(world, grower, epoch_id=retired)
    assert world.counts[0] == 8
    world.clock.seconds += 60
    naps = len(world.clock.naps)
    _relieve(world, grower, epoch_id=retired)
    assert world.counts[0] == 8
    assert len(world.clock.naps) == naps
    _relieve(world, grower, epoch_id=world.layout.current.id)
    assert world.counts[0] == 16


@pytest.mark.parametrize("cooldown", [0.0, 1.0, 60.0])
def test_a_layout_rests_between_two_changes(cooldown: float) -> None:
    world = World()
    growth = Growth(cooldown_seconds=cooldown, max_wait_seconds=0)
    grower = world.grower(Settings(growth=growth))
    _relieve(world, grower, within=1)
    changed = world.layout.last_updated
    _relieve(world, grower, within=100)
    assert world.counts[0] == 16
    assert world.layout.last_updated - changed >= cooldown
    assert sum(world.clock.naps) <= cooldown


def test_a_first_growth_waits_for_no_cooldown() -> None:
    world = World()
    grower = world.grower(Settings(growth=Growth(cooldown_seconds=60)))
    _relieve(world, grower, within=1)
    assert world.counts[0] == 8


def test_a_clock_far_ahead_delays_a_growth_by_one_attempt_and_its_cooldown_only() -> None:
    world = World()
    grower = world.grower()
    _relieve(world, grower)
    world.clock.seconds -= 1_000
    _relieve(world, grower)  # the epoch in force begins in the future: its mark is lowered first
    _relieve(world, grower)
    assert world.counts[0] == 16
    assert max(world.clock.naps) <= Growth().cooldown_seconds + Growth().max_wait_seconds


@pytest.mark.parametrize(("within", "shards"), [(0.0, 1), (0.2, 1), (2.0, 8)])
def test_growth_keeps_within_the_deadline_of_the_request(within: float, shards: int) -> None:
    world = World()
    grower = world.grower(Settings(growth=Growth(min_wait_seconds=0.3)))
    begun = world.clock.seconds
    _relieve(world, grower, within=within)
    assert world.counts[0] == shards
    assert world.clock.seconds - begun <= max(within, 0.01)


def test_growth_that_is_switched_off_asks_nobody() -> None:
    world = World()
    grower = world.grower(Settings(growth=Growth(policy=None)))
    calls = world.calls.total()
    _relieve(world, grower)
    grower.grow_ahead(SERIES, BUSY)
    assert world.calls.total() == calls
    assert world.clock.naps == []


def _with_hot_key(world: World) -> WriterAutoscaler:
    """Return a grower that has found once that growth does not help."""
    grower = world.grower(Settings(shards=8, index_shards=8), with_usage=False)
    grower.grow_on_throttle(SERIES, pressure_on(KEYED), world.clock.seconds + 10)
    return grower


def test_that_growth_does_not_help_must_be_found_for_a_second() -> None:
    world = World()
    grower = _with_hot_key(world)
    assert world.reported == []
    world.clock.seconds += 1
    grower.grow_on_throttle(SERIES, pressure_on(KEYED), world.clock.seconds + 10)
    assert world.kinds == [ScalingKind.STOPPED]


def test_a_finding_of_long_ago_does_not_count() -> None:
    world = World()
    grower = _with_hot_key(world)
    world.clock.seconds += 600
    grower.grow_on_throttle(SERIES, pressure_on(KEYED), world.clock.seconds + 10)
    assert world.reported == []


def test_a_finding_under_an_older_layout_does_not_count() -> None:
    world = World()
    grower = _with_hot_key(world)
    grower.layouts.set_counts(SERIES, shards=16, index_shards=None)
    world.clock.seconds += 2
    grower.grow_on_throttle(SERIES, pressure_on(KEYED), world.clock.seconds + 10)
    assert world.reported == []


def test_a_burst_after_quiet_is_no_lack_of_partitions() -> None:
    """The record of a rate lags, so for a moment many shards seem to suffice although they throttle."""
    world = World()
    settings = Settings(shards=8, index_shards=8)
    grower = world.grower(settings)
    assert grower.recorder is not None
    for _ in range(10):
        grower.recorder.record(SERIES, 500, lambda: UsageSample(500, 500, 500))
        world.clock.seconds += 1
    for _ in range(20):
        world.clock.seconds += 0.05
        grower.recorder.record(SERIES, 500, lambda: UsageSample(500, 500, 500))
        _relieve(world, grower)
        if world.counts[0] > 8:
            break
    assert world.counts[0] > 8
    assert ScalingKind.STOPPED not in world.kinds


def test_a_stop_is_noted_for_all_and_honoured_by_other_processes() -> None:
    world = World()
    grower = _with_hot_key(world)
    other = world.grower(with_usage=False)
    world.clock.seconds += 1
    grower.grow_on_throttle(SERIES, pressure_on(KEYED), world.clock.seconds + 10)
    stop = world.layout.stop
    assert stop is not None
    assert (stop.reason, stop.hot_sharding_keys) == ("hot_sharding_key", ("a",))
    (event,) = world.reported
    assert (event.kind, event.hot_sharding_keys) == (ScalingKind.STOPPED, ("a",))
    assert (event.reason, event.shards) == ("hot_sharding_key", 8)
    for each in (grower, other):
        _relieve(world, each)
    assert world.counts[0] == 8
    assert len(world.reported) == 1
    world.clock.seconds += Growth().stop_seconds
    _relieve(world, other)
    assert world.counts[0] == 16


def test_a_stop_under_an_older_layout_no_longer_holds() -> None:
    world = World()
    grower = _with_hot_key(world)
    world.clock.seconds += 1
    grower.grow_on_throttle(SERIES, pressure_on(KEYED), world.clock.seconds + 10)
    assert world.layout.stop is not None
    grower.layouts.set_counts(SERIES, shards=32, index_shards=None)
    world.clock.seconds += 2
    _relieve(world, grower)
    assert world.counts[0] == 64


def test_growth_ahead_of_demand_waits_for_nothing_but_the_cooldown() -> None:
    world = World()
    grower = world.grower()
    grower.grow_ahead(SERIES, WriteDemand(500, 500, 500))
    assert world.calls[f"UpdateItem {LAYOUTS}"] == 1, "the creation"
    grower.grow_ahead(SERIES, BUSY)
    assert world.counts == (8, 8)
    assert world.reported[0].reason == "ahead of demand"
    grower.grow_ahead(SERIES, BUSY)
    assert world.counts == (8, 8)
    world.clock.seconds += 1
    grower.grow_ahead(SERIES, BUSY)
    assert world.counts == (32, 32)
    assert world.clock.naps == []


def test_growth_ahead_of_demand_sees_what_others_did() -> None:
    world = World()
    one, other = world.grower(), world.grower()
    one.grow_ahead(SERIES, WriteDemand(800, 800, 800))
    world.clock.seconds += 2
    other.grow_ahead(SERIES, WriteDemand(800, 800, 800))
    assert world.kinds == [ScalingKind.GREW]
    assert _known(other) == 8


def test_an_index_that_throttles_alone_grows_alone() -> None:
    world = World()
    grower = world.grower(Settings(shards=8))
    pressure = pressure_on(throttled(INDEX_KEY_RANGE))
    grower.grow_on_throttle(SERIES, pressure, world.clock.seconds + 10)
    assert world.counts == (8, 8)


def test_a_random_layout_grows_by_one_where_the_policy_says_so() -> None:
    world = World()
    growth = Growth(policy=GrowthPolicy.INCREMENT)
    grower = world.grower(
        Settings(mode=ShardingMode.RANDOM, shards=3, growth=growth), with_usage=False
    )
    _relieve(world, grower)
    assert world.counts[0] == 4
    world.clock.seconds += 2
    _relieve(world, grower)
    assert world.counts[0] == 5


@pytest.mark.parametrize(
    ("operation", "table"), [("GetItem", LAYOUTS), ("UpdateItem", LAYOUTS), ("GetItem", USAGE)]
)
@pytest.mark.parametrize("error", [ThrottledError("x", ""), UnreachableError("x", "")])
def test_tables_out_of_reach_stop_no_write_and_block_no_later_growth(
    operation: str, table: str, error: StorageError
) -> None:
    world = World()
    grower = world.grower()
    _once(world, operation, table, lambda: _fail(error))
    _relieve(world, grower)
    world.before = lambda *_: None
    world.clock.seconds += 2
    _relieve(world, grower)
    assert world.counts[0] == (8 if table == LAYOUTS else 16)


def test_a_growth_whose_second_write_fails_is_told_and_settled_later() -> None:
    world = World()
    grower = world.grower()
    _once(world, "UpdateItem", LAYOUTS, lambda: _fail(UnreachableError("x", "")), at=2)
    _relieve(world, grower)
    assert world.kinds == [ScalingKind.GREW]
    assert _known(grower) == 8
    assert not world.layout.has_closed_retired
    world.clock.seconds += 6
    grower.layouts.reload(SERIES)
    assert world.layout.has_closed_retired


def test_a_mark_that_was_lowered_meanwhile_delays_growth_by_one_attempt() -> None:
    world = World()
    grower = world.grower(Settings(shards=2))
    grower.layouts.set_counts(SERIES, shards=4, index_shards=None)
    world.clock.seconds += 2
    store = LayoutRepository(world, LAYOUTS, Settings(), world.clock.now)

    def backfill() -> None:
        current = world.layout.current
        mark = format_epoch(world.clock.seconds - 1e6)
        store.change(SERIES, lambda layout, now: extend_low(layout, current.id, mark, now))

    _once(world, "GetItem", LAYOUTS, backfill)
    _relieve(world, grower)
    assert world.counts[0] == 4
    _relieve(world, grower)
    assert world.counts[0] == 8


def test_a_series_that_nobody_has_loaded_is_left_alone() -> None:
    world = World()
    grower = world.grower()
    calls = world.calls.total()
    grower.grow_on_throttle("unknown", replace(pressure_on()), world.clock.seconds + 10)
    grower.grow_ahead("unknown", BUSY)
    assert world.calls.total() == calls


def test_writers_that_do_not_grow_layouts_look_once_a_second_who_else_did() -> None:
    world = World()
    grower = world.grower(Settings(growth=Growth(policy=None)))
    calls = world.calls.total()
    for _ in range(10):
        grower.refresh_layout(SERIES)
    assert world.calls.total() == calls + 1
    world.store().set_layout(SERIES, shards=8)
    world.clock.seconds += 1
    grower.refresh_layout(SERIES)
    known = grower.layouts.cached_layout(SERIES)
    assert known is not None
    assert known.current.shards == 8


@pytest.mark.parametrize("names_reasons", [True, False])
def test_a_write_of_such_a_writer_succeeds_as_soon_as_the_layout_has_grown(
    names_reasons: bool,
) -> None:
    world = World(parameters=ModelParameters(partition_wcu=100))
    world.names_reasons = names_reasons
    store = world.store(Settings(growth=Growth(policy=None), layout_ttl=1_000))
    assert store.write(world.events(10)).accepted == 10
    began = world.clock.seconds

    def scaler(operation: str, _: object) -> None:
        if operation == "BatchWriteItem" and world.clock.seconds > began + 2:
            world.before = lambda *_: None
            world.store().set_layout(SERIES, shards=64, index_shards=64)

    world.before = scaler
    assert store.write(world.events(1_500), timeout=8).accepted == 1_500
    assert world.counts == (64, 64)
