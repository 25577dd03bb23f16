"""One behaviour on every engine: in memory, and on the real one through boto3."""

from datetime import timedelta
from typing import Any

import pytest

from spillway import Event, InvalidInputError, RefusedError, Settings, ShardingMode
from spillway.dynamodb.port import ConditionFailedError
from spillway.event import MAX_ITEM_BYTES
from spillway.layouts.repository import LayoutRepository
from spillway.writing.preparation import EventValidator
from tests.contract.conftest import Tables
from tests.support.fakes import NOON
from tests.support.stores import DAY, HOUR, event_at, events_every, read_all

START = NOON - 3 * DAY
END = NOON + HOUR
ODD = [
    "a#1",
    "#",
    "\0",
    "a\0b",
    "\n\t",
    "é",
    "日本😀",
    "\U0010ffff",
    '"\\',
    " ",
    "a/b?c&d=%41",
    "'; --",
]


def test_what_was_written_is_read_in_both_orders_from_table_and_index(tables: Tables) -> None:
    store = tables.store(Settings(shards=4, index_shards=2))
    events = events_every(7 * timedelta(minutes=1), 120)
    assert store.write(events).accepted == 120
    for read in ("table", "index"):
        for limit in (37, 1_000):
            query: dict[str, Any] = {"source": read, "limit": limit, "consistent": False}
            assert list(read_all(store, "ORD", START, END, order="asc", **query)) == events
            assert list(read_all(store, "ORD", START, END, order="desc", **query)) == events[::-1]


def test_a_range_takes_its_start_and_leaves_its_end(tables: Tables) -> None:
    store = tables.store()
    store.write(events_every(HOUR, 5))
    page = store.read("ORD", NOON - 4 * HOUR, NOON - 2 * HOUR)
    assert [event.time for event in page.events] == [NOON - 4 * HOUR, NOON - 3 * HOUR]


def test_a_sharding_key_is_read_past_the_other_keys_of_its_shard(tables: Tables) -> None:
    store = tables.store(Settings(shards=2))
    events = [
        event_at(NOON - n * HOUR, f"{n:03}", sharding_key=f"k{n % 5}") for n in range(60, 0, -1)
    ]
    store.write(events)
    for limit in (1, 5, 100):
        found = read_all(store, "ORD", START, END, sharding_key="k3", limit=limit)
        assert list(found) == [event for event in events if event.sharding_key == "k3"]


def test_one_event_is_read_by_its_identity(tables: Tables) -> None:
    store = tables.store(Settings(shards=16))
    written = event_at(sharding_key="k", n=1)
    store.write([written, event_at()])
    assert store.read_one("ORD", NOON, "1", sharding_key="k") == written
    assert store.read_one("ORD", NOON, "2", sharding_key="k") is None
    assert store.read_one("LGA", NOON, "1") is None


def test_writing_again_changes_no_count(tables: Tables) -> None:
    store = tables.store(Settings(shards=8))
    events = events_every(HOUR, 60)
    for _ in range(3):
        assert store.write(events).accepted == 60
        assert tables.count() == 60


def test_a_conflict_is_refused_and_a_retry_of_the_same_event_is_not(tables: Tables) -> None:
    store = tables.store(Settings(shards=8))
    first = [event_at(event_id=str(n), n=n, m=0) for n in range(3)]
    assert store.write(first, on_conflict="reject").accepted == 3
    again = [event_at(event_id=str(n), m=0, n=n) for n in range(3)]
    assert store.write(again, on_conflict="reject").accepted == 3
    store.set_layout("ORD", shards=64)
    changed = [event_at(event_id=str(n), n=n + 1) for n in range(4)]
    result = tables.store().write(changed, on_conflict="reject")
    assert [(each.index, each.code) for each in result.rejected] == [
        (0, "conflict"),
        (1, "conflict"),
        (2, "conflict"),
    ]
    page = store.read("ORD", START, END)
    assert [event.payload for event in page.events] == [
        *({"n": n, "m": 0} for n in range(3)),
        {"n": 4},
    ]


