"""Copies that expire at different times: all ways of reading show the same events, and TTL deletion changes none."""

from collections import Counter
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spillway import Event, EventStore, Settings, ShardingMode, keys
from spillway.timestamps import format_time, to_datetime
from tests.scanning.world import SERIES, World, modes, worlds
from tests.support.fakes import NOON
from tests.support.memory_table import EVENTS
from tests.support.stores import DAY, HOUR, MemoryStore, events_every
from tests.support.strategies import orders

_NOW: Final = int(NOON.timestamp())
_LATER: Final = 3_600  # seconds
_WEEK: Final = 7 * 86_400
Found = list[tuple[str, int]]  # sort keys and shards

expiries = st.sampled_from(
    [None, None, -1, 0, 1, _LATER, 2 * _LATER, _WEEK, _WEEK + 1, 2 * _WEEK]
).map(lambda left: None if left is None else _NOW + left)
copied_worlds = worlds(expiries=expiries)


def _is_live(item: dict[str, Any], now: float) -> bool:
    return "expires" not in item or int(item["expires"]["N"]) > now


def _expected(world: World) -> Found:
    """Return the events of the range that exist, each in the newest epoch's live shard."""
    now = world.memory.clock.now()
    start, end = map(format_time, world.span)
    live: dict[str, set[int]] = {}
    for (key, sort_key), item in world.table.items[EVENTS].items():
        if start <= sort_key < end and _is_live(item, now):
            live.setdefault(sort_key, set()).add(keys.parse_partition_key(key).shard)
    return [
        (sort_key, next(each for each in world.shards_for(sort_key) if each in shards))
        for sort_key, shards in sorted(live.items())
    ]


def _sweep(world: World) -> None:
    """Delete the expired items, as DynamoDB does sooner or later."""
    stored = world.table.items[EVENTS]
    now = world.memory.clock.now()
    world.table.items[EVENTS] = {key: item for key, item in stored.items() if _is_live(item, now)}


def _sort_key(event: Event) -> str:
    assert event.id is not None
    time = event.time.isoformat(timespec="microseconds")[:26] + "Z"
    return keys.sort_key(time, event.sharding_key, event.id)


def _found(events: list[Event]) -> Found:
    return [(_sort_key(event), event.payload["shard"]) for event in events]


def _pages(world: World, between: Callable[[], None], **query: Any) -> Iterator[Event]:
    cursor = None
    while True:
        page = world.store().read(SERIES, *world.span, cursor=cursor, **query)
        yield from page.events
        cursor = page.cursor
        if cursor is None:
            return
        between()


def _pieces(world: World, mode: str, budget: int, between: Callable[[], None]) -> Iterator[Event]:
    cursor = None
    while True:
        export = world.export(mode, cursor, pool=2)
        yield from export.chunk(budget).events
        cursor = export.cursor
        if cursor is None:
            return
        between()


def _one_by_one(world: World, *, consistent: bool) -> list[Event]:
    found = []
    for sort_key in sorted(world.copies):
        time, sharding_key, event_id = keys.parse_sort_key(sort_key)
        event = world.store().read_one(
            SERIES, to_datetime(time), event_id, sharding_key=sharding_key, consistent=consistent
        )
        found += [] if event is None else [event]
    return found


def _nothing() -> None:
    pass


def _check(world: World, limit: int, budget: int) -> None:
    """Compare all ways of reading with what is stored."""
    expected = _expected(world)
    for read in ("table", "index"):
        for order in ("asc", "desc"):
            options: dict[str, Any] = {"source": read, "order": order, "consistent": False}
            found = _found(list(_pages(world, _nothing, limit=limit, **options)))
            assert found == (expected if order == "asc" else expected[::-1]), (read, order)
    for consistent in (True, False):
        assert _found(_one_by_one(world, consistent=consistent)) == expected
        (row,) = world.store().aggregate(
            SERIES, *world.span, fill="zero", field="shard", functions=["count", "sum"],
            consistent=consistent,
        ).rows  # fmt: skip
        assert row["count"] == len(expected)
        assert (row["sum"] or 0) == sum(shard for _, shard in expected)
    for mode in ("shards", "blocks", "round_robin"):
        found = sorted(_found(list(_pieces(world, mode, budget, _nothing))))
        if world.settings.mode is ShardingMode.RANDOM and mode != "round_robin":  # any copy will do
            assert [key for key, _ in found] == [key for key, _ in expected], mode
        else:
            assert found == expected, mode


@given(copied_worlds, st.integers(1, 9), st.integers(1, 600))
def test_all_reads_show_the_events_that_have_a_live_copy_before_and_after_deletion(
    world: World, limit: int, budget: int
) -> None:
    before = _expected(world)
    _check(world, limit, budget)
    _sweep(world)
    assert _expected(world) == before
    _check(world, limit, budget)


