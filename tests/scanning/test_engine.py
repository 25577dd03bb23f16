"""The same exports on the real engine, with pages of 1 MB, copies and consumed capacity as it reports them."""

import itertools
from collections import Counter
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest

from local.engine import EngineProcess
from spillway import Event, EventStore, Settings, ShardingMode
from spillway.dynamodb.boto import call_through
from tests.scanning.world import END, START
from tests.support.clients import client_with
from tests.support.engine_tables import create_tables
from tests.support.fakes import NOON, FakeClock, fake_runtime, undated
from tests.support.stores import event_at, read_all

pytestmark = pytest.mark.engine
_numbers = itertools.count()
SECOND = timedelta(seconds=1)


@pytest.fixture(scope="module")
def client(engine: EngineProcess) -> Iterator[Any]:
    made = client_with(engine.url)
    yield made
    made.close()


@pytest.fixture
def tables(client: Any) -> tuple[str, str]:
    return create_tables(client, f"export-{next(_numbers)}")


def _store(client: Any, tables: tuple[str, str], settings: Settings) -> EventStore:
    return EventStore(
        undated(call_through(client)),
        table=tables[0],
        layouts=tables[1],
        settings=settings,
        runtime=fake_runtime(FakeClock(), iter_random()),
    )


def iter_random() -> Any:
    """Return a source that spreads evenly."""
    numbers = itertools.count()
    return lambda: (next(numbers) * 0.618_033_988_749) % 1


def _key(event: Event) -> str:
    return f"{event.time.isoformat()} {event.sharding_key} {event.id}"


@pytest.mark.parametrize("mode", ["shards", "blocks", "round_robin"])
@pytest.mark.parametrize("spread", list(ShardingMode))
def test_each_mode_gives_each_event_once_over_pages_copies_and_growth(
    client: Any, tables: tuple[str, str], mode: str, spread: ShardingMode
) -> None:
    payload = {"text": "é" * 2_000}
    events = [
        event_at(
            NOON - n * SECOND,
            f"{n:04}",
            payload=payload,
            sharding_key=f"k{n % 9}" if n % 2 else None,
        )
        for n in range(500)
    ]
    grown = Settings(mode=spread, shards=1)
    _store(client, tables, grown).write(events)
    _store(client, tables, grown).set_layout("ORD", shards=4)
    _store(client, tables, grown).write(events[::3])  # sent again: copies in other shards
    pages = client.get_paginator("scan").paginate(TableName=tables[0], Select="COUNT")
    assert sum(page["Count"] for page in pages) > 550
    found: list[Event] = []
    cursor = None
    units = 0.0
    while True:
        store = _store(client, tables, grown)
        export = store.export("ORD", START, END, mode=mode, cursor=cursor, pool=2)
        found += export.chunk(900_000).events
        assert export.spent.read_units >= export.spent.requests
        units += export.spent.read_units
        if len(found) < 300:
            store.set_layout("ORD", shards=8 if len(found) % 2 else 2)
        cursor = export.cursor
        if cursor is None:
            break
    assert Counter(map(_key, found)) == Counter(map(_key, events))
    ordered = read_all(_store(client, tables, grown), "ORD", START, END, limit=1_000)
    assert sorted(found, key=_key) == sorted(ordered, key=_key)
    assert units > 500
