import threading
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from spillway import (
    Event,
    EventStore,
    InvalidInputError,
    OutcomeUnknownError,
    Page,
    RefusedError,
    Settings,
    ShardingMode,
    ThrottledError,
    UnreachableError,
)
from spillway.dynamodb.port import Call
from spillway.keys import INDEX_NAME
from tests.support.fakes import NOON
from tests.support.faults import Fault, FaultyCall
from tests.support.layouts import epoch, store_layout
from tests.support.memory_table import EVENTS
from tests.support.stores import DAY, HOUR, MemoryStore, event_at, events_every, read_all

MINUTE = timedelta(minutes=1)
START = NOON - 30 * DAY


def _written(events: list[Event], settings: Settings | None = None) -> MemoryStore:
    memory = MemoryStore(settings or Settings())
    result = memory.store.write(events)
    assert not result.rejected
    memory.table.forget_calls()
    return memory


def _ids(page: Page) -> list[str | None]:
    return [event.id for event in page.events]


def test_an_unknown_series_is_an_empty_page() -> None:
    memory = MemoryStore()
    for read in ("table", "index"):
        page = memory.store.read("ORD", START, NOON, source=read, consistent=False)
        assert (page.events, page.cursor) == ((), None)
    assert memory.store.read_one("ORD", NOON, "1") is None
    assert "UpdateItem" not in memory.table.counts


def test_a_page_starts_at_from_and_ends_before_to() -> None:
    memory = _written(events_every(HOUR, 5))
    page = memory.store.read("ORD", NOON - 4 * HOUR, NOON - 2 * HOUR)
    assert [event.time for event in page.events] == [NOON - 4 * HOUR, NOON - 3 * HOUR]
    assert page.cursor is None


def test_a_page_that_takes_the_last_event_has_no_cursor() -> None:
    memory = _written(events_every(HOUR, 5))
    assert memory.store.read("ORD", START, NOON, limit=5).cursor is None
    first = memory.store.read("ORD", START, NOON, limit=4)
    assert first.cursor is not None
    rest = memory.store.read("ORD", START, NOON, limit=4, cursor=first.cursor)
    assert (len(rest.events), rest.cursor) == (1, None)


def test_events_of_one_time_come_by_sharding_key_and_id() -> None:
    events = [event_at(event_id=name, sharding_key=key) for name in "ba" for key in ("k", "j")]
    memory = _written([*events, event_at(event_id="zz"), event_at(event_id="aa")])
    page = memory.store.read("ORD", NOON, NOON + HOUR)
    assert [(each.sharding_key, each.id) for each in page.events] == [
        (None, "aa"),
        ("j", "a"),
        ("j", "b"),
        ("k", "a"),
        ("k", "b"),
        (None, "zz"),
    ]


@pytest.mark.parametrize("order", ["asc", "desc"])
@pytest.mark.parametrize("read", ["table", "index"])
@pytest.mark.parametrize("limit", [1, 7, 1_000])
def test_paging_yields_every_event_once_in_order(order: str, read: str, limit: int) -> None:
    events = events_every(7 * MINUTE, 60)
    memory = _written(events, Settings(shards=4, index_shards=2))
    expected = events if order == "asc" else events[::-1]
    found = read_all(
        memory.store, "ORD", START, NOON, order=order, source=read, limit=limit, consistent=False
    )
    assert list(found) == expected


def test_a_page_ends_before_its_budget_of_bytes_is_passed() -> None:
    events = [event_at(NOON - n * HOUR, str(n), text="x" * 1_000) for n in range(1, 21)]
    memory = _written(events, Settings(page_bytes=5_300))
    page = memory.store.read("ORD", START, NOON, limit=1_000)
    assert (len(page.events), page.cursor is None) == (5, False)
    assert len(list(read_all(memory.store, "ORD", START, NOON, limit=1_000))) == 20


