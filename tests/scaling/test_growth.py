"""Writers that meet heat: the store over the model of DynamoDB's partitions."""

import itertools
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any, Final, TypeVar

import pytest
from msgspec import structs

from benchmarks.fleet.dynamodb import SimulatedDynamoDB
from benchmarks.fleet.dynamodb import events_table as fleet_table
from benchmarks.fleet.writers import BATCH, WriterFleet
from dynamoheat import ModelParameters, TableSettings
from spillway import Event, EventStore, Settings, ShardingMode, WriteResult, keys
from spillway.dynamodb.port import (
    OutcomeUnknownError,
    ThrottledError,
    ThrottlingReason,
    UnreachableError,
)
from spillway.scaling.updates import ScalingKind
from spillway.settings import Growth
from tests.scaling.world import SERIES, TABLE_KEY_RANGE, USAGE, World, events_table
from tests.support.fakes import one_by_one
from tests.support.memory_table import EVENTS, LAYOUTS
from tests.support.stores import read_all

T = TypeVar("T")

GREW: Final = ScalingKind.GREW
PROVISIONED: Final = ThrottlingReason("TableWriteProvisionedThroughputExceeded", "table/events")


def _stored(world: World) -> Counter[str]:
    """Return how many copies of each event lie in the shards that the layout has."""
    return Counter(
        key
        for shard in range(world.counts[0])
        for key in world.kept.partition(keys.partition_key(SERIES, shard))
    )


def _read_back(world: World, store: EventStore) -> int:
    begin, end = (world.clock.time + timedelta(minutes=shift) for shift in (-1, 1))
    return sum(1 for _ in read_all(store, SERIES, begin, end, limit=1_000))


@pytest.mark.parametrize("usage", [USAGE, None])
def test_a_burst_on_one_shard_is_accepted_under_more(usage: str | None) -> None:
    world = World()
    store = world.store(usage=usage)
    result = store.write(world.events(1_000, payload_bytes=4_000), timeout=10)
    assert result.accepted == 1_000
    assert world.counts[0] >= 8
    assert 1 <= world.kinds.count(GREW) <= 3
    assert _stored(world).total() == _read_back(world, store) == 1_000


def test_steady_traffic_stops_throttling_and_stops_changing_the_layout() -> None:
    world = World()
    stores = [world.store() for _ in range(4)]
    for _ in range(4):
        for store in stores:
            assert world.offer(store, 1, 800, payload_bytes=2_500) == 800
    epochs, puts = len(world.layout.epochs), world.calls["BatchWriteItem events"]
    for store in stores:
        world.offer(store, 1, 800, payload_bytes=2_500)
    assert len(world.layout.epochs) == epochs <= 4
    assert world.calls["BatchWriteItem events"] - puts == 4 * 32, "none was sent twice"


@pytest.mark.parametrize("usage", [USAGE, None])
def test_where_the_index_alone_is_hot_the_index_alone_grows(usage: str | None) -> None:
    world = World()
    store = world.store(Settings(shards=8), usage=usage)
    accepted = world.offer(store, 6, 310, payload_bytes=3_800)  # 4 units each, one bucket
    assert accepted == 6 * 310
    assert world.counts[0] == 8
    assert world.counts[1] >= 8


LIMITED: Final[dict[str, tuple[TableSettings, ModelParameters]]] = {
    "TableWriteProvisionedThroughputExceeded": (
        events_table(provisioned_write=400.0),
        ModelParameters(),
    ),
    "TableWriteMaxOnDemandThroughputExceeded": (
        events_table(max_write=400.0, warm_write=40_000.0),
        ModelParameters(),
    ),
    "TableWriteAccountLimitExceeded": (events_table(), ModelParameters(quota_wcu=400)),
}


@pytest.mark.parametrize("reason", LIMITED)
def test_capacity_grows_nothing_and_is_reported(reason: str) -> None:
    world = World(*LIMITED[reason])
    store = world.store()
    for _ in range(9):
        begun = world.clock.seconds
        store.write(world.events(600, payload_bytes=1_500), timeout=0.9)
        world.clock.seconds = max(world.clock.seconds, begun + 1)
    assert world.counts == (1, 1)
    assert set(world.kinds) == {ScalingKind.CAPACITY_LIMITED}
    assert {each.reason for event in world.reported for each in event.throttling} == {reason}


