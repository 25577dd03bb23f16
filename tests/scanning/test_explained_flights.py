"""What `explain` expects of a page's read units, against what the engine counts, on real flights."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import islice
from random import Random
from typing import Any

import pytest

from local.demo.flights import FLIGHTS_FILE, Flight, read_flights
from local.engine import EngineProcess
from spillway import Event, EventStore, Settings
from spillway.timestamps import parse_time
from tests.support.clients import client_with
from tests.support.engine_tables import create_tables

pytestmark = pytest.mark.slow

ROWS = 100_000
SERIES = {"ORD": (64, 4), "ATL": (16, 2), "ANC": (1, 1)}  # shards of the table and of the index
TOLERANCE = 0.25


@dataclass(frozen=True)
class Loaded:
    """Stores that hold the flights of some origins, one each, and the times of theirs."""

    stores: dict[str, EventStore]
    first: datetime
    last: datetime


def _event(flight: Flight) -> Event:
    made = flight.event()
    return Event(
        series=made["series"], time=parse_time(made["time"]), id=made["id"], payload=made["payload"]
    )


@pytest.fixture(scope="module")
def loaded(engine: EngineProcess) -> Loaded:
    flights = read_flights(FLIGHTS_FILE, ROWS)
    client = client_with(engine.url, max_pool_connections=16)
    events, layouts = create_tables(client, "explained")
    stores: dict[str, EventStore] = {}
    times: list[datetime] = []
    for origin, (shards, index_shards) in SERIES.items():
        settings = Settings(shards=shards, index_shards=index_shards)
        store = EventStore(client, table=events, layouts=layouts, settings=settings)
        stores[origin] = store
        rows = (_event(flight) for flight in flights.of(origin))
        while batch := list(islice(rows, 1_000)):
            assert not store.write(batch).rejected
            times += (batch[0].time, batch[-1].time)
    return Loaded(stores, min(times), max(times) + timedelta(seconds=1))


def _queries(loaded: Loaded, count: int) -> Iterator[tuple[EventStore, dict[str, Any]]]:
    random = Random(7)
    for number in range(count):
        series = list(SERIES)[number % len(SERIES)]
        begin = loaded.first + (loaded.last - loaded.first) * random.random() * 0.7
        hours = random.choice([3, 24, 72, 1_000])
        yield (
            loaded.stores[series],
            {
                "series": series,
                "start": begin,
                "end": min(loaded.last, begin + timedelta(hours=hours)),
                "limit": random.choice([20, 100, 1_000]),
                "order": random.choice(["asc", "desc"]),
                "consistent": False,
            },
        )


def _share_near(loaded: Loaded, read: str, count: int) -> float:
    """Return the share of queries whose estimate is within the tolerance."""
    near = 0
    for store, query in _queries(loaded, count):
        explained = store.read(**query, source=read, explain=True).explanation
        expected = explained.estimates[explained.source][1]
        near += abs(expected - explained.read_units) <= TOLERANCE * explained.read_units
    return near / count


def test_the_estimate_of_every_read_from_the_table_is_within_a_quarter(loaded: Loaded) -> None:
    assert _share_near(loaded, "table", 60) == 1


def test_the_estimate_of_max_walks_over_the_index_is_within_a_quarter(loaded: Loaded) -> None:
    """Buckets of the night are emptier than those of the day, which one shard's page can't tell."""
    assert _share_near(loaded, "index", 60) >= 0.65


def test_the_estimate_of_max_reads_that_may_choose_is_within_a_quarter(loaded: Loaded) -> None:
    assert _share_near(loaded, "auto", 60) >= 0.75