def test_an_expired_event_is_no_conflict(tables: Tables) -> None:
    tables.store(Settings(retention=DAY)).write([event_at(n=1)])
    tables.clock.forward(DAY + HOUR)
    store = tables.store(Settings(retention=7 * DAY))
    assert store.write([event_at(n=2)], on_conflict="reject").accepted == 1
    assert tables.count() == 1


def test_an_event_is_deleted_once(tables: Tables) -> None:
    store = tables.store(Settings(shards=8))
    store.write(events_every(HOUR, 3))
    assert store.delete("ORD", NOON - HOUR, "0000002")
    assert not store.delete("ORD", NOON - HOUR, "0000002")
    assert tables.count() == 2


@pytest.mark.parametrize("series", ODD)
def test_series_of_odd_characters_hold_only_their_own_events(tables: Tables, series: str) -> None:
    store = tables.store(Settings(shards=2))
    neighbours = {name for name in (series, series + "#0", series + "#1", "a") if name}
    for name in neighbours:
        store.write([event_at(NOON - n * HOUR, str(n), series=name, of=name) for n in range(5)])
    for read in ("table", "index"):
        page = store.read(series, START, END, source=read, consistent=False)
        assert [event.payload for event in page.events] == [{"of": series}] * 5


@pytest.mark.parametrize("sharded", [False, True])
def test_ids_and_sharding_keys_of_odd_characters_come_back_in_order(
    tables: Tables, *, sharded: bool
) -> None:
    store = tables.store(Settings(shards=2))
    if sharded:
        events = [event_at(event_id="x", sharding_key=text, n=n) for n, text in enumerate(ODD)]
    else:
        ids = [text for text in ODD if "#" not in text]
        events = [event_at(event_id=text, n=n) for n, text in enumerate(ids)]
    assert store.write(events).accepted == len(events)
    in_order = sorted(events, key=lambda event: f"{event.sharding_key or ''}#{event.id}".encode())
    for order, expected in (("asc", in_order), ("desc", in_order[::-1])):
        for read in ("table", "index"):
            for limit in (1, 100):
                found = read_all(store, "ORD", START, END, order=order, limit=limit, source=read, consistent=False)  # fmt: skip
                assert list(found) == expected
    for event in events:
        assert store.read_one("ORD", NOON, event.id or "", sharding_key=event.sharding_key) == event


def test_payloads_come_back_exactly(tables: Tables) -> None:
    payload = {
        "big": 2**80,
        "float": 0.1 + 0.2,
        "tiny": 5e-324,
        "text": 'é😀"\\\0\n',
        "list": [None, True, {}, []],
        "": {"": ""},
    }
    store = tables.store()
    store.write([event_at(payload=payload)])
    (event,) = store.read("ORD", START, END).events
    assert event.payload == payload


def _largest(series: str) -> Event:
    """Return the event with the largest payload that the library takes."""
    validator = EventValidator(Settings(retention=90 * DAY), NOON.timestamp())
    low, high = MAX_ITEM_BYTES - 4_000, MAX_ITEM_BYTES
    while high - low > 1:
        middle = (low + high) // 2
        try:
            validator.prepare(_of_size(series, middle), "1")
            low = middle
        except InvalidInputError:
            high = middle
    return _of_size(series, low)


def _of_size(series: str, size: int) -> Event:
    return event_at(series=series, text="x" * (size - len('{"text":""}')))


@pytest.mark.parametrize("series", ["ORD", "é" * 512])
def test_the_largest_item_that_the_library_takes_is_taken(tables: Tables, series: str) -> None:
    store = tables.store(Settings(retention=90 * DAY, shards=256, index_shards=256))
    largest = _largest(series)
    assert store.write([largest]).rejected == ()
    assert store.read(series, START, END).events == (largest,)


def test_a_request_of_the_largest_items_is_taken(tables: Tables) -> None:
    store = tables.store(Settings(retention=90 * DAY))
    events = [event_at(NOON - n * HOUR, f"{n:02}", text="x" * 408_000) for n in range(25, 0, -1)]
    assert store.write(events).rejected == ()
    assert list(read_all(store, "ORD", START, END)) == events


