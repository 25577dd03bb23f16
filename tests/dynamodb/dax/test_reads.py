from datetime import timedelta
from typing import Any

import pytest

from spillway import Event, EventStore, Settings
from spillway.layouts.source import LayoutSource
from spillway.timestamps import format_time
from tests.dynamodb.dax.world import LAYOUTS, World
from tests.support.fakes import fake_runtime
from tests.support.stores import DAY, HOUR, event_at, read_all

pytestmark = pytest.mark.engine

DAX_TTL = timedelta(seconds=300)
MICROSECOND = timedelta(microseconds=1)


def _day_before(world: World, store: EventStore, **query: Any) -> list[Event]:
    """Read the day before this hour: a closed range."""
    now = world.clock.time
    query = {"consistent": False, "limit": 1_000} | query
    return list(read_all(store, world.series, now - 2 * DAY, now - HOUR, **query))


def test_another_process_gets_layout_and_events_from_dax_alone(world: World) -> None:
    events = world.write(world.process(), 30)
    assert _day_before(world, world.process()) == events
    world.forget_requests()
    items, queries = world.dax.node.items.hits, world.dax.node.queries.hits
    assert _day_before(world, world.process()) == events
    assert world.dynamodb.requests == []
    assert (world.dax.node.items.hits, world.dax.node.queries.hits) == (items + 1, queries + 1)


def test_one_event_of_long_ago_comes_from_dax_alone(world: World) -> None:
    (event,) = world.write(world.process(), 1)
    assert event.id is not None
    for _ in range(2):
        world.forget_requests()
        found = world.process().read_one(world.series, event.time, event.id, consistent=False)
        assert found == event
        assert world.dynamodb.requests == []
    assert world.dax.node.items.hits == 2


def test_a_layout_in_the_process_spares_dax_for_its_time_to_live(world: World) -> None:
    world.write(world.process(), 1)
    reader = world.process()
    for n in range(3):
        _day_before(world, reader, limit=100 + n)
    assert world.dax.node.calls["GetItem"] == 1
    world.clock.sleep(Settings().layout_ttl)
    _day_before(world, reader)
    assert world.dax.node.calls["GetItem"] == 2


def _widen(world: World) -> list[Event]:
    """Grow the series to 16 shards that also take events of days ago; return some that were written there."""
    writer = world.process()
    epoch = writer.set_layout(world.series, shards=16).current
    settings, runtime = Settings(), fake_runtime(world.clock)
    source = LayoutSource(world.engine, LAYOUTS, settings, runtime)
    source.extend_low(world.series, epoch.id, format_time(world.clock.time - 3 * DAY))
    return world.write(world.process(), 32, at=world.clock.time - DAY + HOUR)


def test_a_layout_lags_by_the_ttl_of_dax_and_of_the_process_at_most(world: World) -> None:
    before = world.write(world.process(), 4)
    reader = world.process()
    assert _day_before(world, reader) == before
    widened = _widen(world)
    everything = before + widened
    assert _day_before(world, world.process(), consistent=True) == everything
    world.clock.sleep(DAX_TTL.total_seconds() - 1)
    stale = _day_before(world, reader, limit=999)
    assert stale[:4] == before
    assert len(stale) < len(everything)  # it knows of one shard
    world.clock.sleep(1)
    assert len(_day_before(world, reader, limit=998)) < len(everything)  # now only the process lags
    world.clock.sleep(Settings().layout_ttl)
    assert _day_before(world, reader, limit=997) == everything


def test_a_layout_that_the_process_knows_better_is_not_taken_from_dax(world: World) -> None:
    before = world.write(world.process(), 4)
    reader = world.process()
    _day_before(world, reader)
    everything = before + _widen(world)
    assert reader.layout(world.series) is not None  # a strong read
    world.clock.sleep(Settings().layout_ttl)
    assert _day_before(world, reader, limit=999) == everything


def test_a_cached_miss_of_a_layout_is_not_believed(world: World) -> None:
    assert _day_before(world, world.process()) == []
    events = world.write(world.process(), 5)
    world.forget_requests()
    hits = world.dax.node.items.hits
    assert _day_before(world, world.process(), limit=10) == events
    assert world.dax.node.items.hits == hits + 1  # DAX still says there is none
    (asked,) = world.dynamodb.of("GetItem", LAYOUTS)
    assert asked["ConsistentRead"] is True


def test_a_cached_miss_of_an_event_is_not_believed(world: World) -> None:
    writer, time = world.process(), world.clock.time - DAY
    world.write(writer, 1, at=time - HOUR)
    assert world.process().read_one(world.series, time, "late", consistent=False) is None
    late = event_at(time, "late", series=world.series)
    assert writer.write([late]).accepted == 1
    world.forget_requests()
    assert world.process().read_one(world.series, time, "late", consistent=False) == late
    assert world.dax.node.calls["GetItem"] > 0
    assert [each["ConsistentRead"] for each in world.dynamodb.of("GetItem")] == [True]


