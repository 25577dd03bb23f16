import tracemalloc
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import orjson
import pytest

from spillway import Settings, StorageError
from spillway.dynamodb.port import Call
from spillway.layouts.cache import MAX_WEIGHT, LayoutCache
from spillway.layouts.codec import decode_layout, encode_layout
from spillway.layouts.model import Layout, Snapshot
from spillway.layouts.repository import LayoutRepository
from spillway.timestamps import format_time
from tests.support.fakes import NOON, FakeClock
from tests.support.layouts import epoch, layout_of, store_layout
from tests.support.memory_table import LAYOUTS, MemoryTable, memory_table
from tests.support.stores import HOUR

OLD = epoch(1, shards=4, close=NOON - HOUR)
WIDE = epoch(2, shards=16, low=NOON - 3 * HOUR, close=NOON)
NARROW = epoch(3, shards=2, low=NOON - HOUR)
GROWN = layout_of(OLD, WIDE, NARROW)
MICRO = timedelta(microseconds=1)


@pytest.mark.parametrize(
    ("time", "ids"),
    [
        (NOON + HOUR, [3]),
        (NOON + MICRO, [3]),
        (NOON, [3, 2]),
        (NOON - HOUR, [3, 2, 1]),
        (NOON - HOUR - MICRO, [2, 1]),
        (NOON - 3 * HOUR, [2, 1]),
        (NOON - 3 * HOUR - MICRO, [1]),
        (datetime(1, 1, 1, tzinfo=UTC), [1]),
    ],
)
def test_epochs_cover_their_interval_both_ends_included_newest_first(
    time: datetime, ids: list[int]
) -> None:
    assert [each.id for each in GROWN.covering(format_time(time))] == ids


@pytest.mark.parametrize(
    ("start", "end", "ids"),
    [
        (NOON + MICRO, NOON + HOUR, [3]),
        (NOON, NOON + HOUR, [2, 3]),
        (NOON - HOUR, NOON, [1, 2, 3]),
        (NOON - HOUR + MICRO, NOON, [2, 3]),
        (NOON - 2 * HOUR, NOON - HOUR, [1, 2]),
        (NOON - 2 * HOUR, NOON - HOUR + MICRO, [1, 2, 3]),
        (NOON - 5 * HOUR, NOON - 3 * HOUR, [1]),
        (NOON - 5 * HOUR, NOON - 3 * HOUR + MICRO, [1, 2]),
    ],
)
def test_a_range_without_its_end_meets_the_epochs_that_may_hold_its_events(
    start: datetime, end: datetime, ids: list[int]
) -> None:
    assert [each.id for each in GROWN.meeting(format_time(start), format_time(end))] == ids


def test_an_event_may_lie_in_one_shard_of_each_covering_epoch_the_newest_first() -> None:
    routing = 0b1111
    assert GROWN.candidates(format_time(NOON + HOUR), routing) == [1]
    assert GROWN.candidates(format_time(NOON - HOUR), routing) == [1, 15, 3]
    assert GROWN.candidates(format_time(NOON - 4 * HOUR), routing) == [3]


def test_in_random_mode_an_event_may_lie_in_any_shard() -> None:
    layout = layout_of(epoch(shards=3, mode="random"))
    assert sorted(layout.candidates(format_time(NOON), 7)) == [0, 1, 2]


def test_a_snapshot_reaches_its_epochs_own_horizon_less_two_clock_errors() -> None:
    loaded = Snapshot(layout_of(epoch(horizon=60)), NOON.timestamp())
    until = loaded.writable_until(clock_error=5)
    assert until == format_time(NOON + timedelta(seconds=50))
    assert loaded.epoch_for(until, until) is not None
    beyond = format_time(NOON + timedelta(seconds=50) + MICRO)
    assert loaded.epoch_for(beyond, until) is None


def test_retired_epochs_may_be_written_up_to_their_close() -> None:
    loaded = Snapshot(GROWN, NOON.timestamp())
    until = loaded.writable_until(clock_error=5)
    chosen = loaded.epoch_for(format_time(NOON - 2 * HOUR), until)
    assert chosen == WIDE