def test_an_event_over_the_budget_is_a_page_by_itself() -> None:
    memory = _written(events_every(HOUR, 3), Settings(page_bytes=1))
    pages = [memory.store.read("ORD", START, NOON)]
    while pages[-1].cursor:
        pages.append(memory.store.read("ORD", START, NOON, cursor=pages[-1].cursor))
    assert [len(page.events) for page in pages] == [1, 1, 1]


def test_the_budget_is_counted_as_the_caller_measures() -> None:
    memory = _written(events_every(HOUR, 10), Settings(page_bytes=100))
    page = memory.store.read("ORD", START, NOON, measure=lambda record: 30 + 0 * len(record))
    assert len(page.events) == 3


def test_large_events_are_paged_over_dynamodbs_own_page_limit() -> None:
    events = [event_at(NOON - n * HOUR, f"{n}", text="x" * 300_000) for n in range(30, 0, -1)]
    memory = _written(events, Settings(shards=2))
    assert list(read_all(memory.store, "ORD", START, NOON)) == events


@pytest.mark.parametrize("order", ["asc", "desc"])
@pytest.mark.parametrize("limit", [1, 5, 100])
@pytest.mark.parametrize("read", ["table", "index"])
def test_a_sharding_key_passes_over_the_other_keys_and_goes_on(
    order: str, limit: int, read: str
) -> None:
    mine = [
        event_at(NOON - n * HOUR, f"m{n}", sharding_key="LGA", text="x" * 9_000)
        for n in (1, 200, 390)
    ]
    others = [
        event_at(NOON - n * HOUR, f"o{n}", sharding_key="JFK", text="x" * 9_000)
        for n in range(1, 400)
    ]
    memory = _written([*mine, *others, event_at(NOON - 2 * HOUR, "LGA")])
    found = read_all(
        memory.store,
        "ORD",
        START,
        NOON,
        order=order,
        limit=limit,
        sharding_key="LGA",
        source=read,
        consistent=False,
    )
    assert list(found) == (mine[::-1] if order == "asc" else mine)


def test_a_sharding_key_reads_only_its_shard() -> None:
    events = [
        event_at(NOON - n * MINUTE, str(n), sharding_key=f"key-{n % 9}") for n in range(1, 90)
    ]
    memory = _written(events, Settings(shards=64))
    page = memory.store.read("ORD", START, NOON, sharding_key="key-3")
    assert len(page.events) == 10
    assert len({request["ExpressionAttributeValues"][":p"]["S"] for request in memory.table.requests_of("Query")}) == 1  # fmt: skip


def test_expired_events_are_never_returned() -> None:
    events = events_every(HOUR, 10)
    memory = _written(events, Settings(retention=DAY))
    memory.clock.forward(DAY - 5 * HOUR + MINUTE)  # nothing has swept the table
    assert len(memory.stored) == 10
    for read in ("table", "index"):
        page = memory.store.read("ORD", START, NOON, source=read, consistent=False)
        assert list(page.events) == events[6:]
    assert memory.store.read_one("ORD", events[5].time, events[5].id or "") is None
    assert memory.store.read_one("ORD", events[6].time, events[6].id or "") == events[6]


def test_expired_events_take_no_place_on_a_page() -> None:
    events = events_every(HOUR, 10)
    memory = _written(events, Settings(retention=DAY))
    memory.clock.forward(DAY - 5 * HOUR + MINUTE)
    page = memory.store.read("ORD", START, NOON, limit=2)
    assert list(page.events) == events[6:8]


def test_an_event_expires_at_the_second_that_is_stored() -> None:
    memory = _written([event_at()], Settings(retention=DAY))
    expires = int(memory.stored[0]["expires"]["N"])
    memory.clock.seconds = expires - 0.001
    assert memory.store.read("ORD", START, NOON + HOUR).events
    memory.clock.seconds = expires
    assert not memory.store.read("ORD", START, NOON + HOUR).events


