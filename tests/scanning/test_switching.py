"""Reads that may choose go on from the other source where one throttles, or turns out to cost more."""

from collections.abc import Mapping
from contextlib import suppress
from datetime import timedelta
from typing import Any

import pytest

from spillway import EventStore, InvalidInputError, Page, Settings, StorageError, ThrottledError
from spillway.dynamodb.port import Call
from spillway.scanning.cursor import encode_cursor
from spillway.scanning.query import ReadQuery
from tests.support.fakes import NOON
from tests.support.layouts import epoch, store_layout
from tests.support.stores import DAY, HOUR, MemoryStore, event_at, events_every, read_all

MINUTE = timedelta(minutes=1)


class Throttling:
    """A table that throttles queries of `sources`, table or index, and of keys with this ending."""

    def __init__(self, call: Call) -> None:
        self.call = call
        self.sources: set[str] = set()
        self.ending = "none"
        self.asked: list[str] = []

    def __call__(self, operation: str, request: Mapping[str, Any], /) -> dict[str, Any]:
        if operation == "Query":
            source = "index" if "IndexName" in request else "table"
            self.asked.append(source)
            key = request["ExpressionAttributeValues"][":p"]["S"]
            if source in self.sources or key.endswith(self.ending):
                raise ThrottledError("ThrottlingException", "hot")
        return self.call(operation, request)


def _world(settings: Settings) -> tuple[MemoryStore, EventStore, Throttling]:
    made: list[Throttling] = []

    def wrap(call: Call) -> Call:
        made.append(Throttling(call))
        return made[-1]

    memory = MemoryStore(settings, wrap=wrap)
    memory.store.write(events_every(MINUTE, 600))
    store = memory.another()
    return memory, store, made[-1]


def _page(store: EventStore, **query: Any) -> Page:
    given = {"limit": 50, "consistent": False, "explain": True, **query}
    return store.read("ORD", NOON - DAY, NOON, **given)


@pytest.mark.parametrize(("shards", "index_shards"), [(1, 16), (16, 1)])
@pytest.mark.parametrize("throttled", ["table", "index"])
@pytest.mark.parametrize("order", ["asc", "desc"])
def test_where_one_source_throttles_the_other_answers(
    shards: int, index_shards: int, throttled: str, order: str
) -> None:
    memory, store, table = _world(Settings(shards=shards, index_shards=index_shards))
    table.sources = {throttled}
    events = events_every(MINUTE, 600)
    found = read_all(store, "ORD", NOON - DAY, NOON, limit=70, order=order, consistent=False)
    assert list(found) == (events if order == "asc" else events[::-1])
    assert table.asked.count(throttled) <= 16  # after one round it is avoided
    assert memory.clock.naps == []


@pytest.mark.parametrize("order", ["asc", "desc"])
@pytest.mark.parametrize("limit", [7, 25])
@pytest.mark.parametrize("margin", [timedelta(0), timedelta(seconds=29, microseconds=3)])
def test_a_switch_in_the_midst_of_a_bucket_reads_its_range_and_nothing_else(
    order: str, limit: int, margin: timedelta
) -> None:
    _, store, table = _world(Settings(shards=64, index_shards=1))
    table.sources = {"index"}
    start, end = NOON - 40 * MINUTE - margin, NOON - 20 * MINUTE - margin
    found = list(read_all(store, "ORD", start, end, limit=limit, order=order, consistent=False))
    expected = [event for event in events_every(MINUTE, 600) if start <= event.time < end]
    assert found == (expected if order == "asc" else expected[::-1])
    assert (table.asked[0], set(table.asked)) == ("index", {"index", "table"})


@pytest.mark.parametrize("order", ["asc", "desc"])
def test_a_cursor_over_buckets_of_two_sizes_stays_within_its_range(order: str) -> None:
    memory, store, table = _world(Settings())
    store_layout(memory.table, [epoch(1, bucket="day"), epoch(2, bucket="hour")])
    start, end = NOON - 40 * MINUTE, NOON - 20 * MINUTE
    query: dict[str, Any] = {"order": order, "consistent": False}
    table.ending = "T11#0"  # the hour: both its bounds lie beyond the range
    with suppress(StorageError):  # where no progress was made
        query["cursor"] = store.read("ORD", start, end, source="index", **query).cursor
    page = store.read("ORD", start, end, source="table", **query)
    events = [event for event in events_every(MINUTE, 600) if start <= event.time < end]
    assert list(page.events) == (events if order == "asc" else events[::-1])


@pytest.mark.parametrize("read", ["table", "index"])
@pytest.mark.parametrize(
    ("order", "bound"),
    [("asc", "2026-06-01T11:00:00.000000Z"), ("desc", "2026-06-01T11:59:59.999999Z\U0010ffff")],
)
def test_a_cursor_from_outside_the_range_is_refused(order: str, bound: str, read: str) -> None:
    _, store, _ = _world(Settings(shards=2))
    start, end = NOON - 40 * MINUTE, NOON - 20 * MINUTE
    query = ReadQuery.checked(
        "ORD", start, end, order=order, sharding_key=None, source=read, consistent=False
    )
    cursor = encode_cursor(bound, query.binding)
    with pytest.raises(InvalidInputError) as failed:
        store.read("ORD", start, end, order=order, cursor=cursor, source=read, consistent=False)
    assert failed.value.code == "invalid_cursor"