@given(copied_worlds, st.integers(1, 5), orders, st.sampled_from(["table", "index"]), st.data())
def test_pages_hold_what_exists_all_the_while_though_time_goes_on_between_them(
    world: World, limit: int, order: str, read: str, data: st.DataObject
) -> None:
    def collect() -> Iterator[Event]:
        return _pages(
            world, passing(world, data), limit=limit, order=order, source=read, consistent=False
        )

    _check_while_time_passes(world, collect)


@given(copied_worlds, modes, st.integers(1, 400), st.data())
def test_exports_hold_what_exists_all_the_while_though_time_goes_on_between_their_pieces(
    world: World, mode: str, budget: int, data: st.DataObject
) -> None:
    def collect() -> Iterator[Event]:
        return _pieces(world, mode, budget, passing(world, data))

    _check_while_time_passes(world, collect)


def passing(world: World, data: st.DataObject) -> Callable[[], None]:
    """Return what lets time pass, and maybe has expired items deleted."""

    def let_pass() -> None:
        world.memory.clock.forward(timedelta(seconds=data.draw(st.sampled_from([0, 1, _LATER]))))
        if data.draw(st.booleans()):
            _sweep(world)

    return let_pass


def _check_while_time_passes(world: World, collect: Callable[[], Iterator[Event]]) -> None:
    at_first = {sort_key for sort_key, _ in _expected(world)}
    counts = Counter(map(_sort_key, collect()))
    assert {sort_key for sort_key, _ in _expected(world)} <= set(counts) <= at_first
    assert set(counts.values()) <= {1}


def _resent() -> MemoryStore:
    """Return a store whose events were kept for ever, and sent again once they expire after an hour."""
    events = events_every(timedelta(seconds=10), 16, series=SERIES)
    memory = MemoryStore()
    assert not memory.store.write(events).rejected
    later = memory.another(Settings(retention=HOUR))
    later.set_layout(SERIES, shards=8)
    assert not later.write(events).rejected
    assert len(memory.stored) > 16
    return memory


Count = Callable[[EventStore], int]
WAYS: dict[str, Count] = {
    "table": lambda store: len(store.read(SERIES, NOON - DAY, NOON).events),
    "descending": lambda store: len(store.read(SERIES, NOON - DAY, NOON, order="desc").events),
    "index": lambda store: len(
        store.read(SERIES, NOON - DAY, NOON, source="index", consistent=False).events
    ),
    "aggregate": lambda store: int(
        sum(row["count"] or 0 for row in store.aggregate(SERIES, NOON - DAY, NOON).rows)
    ),
    "one": lambda store: sum(
        store.read_one(SERIES, event.time, event.id or "") is not None
        for event in events_every(timedelta(seconds=10), 16, series=SERIES)
    ),
    **{
        mode: lambda store, mode=mode: len(list(store.export(SERIES, NOON - DAY, NOON, mode=mode)))  # type: ignore[misc]
        for mode in ("shards", "blocks", "round_robin")
    },
}


@pytest.mark.parametrize("way", WAYS)
def test_events_that_were_kept_for_ever_outlive_copies_that_expire(way: str) -> None:
    memory = _resent()
    memory.clock.forward(2 * HOUR)
    # Those whose two shards are the same would be overwritten, and expire.
    lasting = sum("expires" not in item for item in memory.stored)
    assert lasting >= 10
    assert WAYS[way](memory.another()) == lasting


@pytest.mark.parametrize("mode", ["shards", "blocks", "round_robin"])
@pytest.mark.parametrize("pieces", range(1, 4))
def test_an_export_that_pauses_until_copies_have_expired_loses_no_event_that_has_not(
    mode: str, pieces: int
) -> None:
    memory = _resent()
    lasting = {item["SK"]["S"] for item in memory.stored if "expires" not in item}
    export = memory.another().export(SERIES, NOON - DAY, NOON, mode=mode, pool=2)
    found = [event for _ in range(pieces) for event in export.chunk(100).events]
    memory.clock.forward(2 * HOUR)
    items = memory.table.items[EVENTS]
    for key in [key for key, item in items.items() if "expires" in item]:
        del items[key]
    rest = memory.another().export(SERIES, NOON - DAY, NOON, mode=mode, cursor=export.cursor)
    counts = Counter(map(_sort_key, [*found, *rest]))
    assert lasting <= set(counts)
    assert set(counts.values()) == {1}


def test_deleting_an_event_that_has_expired_finds_none() -> None:
    memory = MemoryStore(Settings(retention=HOUR))
    (event,) = events_every(timedelta(minutes=1), 1, series=SERIES)
    memory.store.write([event])
    memory.clock.forward(2 * HOUR)
    assert not memory.store.delete(SERIES, event.time, event.id or "")
    assert memory.stored == []