def test_growth_ahead_of_demand_goes_on_once_capacity_limits_no_longer() -> None:
    world = World(*LIMITED["TableWriteMaxOnDemandThroughputExceeded"])
    store = world.store()
    store.write(world.events(600, payload_bytes=1_500), timeout=0.9)
    assert world.kinds[-1] is ScalingKind.CAPACITY_LIMITED
    world.clock.seconds += 60
    world.heat.update_table(events_table(), world.clock.seconds)
    assert world.offer(store, 8, 600, payload_bytes=1_500) == 8 * 600
    assert world.counts[0] == 8


def _mostly(key: str) -> Callable[[int], str]:
    return lambda number: key if number % 10 else f"other-{number}"


def test_a_hot_sharding_key_is_named_and_growth_stops_after_the_step_that_did_not_help() -> None:
    world = World()
    store = world.store(Settings(growth=Growth(max_utilization=None)))
    for _ in range(8):
        begun = world.clock.seconds
        store.write(world.events(670, payload_bytes=1_500, sharding_key=_mostly("LGA")), timeout=3)
        world.clock.seconds = max(world.clock.seconds, begun + 1)
    assert world.kinds.count(GREW) <= 2
    assert world.counts[0] <= 16
    assert world.kinds[-1] is ScalingKind.STOPPED
    stopped = [each for each in world.reported if each.kind is ScalingKind.STOPPED]
    assert {each.hot_sharding_keys for each in stopped} == {("LGA",)}
    layout = store.layout(SERIES)
    assert layout is not None
    assert layout.stop is not None
    assert layout.stop.hot_sharding_keys == ("LGA",)


def test_devices_that_write_alone_are_no_hot_keys() -> None:
    """Each batch holds one sharding key's events; all of them together need more shards."""
    numbers = itertools.count()
    fleet = WriterFleet(
        database=lambda time, random: SimulatedDynamoDB(
            time, fleet_table(warm_write=40_000), random
        ),
        settings=Settings(),
        rate=lambda _: 2_500.0,
        seconds=6,
        writers=50,
        sharding_key=lambda _: f"device-{next(numbers) // BATCH}",
    )
    outcome = fleet.run(seed=1)
    assert outcome.layout is not None
    assert outcome.layout.current.shards >= 16
    assert outcome.kinds[ScalingKind.STOPPED] == 0
    assert outcome.at_once[-1] >= 0.99 * outcome.offered[-1]


def test_a_table_short_of_partitions_stops_growth_and_says_so() -> None:
    world = World(events_table(warm_write=4_000.0))
    store = world.store(Settings(growth=Growth(max_step=64)))
    for _ in range(12):
        begun = world.clock.seconds
        store.write(world.events(900, payload_bytes=9_500), timeout=5)
        world.clock.seconds = max(world.clock.seconds, begun + 1)
        if ScalingKind.STOPPED in world.kinds:
            break
    assert world.reported[-1].reason == "too_few_partitions"
    assert world.layout.stop is not None
    counts = world.counts
    world.clock.seconds += 2
    store.write(world.events(900, payload_bytes=9_500), timeout=5)
    assert world.counts == counts


def _out_of_reach(operation: str, request: Mapping[str, Any]) -> None:
    if request.get("TableName") == USAGE:
        raise UnreachableError("EndpointConnectionError", operation)


def test_a_usage_table_out_of_reach_costs_precision_only() -> None:
    world = World()
    world.before = _out_of_reach
    store = world.store()
    assert world.offer(store, 5, 1_000, payload_bytes=4_000) == 5_000
    assert world.counts[0] > 8
    assert world.calls[f"UpdateItem {USAGE}"] > 0


@pytest.mark.parametrize("timeout", [0.0, 0.05, 0.2, 0.5, 1.0, 3.0])
def test_growth_and_probes_keep_within_the_deadline_of_the_write(timeout: float) -> None:
    world = World()
    world.store().write(world.events(1), timeout=1)
    ends = world.clock.seconds + timeout
    late: list[tuple[str, float]] = []

    def before(operation: str, request: Mapping[str, Any]) -> None:
        if world.clock.seconds > ends + 0.02:  # what was begun in time may take a few requests
            late.append((operation, len(request)))

    world.before = before
    result = world.store().write(world.events(1_000, payload_bytes=9_000), timeout=timeout)
    assert late == []
    assert world.clock.seconds <= ends + 0.02
    assert result.accepted + len(result.rejected) == 1_000
    assert _stored(world).total() >= result.accepted
    assert {each.code for each in result.rejected} <= {"throttled", "deadline"}