def test_a_deleted_event_is_gone_from_dax_after_its_ttl(world: World) -> None:
    (event,) = world.write(world.process(), 1)
    assert event.id is not None
    assert _day_before(world, world.process()) == [event]
    assert world.process().delete(world.series, event.time, event.id)
    assert _day_before(world, world.process(), consistent=True) == []
    world.clock.forward(DAX_TTL)
    assert _day_before(world, world.process()) == []


def test_an_event_that_expires_in_dax_is_not_returned(world: World) -> None:
    retention = DAY + timedelta(minutes=1)
    (event,) = world.write(world.process(retention=retention), 1)
    event_id = event.id or ""

    def found() -> tuple[list[Event], Event | None]:
        store = world.process()
        page = store.read(world.series, event.time, event.time + HOUR, consistent=False)
        one = store.read_one(world.series, event.time, event_id, consistent=False)
        return list(page.events), one

    assert found() == ([event], event)
    world.clock.sleep(61)
    hits = world.dax.node.queries.hits
    assert found() == ([], None)
    assert world.dax.node.queries.hits == hits + 1


def test_writers_and_strongly_consistent_readers_make_no_call_to_dax(world: World) -> None:
    store = world.process()
    events = world.write(store, 10)
    store.set_layout(world.series, shards=4)
    assert store.layout(world.series) is not None
    assert _day_before(world, store, consistent=True) == events
    assert events[0].id is not None
    assert store.read_one(world.series, events[0].time, events[0].id) == events[0]
    world.clock.sleep(3_600)  # reloads
    world.write(store, 3)
    assert store.delete(world.series, events[0].time, events[0].id)
    assert world.dax.connections == 0
    assert store.cache_failures == 0


def test_writers_go_by_strong_reads_also_where_the_process_has_a_layout_from_dax(
    world: World,
) -> None:
    world.write(world.process(), 1)
    store = world.process()
    _day_before(world, store)
    world.forget_requests()
    world.write(store, 1, at=world.clock.time - 2 * DAY)
    (asked,) = world.dynamodb.of("GetItem", LAYOUTS)
    assert asked["ConsistentRead"] is True
    assert world.dax.node.calls.total() == 0


def test_ranges_that_late_events_may_still_add_to_are_read_from_dynamodb(world: World) -> None:
    late_limit = timedelta(hours=2)
    store = world.process(late_limit=late_limit)
    settings = Settings(late_limit=late_limit)
    world.write(store, 3, at=world.clock.time - HOUR)
    closed_at = world.clock.time - timedelta(seconds=settings.open_for)
    assert closed_at < world.clock.time - late_limit
    start = closed_at - HOUR
    store.read(world.series, start, closed_at + MICROSECOND, consistent=False)
    store.read_one(world.series, closed_at + MICROSECOND, "1", consistent=False)
    assert world.dax.connections == 0
    store.read(world.series, start, closed_at, consistent=False)
    assert world.dax.node.calls["Query"] == 1


def test_without_a_late_limit_events_are_expected_for_as_long_as_epochs_reach_back(
    world: World,
) -> None:
    store, settings = world.process(), Settings()
    world.write(store, 1)
    end = world.clock.time - timedelta(seconds=settings.slack)
    store.read(world.series, end - HOUR, end, consistent=False)
    assert world.dax.connections == 0
    end -= timedelta(seconds=settings.write_timeout + 2 * settings.clock_error)
    store.read(world.series, end - HOUR, end, consistent=False)
    assert world.dax.node.calls["Query"] == 1


def _grown_twice(world: World) -> list[Event]:
    """Write events of ten hours under three layouts, the last of them minutes ago."""
    store, now = world.process(), world.clock.time
    events: list[Event] = []
    for hours, shards in ((10, 2), (6, 4), (1, 4)):
        store.set_layout(world.series, shards=shards, index_shards=shards)
        for n in range(30):
            time = now - timedelta(hours=hours) + timedelta(minutes=2 * n)
            events.append(
                event_at(time, f"{n % 7}", series=world.series, sharding_key=f"k{n % 3}", n=n)
            )
        world.clock.sleep(1)
    assert store.write(events).accepted == len(events)
    return events


@pytest.mark.parametrize("order", ["asc", "desc"])
@pytest.mark.parametrize("query", [{}, {"source": "index"}, {"sharding_key": "k1"}])
def test_pages_that_lead_from_open_to_closed_ranges_return_each_event_once(
    world: World, order: str, query: dict[str, Any]
) -> None:
    events = _grown_twice(world)
    if "sharding_key" in query:
        events = [event for event in events if event.sharding_key == "k1"]
    start, end = events[0].time, world.clock.time
    store = world.process()
    for limit in (7, 40):
        read = read_all(store, world.series, start, end, order=order, limit=limit,
                        consistent=False, **query)  # fmt: skip
        assert list(read) == (events if order == "asc" else events[::-1])
    assert store.cache_failures == 0
    assert bool(world.dax.node.calls["Query"]) == (order == "desc")  # its later pages are closed
    closed = [event for event in events if event.time < end - HOUR]
    found = read_all(store, world.series, start, end - HOUR, order=order, limit=7,
                     consistent=False, **query)  # fmt: skip
    assert list(found) == (closed if order == "asc" else closed[::-1])