def test_random_mode_reads_all_shards() -> None:
    numbers = iter([0.1, 0.5, 0.9] * 100)
    memory = MemoryStore(Settings(mode=ShardingMode.RANDOM, shards=3), random=lambda: next(numbers))
    events = events_every(HOUR, 30)
    memory.store.write(events)
    assert len({key for key, _ in memory.table.items[EVENTS]}) == 3
    assert list(read_all(memory.store, "ORD", START, NOON, limit=7)) == events
    one = events[17]
    assert memory.store.read_one("ORD", one.time, one.id or "") == one


def test_random_mode_returns_an_event_written_twice_once() -> None:
    number = 0.1
    memory = MemoryStore(Settings(mode=ShardingMode.RANDOM, shards=3), random=lambda: number)
    memory.store.write([event_at()])
    number = 0.9
    memory.store.write([event_at()])
    assert len(memory.stored) == 2
    assert _ids(memory.store.read("ORD", START, NOON + HOUR)) == ["1"]


def test_a_series_that_grew_and_shrank_is_read_whole_and_once() -> None:
    memory = MemoryStore()
    events = events_every(MINUTE, 240)
    first = epoch(1, shards=1)
    store_layout(memory.table, [first])
    memory.another().write(events)
    first = replace(first, close="2026-06-01T11:00:00.000000Z")
    second = epoch(2, shards=16, index_shards=4, low=NOON - 2 * HOUR)
    store_layout(memory.table, [first, second])
    memory.another().write(events[120:])
    third = epoch(3, shards=2, low=NOON - HOUR)
    second = replace(second, close="2026-06-01T12:00:00.000000Z")
    store_layout(memory.table, [first, second, third])
    memory.another().write(events[180:])
    assert len(memory.stored) > 300
    for read in ("table", "index"):
        found = read_all(
            memory.another(), "ORD", START, NOON, source=read, limit=17, consistent=False
        )
        assert list(found) == events


def test_the_copy_under_the_newest_covering_epoch_wins() -> None:
    memory = MemoryStore()
    store_layout(memory.table, [epoch(1, shards=16)])
    old = [replace_payload(event, "old") for event in events_every(MINUTE, 30)]
    memory.another().write(old)
    store_layout(
        memory.table, [epoch(1, shards=16, close=NOON), epoch(2, shards=4, low=NOON - HOUR)]
    )
    new = [replace_payload(event, "new") for event in events_every(MINUTE, 30)]
    memory.another().write(new)
    assert len(memory.stored) > 30
    for limit in (1, 2, 3, 4, 100):
        for read in ("table", "index"):
            query: dict[str, Any] = {"limit": limit, "source": read, "consistent": False}
            assert list(read_all(memory.another(), "ORD", NOON - HOUR, NOON, **query)) == new
    for event in new:
        assert memory.another().read_one("ORD", event.time, event.id or "") == event


def replace_payload(event: Event, text: str) -> Event:
    return event_at(event.time, event.id, text=text)


def test_a_cursor_outlives_a_change_of_layout_and_of_source() -> None:
    memory = MemoryStore()
    store_layout(memory.table, [epoch(1)])
    events = events_every(MINUTE, 40)
    memory.store.write(events)
    page = memory.store.read("ORD", START, NOON, limit=10, source="table", consistent=False)
    store_layout(memory.table, [epoch(1, close=NOON), epoch(2, shards=8, low=NOON - HOUR)])
    memory.another().write([event_at(NOON - 35 * MINUTE + timedelta(seconds=1), "before")])
    memory.another().write([event_at(NOON - 5 * MINUTE + timedelta(seconds=1), "after")])
    rest = list(page.events)
    for read in ("index", "table", "index"):
        page = memory.another().read(
            "ORD", START, NOON, limit=12, cursor=page.cursor, source=read, consistent=False
        )
        rest += page.events
    assert page.cursor is None
    assert [event.id for event in rest if event.id != "after"] == [event.id for event in events]
    assert "after" in [event.id for event in rest]