def test_no_probe_is_sent_after_the_deadline() -> None:
    world = World()
    store = world.store()
    store.write(world.events(1), timeout=1)

    def before(operation: str, _: Mapping[str, Any]) -> None:
        if operation == "BatchWriteItem":
            world.clock.seconds += 0.5

    world.before = before
    result = store.write(world.events(500, payload_bytes=9_000), timeout=0.6)
    assert result.rejected
    assert world.calls["PutItem events"] == 0


class Unprocessed:
    """Leaves a part of every batch unprocessed, and answers probes as told."""

    def __init__(self, world: World, share: int, put: Exception | None = None) -> None:
        self.world = world
        self.share = share
        self.put = put
        self.writes: Counter[str] = Counter()

    def __call__(self, operation: str, request: Mapping[str, Any], /) -> dict[str, Any]:
        if operation == "PutItem":
            if self.put is not None:
                raise self.put
            self.writes[request["Item"]["SK"]["S"]] += 1
        if operation != "BatchWriteItem":
            return self.world(operation, request)
        writes = request["RequestItems"][EVENTS]
        done = writes[len(writes) * self.share // 100 :]
        left = writes[: len(writes) * self.share // 100]
        self.writes.update(each["PutRequest"]["Item"]["SK"]["S"] for each in done)
        self.world(operation, {"RequestItems": {EVENTS: done}})
        return {"UnprocessedItems": {EVENTS: left} if left else {}}

    def write(self, count: int) -> WriteResult:
        """Write for a second, trying again at once."""
        runtime = replace(self.world.runtime(), random=lambda: 0.0)
        store = EventStore(self, table=EVENTS, layouts=LAYOUTS, runtime=runtime)
        return store.write(self.world.events(count), timeout=1)


def test_what_probes_stored_is_accepted_and_not_written_again() -> None:
    world = World()
    port = Unprocessed(world, share=40)
    result = port.write(200)
    probes = world.calls["PutItem events"]
    assert result.accepted == 200 - len(result.rejected) > 150
    assert probes >= 3
    assert set(port.writes.values()) == {1}
    assert len(port.writes) == result.accepted


def test_probes_are_three_at_max_and_rest_between_two_rounds() -> None:
    world = World()
    Unprocessed(world, share=100).write(200)
    assert world.calls["BatchWriteItem events"] > 200, "round upon round"
    assert 3 * 4 <= world.calls["PutItem events"] <= 3 * 5


def test_a_probe_that_takes_long_is_followed_by_none_after_the_deadline() -> None:
    world = World()

    def before(operation: str, _: Mapping[str, Any]) -> None:
        if operation == "PutItem":
            world.clock.seconds += 0.6

    world.before = before
    Unprocessed(world, share=40).write(200)
    assert world.calls["PutItem events"] == 2


def test_a_probe_whose_reply_was_lost_leaves_the_outcome_unknown() -> None:
    world = World()
    port = Unprocessed(world, share=100, put=OutcomeUnknownError("ReadTimeoutError", ""))
    result = port.write(2)
    assert {each.index: each.code for each in result.rejected} == {
        0: "unknown_outcome",
        1: "throttled",
    }


def test_old_events_that_throttle_under_a_retired_epoch_grow_nothing() -> None:
    world = World()
    store = world.store(usage=None)
    store.write(world.events(1), timeout=1)
    store.set_layout(SERIES, shards=8, index_shards=8)
    world.clock.seconds += 3_600
    batches = itertools.count()

    def before(operation: str, _: Mapping[str, Any]) -> None:
        if operation == "BatchWriteItem" and next(batches) < 2:
            raise ThrottledError("ThrottlingException", "", (TABLE_KEY_RANGE,))

    world.before = before
    old = [
        structs.replace(event, time=event.time - timedelta(days=30)) for event in world.events(50)
    ]
    assert store.write(old, timeout=10).accepted == 50
    assert world.counts == (8, 8)
    assert world.reported == []
    assert world.layout.current.low < "2026-05-10", "they went to the wider epoch"


def test_old_events_add_no_pressure_to_the_layout_in_force() -> None:
    world = World()
    store = world.store(usage=None)
    store.write(world.events(1), timeout=1)
    store.set_layout(SERIES, shards=8, index_shards=8)
    world.clock.seconds += 3_600
    batches = itertools.count()

    def before(operation: str, _: Mapping[str, Any]) -> None:
        if operation == "BatchWriteItem" and (number := next(batches)) < 2:
            reason = (TABLE_KEY_RANGE, PROVISIONED)[number]
            raise ThrottledError("ThrottlingException", "", (reason,))

    world.before = before
    new = world.events(25)
    old = [structs.replace(event, time=event.time - timedelta(days=30)) for event in new]
    assert store.write([*old, *new], timeout=10).accepted == 50
    assert world.counts == (8, 8)
    assert world.kinds == [ScalingKind.CAPACITY_LIMITED]


def test_a_random_layout_draws_new_shards_for_what_throttled_before_it_grew() -> None:
    world = World()
    store = world.store(Settings(mode=ShardingMode.RANDOM), usage=None)
    events = world.events(1_000, payload_bytes=3_500)
    assert store.write(events, timeout=10).accepted == 1_000
    assert world.counts[0] >= 8
    shards = [
        len(world.kept.partition(keys.partition_key(SERIES, shard)))
        for shard in range(world.counts[0])
    ]
    assert min(shards[:8]) > 0
    assert sum(shards) == 1_000


def test_a_throttled_layout_table_grows_no_series() -> None:
    world = World()
    store = world.store(Settings(layout_ttl=0), usage=None)
    store.write(world.events(1), timeout=1)
    reads = itertools.count(1)

    def before(operation: str, request: Mapping[str, Any]) -> None:
        if operation == "BatchWriteItem":
            raise ThrottledError("ThrottlingException", "", (PROVISIONED,))
        if (operation, request.get("TableName")) == ("GetItem", LAYOUTS) and next(reads) == 3:
            raise ThrottledError("ThrottlingException", "", (TABLE_KEY_RANGE,))

    world.before = before
    store.write(world.events(10), timeout=5)
    assert next(reads) > 5
    assert world.counts == (1, 1)
    assert set(world.kinds) == {ScalingKind.CAPACITY_LIMITED}


def test_capacity_is_reported_even_by_a_write_whose_time_is_up() -> None:
    world = World()
    store = world.store(usage=None)
    store.write(world.events(1), timeout=1)

    def before(operation: str, _: Mapping[str, Any]) -> None:
        if operation == "BatchWriteItem":
            world.clock.seconds += 2
            raise ThrottledError("ThrottlingException", "", (PROVISIONED,))

    world.before = before
    assert store.write(world.events(10), timeout=1).rejected
    assert world.kinds == [ScalingKind.CAPACITY_LIMITED]


def test_many_series_are_relieved_at_the_same_time() -> None:
    world = World()
    together: list[int] = []

    def parallel(tasks: Sequence[Callable[[], T]], /) -> list[T]:
        together.append(len(tasks))
        return one_by_one(tasks)

    store = EventStore(
        world,
        table=EVENTS,
        layouts=LAYOUTS,
        runtime=replace(world.runtime(), parallel=parallel),
        observe=world.reported.append,
    )
    world.before = _hot_until(world, world.clock.seconds + 0.1)
    large = world.events(20, payload_bytes=30_000)
    events = [structs.replace(event, series=f"s-{n}") for n, event in enumerate(large)]
    assert store.write(events, timeout=10).accepted == 20
    # The layouts, the batch, the resharder.
    assert together[:3] == [20, 1, 20]
    assert world.kinds.count(GREW) == 20


def _hot_until(world: World, until: float) -> Callable[[str, Mapping[str, Any]], None]:
    def before(operation: str, _: Mapping[str, Any]) -> None:
        if operation == "BatchWriteItem" and world.clock.seconds < until:
            raise ThrottledError("ThrottlingException", "", (TABLE_KEY_RANGE,))

    return before


def test_a_request_of_many_events_asks_for_one_growth_only() -> None:
    world = World()
    store = world.store(usage=None)
    events: list[Event] = world.events(1_000)
    world.before = _hot_until(world, world.clock.seconds + 0.2)
    assert store.write(events, timeout=10).accepted == 1_000
    assert world.kinds == [GREW]
    assert world.counts[0] == 8
