"""Delays of real flights, read from the engine: what the store makes of them is what pandas makes of the file."""

import itertools
import os
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pandas as pd
import pytest

from local.demo.flights import FLIGHTS_FILE, read_flights
from local.engine import EngineProcess
from spillway import AggregateRow, Event, EventStore, Settings
from tests.support.clients import client_with
from tests.support.engine_tables import create_tables

pytestmark = pytest.mark.engine

COUNT = int(os.environ.get("FLIGHTS", "100000"))  # of the file's three million
SHARDS = {"ORD": 16, "ATL": 4, "ANC": 1}
FUNCTIONS = ("count", "avg", "min", "max", "p99", "sum", "p50", "first", "last")
START, END = datetime(2001, 1, 1, tzinfo=UTC), datetime(2002, 1, 1, tzinfo=UTC)
LENGTHS = {"h": timedelta(hours=1), "D": timedelta(days=1)}


def _events(airport: str) -> Iterator[Event]:
    for flight in read_flights(FLIGHTS_FILE, COUNT).of(airport):
        yield Event(
            series=airport,
            time=flight.date.replace(tzinfo=UTC),
            id=f"{flight.row:07d}",
            payload={"delay": flight.delay, "flight": {"distance": flight.distance}},
        )


@pytest.fixture(scope="module")
def store(engine: EngineProcess) -> Iterator[EventStore]:
    client = client_with(engine.url, max_pool_connections=16)
    events, layouts = create_tables(client, "aggregated")
    for airport, shards in SHARDS.items():
        settings = Settings(shards=shards)
        store = EventStore(client, table=events, layouts=layouts, settings=settings)
        written = _events(airport)
        while batch := list(itertools.islice(written, 1_000)):
            assert store.write(batch).accepted == len(batch)
    yield store
    client.close()


@pytest.fixture(scope="module")
def flights() -> pd.DataFrame:
    columns = ["date", "delay", "distance", "origin"]
    file = pd.read_parquet(FLIGHTS_FILE, columns=columns).head(COUNT)
    return file[file["origin"].isin(SHARDS)].set_index("date")


def _rows(store: EventStore, airport: str, **question: Any) -> list[AggregateRow]:
    rows: list[AggregateRow] = []
    cursor = None
    while True:
        page = store.aggregate(airport, START, END, cursor=cursor, timeout=3_600, **question)
        rows += page.rows
        assert page.complete
        cursor = page.cursor
        if cursor is None:
            return rows


@pytest.mark.parametrize("airport", SHARDS)
@pytest.mark.parametrize("length", LENGTHS)
def test_rows_of_delays_equal_pandas_on_the_file(
    store: EventStore, flights: pd.DataFrame, airport: str, length: str
) -> None:
    delays = flights[flights["origin"] == airport]["delay"].resample(length)
    expected = pd.DataFrame(
        {
            "count": delays.count(),
            "avg": delays.mean(),
            "min": delays.min(),
            "max": delays.max(),
            "p99": delays.quantile(0.99),
            "sum": delays.sum(),
            "p50": delays.quantile(0.5),
        }
    )
    expected = expected[expected["count"] > 0]
    found = _rows(store, airport, interval=LENGTHS[length], field="delay", functions=FUNCTIONS, limit=100)  # fmt: skip
    assert len(found) > 5
    assert [row.start for row in found] == [time.replace(tzinfo=UTC) for time in expected.index]
    for name in expected.columns:
        # Bit by bit: neither side rounds more often than once.
        assert [row[name] for row in found] == expected[name].tolist(), name
    assert {row.skipped for row in found} == {0}


@pytest.mark.parametrize("airport", SHARDS)
def test_one_row_of_all_distances_equals_pandas_on_the_file(
    store: EventStore, flights: pd.DataFrame, airport: str
) -> None:
    distances = flights[flights["origin"] == airport]["distance"]
    (found,) = _rows(
        store, airport, field="flight.distance", functions=("count", "avg", "p90"), source="table"
    )
    expected = {"count": len(distances), "avg": distances.mean(), "p90": distances.quantile(0.9)}
    approximate = found.approximate
    assert approximate == (len(distances) > 100_000)
    assert dict(found.values) == {**expected, "p90": pytest.approx(expected["p90"], rel=0.005 if approximate else 1e-12)}  # fmt: skip


def test_filled_hours_equal_pandas_on_the_file(store: EventStore, flights: pd.DataFrame) -> None:
    delays = flights[flights["origin"] == "ANC"]["delay"].resample("h")
    question: dict[str, Any] = {"interval": LENGTHS["h"], "field": "delay", "timeout": 3_600}
    filled = {
        "previous": delays.mean().ffill(),
        "linear": delays.mean().interpolate("linear"),
        "zero": delays.mean().fillna(0),
    }
    for fill, expected in filled.items():
        rows = store.aggregate("ANC", START, END, fill=fill, **{**question, "limit": 10_000}).rows
        inside = [row for row in rows if row.start.replace(tzinfo=None) in expected.index]
        assert [row["avg"] for row in inside] == pytest.approx(expected.tolist(), rel=1e-12)
        assert [row["count"] for row in inside] == delays.count().tolist()