def test_expired_events_are_not_returned_though_they_are_there(tables: Tables) -> None:
    store = tables.store(Settings(retention=DAY))
    events = events_every(HOUR, 6)
    store.write(events)
    tables.clock.forward(DAY - 3 * HOUR + timedelta(minutes=1))
    assert tables.count() == 6
    for read in ("table", "index"):
        page = store.read("ORD", START, END, source=read, consistent=False)
        assert list(page.events) == events[4:]


def test_random_mode_is_read_whole(tables: Tables) -> None:
    store = tables.store(Settings(mode=ShardingMode.RANDOM, shards=3))
    events = events_every(HOUR, 40)
    store.write(events)
    assert list(read_all(store, "ORD", START, END, limit=7)) == events


def test_a_layout_is_created_once_and_seen_by_all(tables: Tables) -> None:
    tables.store(Settings(shards=4)).write([event_at()])
    tables.store(Settings(shards=64)).write([event_at(event_id="2")])
    found = LayoutRepository(tables.call, tables.layouts, Settings(), tables.clock.now).read("ORD")
    assert found is not None
    assert found.layout.current.shards == 4
    assert len(tables.store().read("ORD", START, END).events) == 2


def test_a_change_of_layout_hides_nothing(tables: Tables) -> None:
    store = tables.store()
    events = events_every(timedelta(seconds=10), 60)
    for shards in (1, 16, 2):
        store.set_layout("ORD", shards=shards, index_shards=shards)
        store.write(events[:: shards + 1])
        tables.clock.forward(timedelta(seconds=1))
    store.write(events)
    for read in ("table", "index"):
        found = read_all(tables.store(), "ORD", START, END, limit=11, source=read, consistent=False)
        assert list(found) == events


def test_a_condition_that_does_not_hold_changes_nothing(tables: Tables) -> None:
    request = {
        "TableName": tables.layouts,
        "Key": {"series": {"S": "ORD"}},
        "UpdateExpression": "SET #version = :one",
        "ConditionExpression": "attribute_not_exists(#version)",
        "ExpressionAttributeNames": {"#version": "version"},
        "ExpressionAttributeValues": {":one": {"N": "1"}},
    }
    tables.call("UpdateItem", request)
    with pytest.raises(ConditionFailedError):
        tables.call("UpdateItem", {**request, "ExpressionAttributeValues": {":one": {"N": "2"}}})
    found = tables.call("GetItem", {"TableName": tables.layouts, "Key": request["Key"]})
    assert found["Item"]["version"] == {"N": "1"}


@pytest.mark.parametrize(
    ("size", "count"), [(410_000, 1), (1, 26)], ids=["an item over 400 KB", "26 items"]
)
def test_what_dynamodb_does_not_take_is_refused_as_invalid(
    tables: Tables, size: int, count: int
) -> None:
    items = [
        {
            "PK": {"S": "a#0"},
            "SK": {"S": str(n)},
            "GSI1PK": {"S": "a"},
            "payload": {"S": "x" * size},
        }
        for n in range(count)
    ]
    request = {"RequestItems": {tables.events: [{"PutRequest": {"Item": i}} for i in items]}}
    with pytest.raises(RefusedError) as caught:
        tables.call("BatchWriteItem", request)
    assert caught.value.is_invalid
    assert tables.count() == 0


def test_a_table_that_does_not_exist_is_refused(tables: Tables) -> None:
    with pytest.raises(RefusedError, match="ResourceNotFoundException"):
        tables.call("GetItem", {"TableName": "absent", "Key": {"series": {"S": "a"}}})


def test_a_cursor_is_good_on_any_engine(tables: Tables) -> None:
    store = tables.store()
    store.write(events_every(HOUR, 10))
    page = store.read("ORD", START, END, limit=4)
    with pytest.raises(InvalidInputError):
        store.read("LGA", START, END, cursor=page.cursor)
    assert len(tables.store().read("ORD", START, END, cursor=page.cursor).events) == 6