def test_the_index_is_read_from_the_cursors_bucket_on() -> None:
    memory = _written(events_every(HOUR, 100))
    for order in ("asc", "desc"):
        page = memory.store.read(
            "ORD", NOON - 100 * HOUR, NOON, limit=90, order=order, source="index", consistent=False
        )
        memory.table.forget_calls()
        query = {"limit": 5, "order": order, "source": "index", "consistent": False}
        memory.store.read("ORD", NOON - 100 * HOUR, NOON, cursor=page.cursor, **query)  # type: ignore[arg-type]
        assert memory.table.counts["Query"] < 12


def test_the_table_is_read_by_the_layouts_from_the_cursor_on() -> None:
    memory = MemoryStore()
    store_layout(memory.table, [epoch(1, shards=64, close=NOON - 3 * HOUR), epoch(2, low=NOON - 3 * HOUR)])  # fmt: skip
    memory.store.write(events_every(HOUR, 4))
    page = memory.store.read("ORD", START, NOON, limit=3)
    memory.table.forget_calls()
    assert len(memory.store.read("ORD", START, NOON, cursor=page.cursor).events) == 1
    assert memory.table.counts["Query"] == 1


def test_a_page_from_one_shard_takes_one_query_and_one_layout_read_at_the_same_time() -> None:
    memory = _written(events_every(MINUTE, 300))
    page = memory.another().read("ORD", START, NOON, limit=100)
    assert len(page.events) == 100
    assert memory.table.counts == {"GetItem": 1, "Query": 1}


def test_a_page_from_sixteen_shards_takes_about_one_query_a_shard() -> None:
    memory = _written(events_every(MINUTE, 3_000), Settings(shards=16))
    memory.store.read("ORD", START, NOON, limit=1_000)
    assert memory.table.counts["Query"] <= 24


def test_consistent_reads_ask_consistently_for_events_and_layout() -> None:
    memory = _written(events_every(MINUTE, 3))
    memory.store.read("ORD", START, NOON, consistent=True)
    memory.store.read_one("ORD", NOON - MINUTE, "0000002", consistent=True)
    assert all(request["ConsistentRead"] for _, request in memory.table.requests)
    memory.table.forget_calls()
    memory.store.read("ORD", START, NOON, consistent=False)
    assert not any(r.get("ConsistentRead") for r in memory.table.requests_of("Query"))


def test_a_consistent_read_sees_a_layout_that_changed_after_it_was_cached() -> None:
    memory = _written(events_every(MINUTE, 3))
    memory.store.read("ORD", START, NOON)
    store_layout(memory.table, [epoch(1, close=NOON), epoch(2, shards=64, low=NOON - HOUR)])
    memory.another().write([event_at(NOON - MINUTE, f"more-{n}") for n in range(30)])
    assert len(memory.store.read("ORD", START, NOON).events) == 33


def test_index_reads_query_the_index_and_never_consistently() -> None:
    memory = _written(events_every(HOUR, 3))
    memory.store.read("ORD", NOON - 3 * HOUR, NOON, source="index", consistent=False)
    queries = memory.table.requests_of("Query")
    assert {query.get("IndexName") for query in queries} == {INDEX_NAME}
    assert not any("ConsistentRead" in query for query in queries)


def test_an_index_without_payloads_is_not_read() -> None:
    memory = MemoryStore(Settings(index_has_payload=False))
    with pytest.raises(InvalidInputError, match="no payloads"):
        memory.store.read("ORD", START, NOON, source="index", consistent=False)


def _one_shard_fails(call: Call, error: Exception) -> Call:
    def failing(operation: str, request: Any, /) -> dict[str, Any]:
        values = request.get("ExpressionAttributeValues", {})
        if operation == "Query" and values[":p"]["S"].endswith("#2"):
            raise error
        return call(operation, request)

    return failing


@pytest.mark.parametrize(
    "error",
    [
        ThrottledError("ThrottlingException", "hot"),
        UnreachableError("EndpointConnectionError", "refused"),
        OutcomeUnknownError("ReadTimeoutError", "late"),
        RefusedError("AccessDeniedException", "no"),
    ],
)
@pytest.mark.parametrize("read", ["table", "index"])
def test_the_error_of_one_shard_is_the_error_of_the_read(error: Exception, read: str) -> None:
    memory = _written(events_every(HOUR, 40), Settings(shards=4, index_shards=4))
    memory.wrap = lambda call: _one_shard_fails(call, error)
    with pytest.raises(type(error)) as caught:
        memory.another().read("ORD", START, NOON, source=read, consistent=False)
    assert caught.value is error


