from pathlib import Path

import pyarrow.parquet as pq
import pytest

from local.demo.errors import DemoError
from local.demo.flights import FLIGHTS_FILE, Flight, event_batches, read_flights

COUNT = 25_000  # more than is decoded at a time


@pytest.fixture(scope="module")
def rows() -> list[Flight]:
    table = next(pq.ParquetFile(FLIGHTS_FILE).iter_batches(batch_size=COUNT))
    return [Flight(row=row, **each) for row, each in enumerate(table.to_pylist())]


def test_events_carry_the_first_rows_of_the_file_in_its_order(rows: list[Flight]) -> None:
    batches = list(event_batches(FLIGHTS_FILE, COUNT, 999))
    assert [event for batch in batches for event in batch] == [each.event() for each in rows]
    assert {len(batch) for batch in batches} == {999, COUNT % 999}
    assert batches[0][0] == {
        "series": "LAS",
        "time": "2001-01-01T00:01:00.000000Z",
        "id": "0000000",
        "payload": {"delay": 33, "distance": 2176, "destination": "PHL"},
    }


def test_each_origin_has_its_flights_in_order_of_time_and_row(rows: list[Flight]) -> None:
    flights = read_flights(FLIGHTS_FILE, COUNT)
    assert len(flights) == COUNT
    assert set(flights.origins()) == {each.origin for each in rows}
    for origin in flights.origins():
        own = sorted(each for each in rows if each.origin == origin)
        own.sort(key=lambda each: (each.date, each.row))
        assert list(flights.of(origin)) == own
        assert list(flights.of(origin, latest_first=True)) == own[::-1]
        assert flights.count(origin) == len(own)


def test_origins_come_busiest_first() -> None:
    flights = read_flights(FLIGHTS_FILE, COUNT)
    counts = [flights.count(origin) for origin in flights.origins()]
    assert counts == sorted(counts, reverse=True)


@pytest.mark.parametrize("count", [-1, 0, 3_000_001])
def test_counts_outside_the_file_are_refused_with_what_there_is(count: int) -> None:
    with pytest.raises(DemoError, match="choose 1 to 3,000,000"):
        read_flights(FLIGHTS_FILE, count)


def test_a_missing_file_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(DemoError, match="make setup"):
        read_flights(tmp_path / "none.parquet", 1)