@pytest.mark.parametrize(
    "epochs",
    [
        (epoch(),),
        (epoch(shards=256, index_shards=2, bucket="minute"),),
        (epoch(shards=3, mode="random", bucket="day", horizon=86_400),),
        (epoch(horizon=600.123456789),),
        (epoch(horizon=1_234_567.5),),
        (epoch(horizon=0.000001),),
        (OLD, WIDE, NARROW),
        (replace(WIDE, earlier_shards=(4, 8)), NARROW),
    ],
)
def test_layouts_come_back_from_their_item_unchanged(epochs: tuple[Any, ...]) -> None:
    layout = replace(layout_of(*epochs), history=("1000.500:4", "2000.000:16"))
    assert decode_layout(encode_layout(layout)) == layout


def test_the_item_has_the_attributes_that_people_and_older_tools_read() -> None:
    layout = replace(GROWN, version=7, last_updated=1_717_243_200.25, history=("1.000:4",))
    item = encode_layout(layout)
    assert item["series"] == {"S": "ORD"}
    assert item["number_of_shards"] == {"N": "2"}
    assert item["last_updated"] == {"N": "1717243200.250"}
    assert item["shard_history"] == {"SS": ["1.000:4"]}
    assert item["version"] == {"N": "7"}
    assert [each["M"]["id"]["N"] for each in item["epochs"]["L"]] == ["1", "2", "3"]
    first, _, last = (each["M"] for each in item["epochs"]["L"])
    assert "low" not in first
    assert first["close"] == {"S": "2026-06-01T11:00:00.000000Z"}
    assert last["low"] == {"S": "2026-06-01T11:00:00.000000Z"}
    assert "close" not in last


@pytest.mark.parametrize(
    ("shards", "index_shards", "listed"),
    [(1, 1, False), (2, 1, True), (1, 2, True), (16, 4, True)],
)
def test_only_series_with_several_shards_are_in_the_sparse_index(
    shards: int, index_shards: int, *, listed: bool
) -> None:
    item = encode_layout(layout_of(epoch(shards=shards, index_shards=index_shards)))
    assert ("sharded" in item) is listed


@pytest.fixture
def table() -> MemoryTable:
    return memory_table()


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


def _store(call: Call, clock: FakeClock, **settings: Any) -> LayoutRepository:
    return LayoutRepository(call, LAYOUTS, Settings(**settings), clock.now)


def test_a_new_series_gets_the_configured_layout(table: MemoryTable, clock: FakeClock) -> None:
    store = _store(table, clock, shards=4, index_shards=2, horizon=900)
    created = store.read_or_create("ORD")
    assert created == store.read("ORD")
    (only,) = created.layout.epochs
    assert (only.shards, only.index_shards, only.horizon) == (4, 2, 900)
    assert (created.layout.version, created.loaded_at) == (1, NOON.timestamp())
    assert created.layout.history == (f"{NOON.timestamp():.3f}:4",)


def test_every_read_of_a_layout_is_strongly_consistent(
    table: MemoryTable, clock: FakeClock
) -> None:
    store = _store(table, clock)
    store.read_or_create("ORD")
    store.read("ORD")
    assert {request["ConsistentRead"] for request in table.requests_of("GetItem")} == {True}


def test_of_racing_creators_the_losers_go_on_with_what_the_winner_wrote(
    table: MemoryTable, clock: FakeClock
) -> None:
    winner = _store(table, clock, shards=4)

    def late(operation: str, request: Any, /) -> dict[str, Any]:
        if operation == "UpdateItem":
            winner.read_or_create("ORD")
        return table(operation, request)

    lost = _store(late, clock, shards=64).read_or_create("ORD")
    assert lost.layout.current.shards == 4
    assert lost == winner.read("ORD")
    assert table.counts["UpdateItem"] == 2


def test_a_snapshot_is_as_old_as_the_request_that_fetched_it(
    table: MemoryTable, clock: FakeClock
) -> None:
    _store(table, clock).read_or_create("ORD")
    began = clock.seconds

    def slow(operation: str, request: Any, /) -> dict[str, Any]:
        clock.sleep(3)
        return table(operation, request)

    found = _store(slow, clock).read("ORD")
    assert found is not None
    assert found.loaded_at == began


