"""The flights of the demo: read from a Parquet file, as events, and as the sequences to be read back."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from itertools import accumulate, islice, pairwise
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple, cast

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from local.demo.client import ClientEvent
from local.demo.errors import DemoError
from local.state import ROOT

__all__ = ["FLIGHTS_FILE", "Flight", "Flights", "event_batches", "read_flights"]

FLIGHTS_FILE: Final = ROOT / "node_modules" / "vega-datasets" / "data" / "flights-3m.parquet"

_ORDER: Final[Sequence[tuple[str, Literal["ascending"]]]] = (
    ("code", "ascending"),
    ("date", "ascending"),
    ("row", "ascending"),
)
_DECODED: Final = 10_000  # rows that are Python objects at a time


class Flight(NamedTuple):
    """A row of the file. `date` is the departure in UTC, `delay` in minutes, `distance` in miles."""

    row: int
    date: datetime
    delay: int
    distance: int
    origin: str
    destination: str

    def event(self) -> ClientEvent:
        """Return the flight as an event of its origin's series."""
        return {
            "series": self.origin,
            "time": self.date.isoformat(timespec="microseconds") + "Z",
            "id": f"{self.row:07d}",
            "payload": {
                "delay": self.delay,
                "distance": self.distance,
                "destination": self.destination,
            },
        }


def event_batches(path: Path, count: int, size: int) -> Iterator[list[ClientEvent]]:
    """Yield the first `count` flights of a file as events, `size` at a time, in the file's order."""
    flights = (flight for batch in _batches(path, count) for flight in _decode(batch))
    while events := [flight.event() for flight in islice(flights, size)]:
        yield events


class Flights:
    """Flights in order of origin, time and row: what each origin's series has to hold.

    Held in columns of narrow types, about 22 bytes a flight, and decoded a piece at a time.
    """

    def __init__(self, table: pa.Table, spans: Mapping[str, tuple[int, int]]) -> None:
        """Take the sorted flights, and where in them each origin's begin and end."""
        self._table = table
        self._spans = spans

    def __len__(self) -> int:
        return self._table.num_rows

    def origins(self) -> list[str]:
        """Return the origins, the busiest first."""
        return sorted(self._spans, key=self.count, reverse=True)

    def count(self, origin: str) -> int:
        """Return how many flights leave an origin."""
        begin, end = self._spans[origin]
        return end - begin

    def of(self, origin: str, *, latest_first: bool = False) -> Iterator[Flight]:
        """Yield an origin's flights in order of time and row, or in reverse."""
        begin, end = self._spans[origin]
        starts = range(begin, end, _DECODED)
        for start in reversed(starts) if latest_first else starts:
            piece = _decode(self._table.slice(start, min(_DECODED, end - start)))
            yield from reversed(piece) if latest_first else piece


def read_flights(path: Path, count: int) -> Flights:
    """Read the first `count` flights of a file.

    Raises:
        DemoError: The file is missing or holds fewer.
    """
    table = pa.Table.from_batches(list(_batches(path, count))).unify_dictionaries()
    origins = cast("pa.DictionaryArray[Any, Any]", table.column("origin").combine_chunks())
    table = table.append_column("code", origins.indices)
    table = table.take(pc.sort_indices(table, sort_keys=_ORDER))
    return Flights(table.drop_columns("code"), _spans(table.column("code"), origins.dictionary))


def _spans(codes: Any, names: Any) -> dict[str, tuple[int, int]]:
    """Return where each name's rows begin and end, given the codes of the rows in their order."""
    runs = pc.value_counts(codes)
    ends = list(accumulate(runs.field("counts").to_pylist()))
    found = (names[code].as_py() for code in runs.field("values").to_pylist())
    return dict(zip(found, pairwise([0, *ends]), strict=True))


def _batches(path: Path, count: int) -> Iterator[pa.RecordBatch]:
    """Yield the first `count` rows of a file in narrow types, with their numbers."""
    file = _open(path, count)
    row = 0
    for batch in file.iter_batches(batch_size=_DECODED):
        kept = batch.slice(0, count - row)
        yield _narrow(kept, row)
        row += kept.num_rows
        if row == count:
            return


def _open(path: Path, count: int) -> pq.ParquetFile:
    try:
        file = pq.ParquetFile(path, read_dictionary=["origin", "destination"])
    except FileNotFoundError as error:
        raise DemoError(f"The flights are missing ({path}): run `make setup`.") from error
    if not 1 <= count <= file.metadata.num_rows:
        raise DemoError(f"FLIGHTS: {count:,} asked for; choose 1 to {file.metadata.num_rows:,}.")
    return file


def _narrow(batch: pa.RecordBatch, first_row: int) -> pa.RecordBatch:
    rows = pa.array(range(first_row, first_row + batch.num_rows), pa.int32())
    columns: Sequence[pa.Array[Any]] = [
        rows,
        batch.column("date"),
        batch.column("delay").cast(pa.int16()),
        batch.column("distance").cast(pa.int16()),
        batch.column("origin"),
        batch.column("destination"),
    ]
    return pa.RecordBatch.from_arrays(list(columns), names=list(Flight._fields))


def _decode(rows: pa.RecordBatch | pa.Table) -> list[Flight]:
    columns = [rows.column(name).to_pylist() for name in Flight._fields]
    return [Flight(*values) for values in zip(*columns, strict=True)]