@pytest.mark.parametrize(
    "faults", [[Fault.THROTTLED] * 3, [Fault.NONE, Fault.LOST_REPLY, Fault.UNREACHABLE]]
)
def test_reads_that_fail_on_their_way_are_tried_again(faults: list[Fault]) -> None:
    events = events_every(HOUR, 10)
    memory = _written(events)
    memory.wrap = lambda call: FaultyCall(call, faults)
    assert list(memory.another().read("ORD", START, NOON).events) == events


def _slow(memory: MemoryStore, seconds: float) -> EventStore:
    def wait(_: str) -> None:
        memory.clock.seconds += seconds

    memory.wrap = lambda call: FaultyCall(call, [], on_call=wait)
    return memory.another()


@pytest.mark.parametrize("order", ["asc", "desc"])
@pytest.mark.parametrize(
    "query",
    [
        {"source": "index", "consistent": False},
        {"sharding_key": "mine"},
    ],
)
def test_a_sparse_range_ends_its_page_in_time_and_goes_on_from_there(
    order: str, query: dict[str, Any]
) -> None:
    ends = [NOON - 500 * HOUR, NOON - HOUR]
    mine = [event_at(time, str(n), sharding_key="mine") for n, time in enumerate(ends)]
    others = [
        event_at(NOON - n * HOUR, f"o{n}", sharding_key="other", text="x" * 60_000)
        for n in range(1, 500)
    ]
    if "sharding_key" not in query:
        others = []
    memory = _written([*mine, *others])
    store = _slow(memory, 0.5)
    found: list[Event] = []
    start, cursor, pages = NOON - 500 * HOUR, None, 0
    while pages == 0 or cursor is not None:
        began = memory.clock.seconds
        page = store.read("ORD", start, NOON, order=order, cursor=cursor, timeout=10, **query)
        assert memory.clock.seconds - began < 64 * 0.5 + 10
        found += page.events
        cursor = page.cursor
        pages += 1
        assert pages < 200
    assert found == (mine if order == "asc" else mine[::-1])
    assert pages > 2


def test_a_read_of_everything_there_could_be_ends_in_time() -> None:
    memory = _written([event_at()])
    store = _slow(memory, 0.01)
    began = memory.clock.seconds
    page = store.read(
        "ORD",
        datetime(1, 1, 1, tzinfo=UTC),
        datetime(9999, 12, 31, tzinfo=UTC),
        source="index",
        consistent=False,
        timeout=10,
    )
    assert page.cursor is not None
    assert memory.clock.seconds - began < 10


def test_many_shards_that_fail_slowly_fail_in_time() -> None:
    memory = _written(events_every(MINUTE, 100), Settings(shards=256))
    memory.clock.seconds += 3_600
    began = memory.clock.seconds

    def wait(_: str) -> None:
        memory.clock.seconds += 4

    memory.wrap = lambda call: FaultyCall(call, [Fault.UNREACHABLE] * 10_000, on_call=wait)
    with pytest.raises(UnreachableError):
        memory.another().read("ORD", START, NOON, timeout=10)
    assert memory.clock.seconds - began < 20


def test_real_threads_read_the_same_as_one() -> None:
    events = events_every(MINUTE, 500)
    memory = _written(events, Settings(shards=16, index_shards=4))
    lock = threading.Lock()

    def locked(operation: str, request: Any, /) -> dict[str, Any]:
        with lock:
            return memory.table(operation, request)

    store = EventStore(locked, table=EVENTS, layouts="layouts", settings=Settings(shards=16))
    for read in ("table", "index"):
        found = read_all(store, "ORD", START, NOON, limit=130, source=read, consistent=False)
        assert list(found) == events