@pytest.mark.parametrize(
    "damage",
    [
        {"epochs": {"L": []}},
        {"epochs": {"S": "x"}},
        {"version": {"N": "one"}},
        {"epochs": {"L": [{"M": {"id": {"N": "1"}}}]}},
    ],
)
def test_a_damaged_layout_is_an_error_of_the_storage(
    table: MemoryTable, clock: FakeClock, damage: dict[str, Any]
) -> None:
    store_layout(table, [epoch()])
    table.items[LAYOUTS]["ORD",].update(damage)
    with pytest.raises(StorageError, match="LayoutDamaged"):
        _store(table, clock).read("ORD")


def _snapshot(version: int, loaded_at: float, series: str = "ORD") -> Snapshot:
    layout = Layout(series=series, version=version, last_updated=0, epochs=(epoch(),))
    return Snapshot(layout, loaded_at)


def test_cached_snapshots_are_fresh_for_their_time_to_live_by_the_wall_clock(
    clock: FakeClock,
) -> None:
    cache = LayoutCache(10, clock.now)
    kept = _snapshot(1, clock.seconds)
    cache.keep(kept)
    clock.seconds += 9.99
    assert cache.fresh("ORD") == kept
    clock.seconds += 0.01
    assert cache.fresh("ORD") is None
    assert cache.latest("ORD") == kept


def test_a_snapshot_from_the_future_is_not_trusted(clock: FakeClock) -> None:
    cache = LayoutCache(10, clock.now)
    cache.keep(_snapshot(1, clock.seconds))
    clock.seconds -= 1
    assert cache.fresh("ORD") is None


def test_answers_that_arrive_out_of_order_leave_the_later_version(clock: FakeClock) -> None:
    cache = LayoutCache(10, clock.now)
    cache.keep(_snapshot(2, clock.seconds))
    cache.keep(_snapshot(1, clock.seconds))
    assert cache.latest("ORD") == _snapshot(2, clock.seconds)
    clock.seconds += 20
    cache.keep(_snapshot(1, clock.seconds))  # a table restored from a backup counts anew
    assert cache.fresh("ORD") == _snapshot(1, clock.seconds)


def test_the_min_recently_used_snapshot_is_given_up_first(clock: FakeClock) -> None:
    cache = LayoutCache(10, clock.now, max_series=2)
    cache.keep(_snapshot(1, clock.seconds, "a"))
    cache.keep(_snapshot(1, clock.seconds, "b"))
    cache.latest("a")
    cache.keep(_snapshot(1, clock.seconds, "c"))
    assert [cache.latest(series) is not None for series in "abc"] == [True, False, True]


def _heavy(series: str, epochs: int) -> Snapshot:
    return _from_response(_heavy_response(series, epochs))


def _from_response(response: bytes) -> Snapshot:
    return Snapshot(decode_layout(orjson.loads(response)), 0.0)


def _heavy_response(series: str, epochs: int) -> bytes:
    layout = Layout(
        series=series,
        version=1,
        last_updated=0,
        epochs=tuple(
            epoch(number, low=NOON + number * HOUR, close=NOON + (number + 1) * HOUR)
            for number in range(epochs)
        ),
        history=tuple(f"{number}.000:{epochs}" for number in range(50)),
    )
    return orjson.dumps(encode_layout(layout))


def test_layouts_of_many_epochs_are_kept_up_to_a_weight(clock: FakeClock) -> None:
    cache = LayoutCache(10, clock.now, max_weight=1_000)
    for number in range(100):
        cache.keep(_heavy(str(number), 99))
        cache.keep(_heavy(str(number), 99))  # one series weighs once
    kept = [number for number in range(100) if cache.latest(str(number)) is not None]
    assert kept == [94, 95, 96, 97, 98, 99], "of 150 each"
    cache.keep(_heavy("giant", 2_000))
    assert cache.latest("giant") is not None, "the latest is kept whatever it weighs"
    assert cache.latest("99") is None
    cache.keep(_heavy("small", 1))
    assert cache.latest("giant") is None


def test_the_cache_of_layouts_stays_within_64_megabytes(clock: FakeClock) -> None:
    part = 50  # of the default bound, so of the memory
    cache = LayoutCache(10, clock.now, max_weight=MAX_WEIGHT // part)
    responses = [_heavy_response(str(number), 100) for number in range(80)]
    tracemalloc.start()
    try:
        for response in responses:
            cache.keep(_from_response(response))
        held, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert held * part < 64_000_000
