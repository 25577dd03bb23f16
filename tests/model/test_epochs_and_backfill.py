"""What growth and backfills cost: queries by the epochs a range meets, updates of the layout."""

import itertools
from collections.abc import Mapping
from datetime import timedelta
from random import Random
from typing import Any

import pytest

from spillway import Event, EventStore, Settings
from spillway.dynamodb.port import ThrottledError
from tests.support.atomic_table import AtomicTables
from tests.support.fakes import FakeClock, dated, fake_runtime
from tests.support.memory_table import EVENTS, LAYOUTS

YEARS = timedelta(days=25 * 365)


def _store(table: AtomicTables, clock: FakeClock, settings: Settings | None = None) -> EventStore:
    def call(operation: str, request: Mapping[str, Any], /) -> dict[str, Any]:
        return dated(table(operation, request), clock.seconds)

    return EventStore(
        call, table=EVENTS, layouts=LAYOUTS, settings=settings, runtime=fake_runtime(clock)
    )


def _event(clock: FakeClock, age: timedelta, number: int = 0) -> Event:
    return Event(series="s", time=clock.time - age, id=f"{number:06d}", payload={"n": number})


def _queries_of(table: AtomicTables, store: EventStore, event: Event) -> int:
    before = table.counts["Query"]
    end = event.time + timedelta(microseconds=1)
    page = store.read("s", event.time, end, limit=10)
    assert [each.id for each in page.events] == [event.id]
    return table.counts["Query"] - before


def test_a_range_from_before_a_growth_takes_one_query_and_one_after_it_takes_all_shards() -> None:
    table, clock = AtomicTables(), FakeClock()
    store = _store(table, clock)
    old = _event(clock, timedelta(days=300))
    store.write([old])
    store.set_layout("s", shards=64)
    clock.forward(timedelta(hours=1))
    new = _event(clock, timedelta(0), 1)
    store.write([new])
    assert _queries_of(table, store, old) == 1
    assert _queries_of(table, store, new) == 64


def test_a_late_event_into_an_old_range_is_found_at_once_and_leaves_the_range_narrow() -> None:
    table, clock = AtomicTables(), FakeClock()
    store = _store(table, clock)
    store.write([_event(clock, timedelta(0))])
    store.set_layout("s", shards=64)
    clock.forward(timedelta(hours=1))
    late = _event(clock, timedelta(days=200), 1)
    updates = table.counts["UpdateItem"]
    store.write([late])
    assert _queries_of(table, store, late) == 1
    assert table.counts["UpdateItem"] == updates


@pytest.mark.parametrize(
    ("order", "throttled"),
    [("newest first", True), ("oldest first", True), ("shuffled", True), ("shuffled", False)],
)
def test_a_backfill_of_25_years_changes_the_layout_a_few_times_only(
    order: str, *, throttled: bool
) -> None:
    table, clock = AtomicTables(), FakeClock()
    count = 100_000
    ages = [YEARS * number / count for number in range(count)]
    if order == "oldest first":
        ages.reverse()
    if order == "shuffled":
        Random(1).shuffle(ages)
    events = [_event(clock, age, number) for number, age in enumerate(ages)]
    turns = itertools.count()

    def call(operation: str, request: Mapping[str, Any], /) -> dict[str, Any]:
        # The one shard of the first epoch throttles now and then once the series has grown.
        if throttled and operation == "BatchWriteItem" and next(turns) % 50 == 49:
            raise ThrottledError("ThrottlingException", "")
        return table(operation, request)

    store = EventStore(call, table=EVENTS, layouts=LAYOUTS, runtime=fake_runtime(clock))
    for start in range(0, count, 1_000):
        if start == count // 2:
            store.set_layout("s", shards=16)
        assert store.write(events[start : start + 1_000]).accepted == 1_000
    assert table.counts["UpdateItem"] <= 20
    sample = Random(2).sample(events, 50)
    for event in sample:
        assert store.read_one("s", event.time, event.id or "") == event
