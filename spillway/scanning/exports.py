"""Exports: all events of a range in bulk, resumable at every event."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Final

from spillway.dynamodb.port import StorageError
from spillway.errors import InvalidInputError
from spillway.event import Event
from spillway.scanning.costs import ReadBudget, ReadCost
from spillway.scanning.export_position import MAX_POOL, ExportCursors, ExportMode, ExportPosition
from spillway.scanning.export_scan import ExportBatch, ExportError, ExportOptions, ExportScan
from spillway.scanning.pages import Measure, stored_size, to_event
from spillway.scanning.query import ReadQuery
from spillway.scanning.sources import ReadSources
from spillway.scanning.streams import StoredEvent

__all__ = ["Export", "ExportChunk", "Exporter"]


_CHUNK_BYTES: Final = 1_000_000
_FULL: Final = (
    0.9  # of a chunk's budget; filling it to the last byte would take many small requests
)


@dataclass(frozen=True, slots=True)
class ExportChunk:
    """Some events of an export.

    Attributes:
        series: the series.
        records: the stored events, payloads as JSON text.
        cursor: of an export that goes on after them; None where the export is complete.
    """

    series: str
    records: tuple[StoredEvent, ...]
    cursor: str | None

    @property
    def events(self) -> tuple[Event, ...]:
        """The events, payloads decoded; decoded anew at each use."""
        return tuple(to_event(self.series, record) for record in self.records)


class Export:
    """The events of a range, each once; iterate over it, or take chunks. Used once, by one thread at a time.

    It ends when all is given out, or, where bounds were set, when one is reached: look at `complete`. Where a shard
    can't be read, ExportError is raised after everything that was read before has been given out.

    Attributes:
        series: the series.
        spent: requests, read units and items so far; the one read of the layout is not among them.
        stopped: the bound that ended it early: `deadline` or `read_units`; None while none did.
        failure: the error that ended it, also where a last chunk was returned before it is raised.
    """

    def __init__(self, walk: ExportScan, positions: ExportCursors, begin: ExportPosition) -> None:
        self.series = positions.series
        self.spent: ReadCost = walk.cost
        self.stopped: str | None = None
        self.failure: StorageError | None = None
        self._walk = walk
        self._turns = walk.batches(begin)
        self._positions = positions
        self._begun = False
        self._turn = ExportBatch([], begin, begin)
        self._at = 0  # records of the turn that have been given out

    @property
    def complete(self) -> bool:
        """Whether every event of the range has been given out."""
        return self._position is None

    @property
    def cursor(self) -> str | None:
        """A cursor that goes on after the last event given out, at any time; None where the export is complete."""
        position = self._position
        return None if position is None else self._positions.encode(position)

    @property
    def _position(self) -> ExportPosition | None:
        records, since, then = self._turn
        if self._at == len(records):
            return then
        return since._replace(after=records[self._at - 1].sort_key) if self._at else since

    def __iter__(self) -> Iterator[Event]:
        """Yield the events that are left."""
        while self._has_next():
            record = self._turn.records[self._at]
            self._at += 1
            yield to_event(self.series, record)

    def chunks(
        self, max_bytes: int = _CHUNK_BYTES, measure: Measure = stored_size
    ) -> Iterator[ExportChunk]:
        """Yield the events that are left in chunks of up to `max_bytes`, payloads not decoded."""
        while self._has_next():
            yield self._filled(max_bytes, measure)

    def chunk(self, max_bytes: int = _CHUNK_BYTES, measure: Measure = stored_size) -> ExportChunk:
        """Return the next chunk, without events where the export has ended.

        Reads little that it does not return, for callers that go on elsewhere, by the cursor.

        Args:
            max_bytes: budget of the chunk; one event may be larger.
            measure: bytes that a record adds to it; asked once a record, in order.

        Raises:
            ExportError: a shard could not be read. Where events were read before it, these are returned first.
        """
        self._walk.remaining = round(max_bytes / self._walk.item_bytes)
        try:
            return self._filled(max_bytes, measure)
        finally:
            self._walk.remaining = None

    def _filled(self, max_bytes: int, measure: Measure) -> ExportChunk:
        records: list[StoredEvent] = []
        size, begun_at = 0, self._position
        try:
            while size < _FULL * max_bytes and self._has_next():
                for record in islice(self._turn.records, self._at, None):
                    size += measure(record)
                    if records and size > max_bytes:
                        return self._chunk(records)
                    records.append(record)
                    self._at += 1
                if self._walk.remaining is not None and size:
                    self._walk.remaining = round((max_bytes - size) / size * len(records))
        except StorageError:
            if self._position == begun_at:
                raise
        return self._chunk(records)

    def _chunk(self, records: list[StoredEvent]) -> ExportChunk:
        return ExportChunk(self.series, tuple(records), self.cursor)

    def _has_next(self) -> bool:
        """Go on to a turn with records where the one at hand is given out; tell whether there is one."""
        while self._at == len(self._turn.records):
            if self.complete or self._is_stopped():
                return False
            self._take_turn()
        return True

    def _is_stopped(self) -> bool:
        """Tell whether a bound is reached; none is before the first turn, so that each export gets on."""
        if self._begun and self.failure is None:
            self.stopped = self._walk.bound_reached()
        return self.stopped is not None

    def _take_turn(self) -> None:
        if self.failure is not None:
            raise self.failure
        try:
            self._turn, self._at = next(self._turns), 0
        except StorageError as error:
            self.failure = error
            if isinstance(error, ExportError):
                error.cursor = self.cursor
            raise
        self._begun = True


class Exporter:
    """Begins exports of an event store. Thread-safe."""

    def __init__(self, sources: ReadSources) -> None:
        self._sources = sources

    def export(  # noqa: PLR0913  the parameters of an export
        self,
        query: ReadQuery,
        *,
        mode: str,
        pool: int,
        cursor: str | None,
        max_rcu: float | None,
        max_seconds: float | None,
        timeout: float,
    ) -> Export:
        """Return the export of a query of the table; sends nothing.

        Raises InvalidInputError where `mode`, `pool` or `cursor` is wrong.
        """
        options = ExportOptions(mode=_mode(mode), pool=_pool(pool), timeout=timeout)
        seconds = math.inf if max_seconds is None else max_seconds
        budget = ReadBudget.lasting(seconds, self._sources.runtime, max_rcu)
        positions = ExportCursors(query, options.mode)
        if cursor is None:
            begin = ExportPosition(0, options.width, started_at=int(self._sources.runtime.now()))
        else:
            begin = positions.decode(cursor)
        return Export(ExportScan(self._sources, query, options, budget), positions, begin)


def _mode(mode: str) -> ExportMode:
    try:
        return ExportMode(mode)
    except ValueError as error:
        known = ", ".join(ExportMode)
        raise InvalidInputError("invalid_query", "mode", f"must be one of {known}") from error


def _pool(pool: int) -> int:
    if not 1 <= pool <= MAX_POOL:
        raise InvalidInputError("invalid_query", "pool", f"must be 1 to {MAX_POOL}")
    return pool