def test_an_aggregate_that_switches_in_the_midst_of_a_bucket_counts_its_range_alone() -> None:
    _, store, table = _world(Settings(shards=64, index_shards=1))
    start, end = NOON - 40 * MINUTE, NOON - 20 * MINUTE
    store.read("ORD", start, end, consistent=False)  # shows how many events there are
    table.sources, table.asked = {"index"}, []
    page = store.aggregate("ORD", start, end, interval=10 * MINUTE, consistent=False)
    assert [(row.start, row["count"]) for row in page.rows] == [
        (start, 10), (start + 10 * MINUTE, 10),
    ]  # fmt: skip
    assert set(table.asked) == {"index", "table"}


def test_a_source_that_throttled_is_avoided_for_some_seconds_only() -> None:
    memory, store, table = _world(Settings(shards=1, index_shards=4))
    assert _page(store).explanation.source == "table"
    table.sources = {"table"}
    assert _page(store).complete
    table.sources = set()
    avoiding = _page(store).explanation
    assert (avoiding.source, avoiding.reason) == ("index", "the table throttles")
    memory.clock.forward(timedelta(seconds=6))
    assert _page(store).explanation.source == "table"


def test_where_both_throttle_the_read_waits_and_then_says_so() -> None:
    memory, store, table = _world(Settings(shards=2, index_shards=2))
    table.sources = {"table", "index"}
    with pytest.raises(StorageError):
        _page(store, explain=False)
    assert memory.clock.naps


@pytest.mark.parametrize("order", ["asc", "desc"])
def test_where_both_throttle_in_the_midst_of_a_bucket_nothing_is_progress(order: str) -> None:
    _, store, table = _world(Settings(shards=64, index_shards=1))
    table.sources = {"table", "index"}
    start, end = NOON - 40 * MINUTE, NOON - 20 * MINUTE
    with pytest.raises(ThrottledError):
        store.read("ORD", start, end, limit=10, order=order, consistent=False)
    assert set(table.asked) == {"index", "table"}


@pytest.mark.parametrize("query", [{"consistent": True}, {"source": "table"}])
def test_reads_that_must_look_at_the_table_never_ask_the_index(query: dict[str, Any]) -> None:
    _, store, table = _world(Settings(shards=16, index_shards=1))
    table.sources = {"table"}
    with pytest.raises(StorageError):
        _page(store, **query, explain=False)
    assert set(table.asked) == {"table"}


def test_an_index_without_payloads_serves_no_read_that_may_choose() -> None:
    memory = MemoryStore(Settings(shards=16, index_has_payload=False))
    memory.store.write(events_every(MINUTE, 60))
    memory.table.forget_calls()
    assert memory.store.read("ORD", NOON - HOUR, NOON, consistent=False).complete
    assert not any("IndexName" in each for each in memory.table.requests_of("Query"))


def test_many_shards_and_one_bucket_are_read_from_the_index() -> None:
    _, store, table = _world(Settings(shards=64, index_shards=1))
    page = store.read("ORD", NOON - HOUR, NOON, limit=50, consistent=False)
    assert len(page.events) == 50
    assert table.asked == ["index"]


def test_few_shards_and_many_buckets_are_read_from_the_table() -> None:
    _, store, table = _world(Settings(shards=2, index_shards=4))
    page = store.read("ORD", NOON - DAY, NOON, limit=500, consistent=False)
    assert len(page.events) == 500
    assert set(table.asked) == {"table"}


@pytest.mark.parametrize("order", ["asc", "desc"])
def test_a_walk_over_empty_buckets_is_given_up_for_the_table(order: str) -> None:
    memory = MemoryStore(Settings(shards=32, index_shards=1))
    events = [event_at(NOON - 350 * DAY, "first"), event_at(NOON - 20 * DAY, "last")]
    memory.store.write(events)
    memory.table.forget_calls()
    page = memory.another().read(
        "ORD", NOON - 365 * DAY, NOON, limit=10, order=order, consistent=False
    )
    assert list(page.events) == (events if order == "asc" else events[::-1])
    assert memory.table.counts["Query"] <= 32 + 64 + 32  # the walk's last round may open 64


def test_latest_events_of_a_busy_series_are_one_query_of_the_index() -> None:
    _, store, table = _world(Settings(shards=64, index_shards=1))
    page = store.read("ORD", NOON - DAY, NOON, limit=20, order="desc", consistent=False)
    assert list(page.events) == events_every(MINUTE, 600)[:-21:-1]
    assert table.asked == ["index"] * len(table.asked)
    assert len(table.asked) <= 2
