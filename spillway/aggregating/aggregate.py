"""One page of an aggregate: a scan, its rows, and the cursor of the next page."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import chain, islice
from typing import Final, Protocol

from spillway.aggregating.fields import numbers_of
from spillway.aggregating.functions import (
    MAX_EXACT,
    RELATIVE_ERROR,
    AggregateFunction,
    Fill,
    Number,
)
from spillway.aggregating.query import AggregateQuery
from spillway.aggregating.rows import Filler, Neighbour, Row, RowMaker
from spillway.dynamodb.port import StorageError
from spillway.errors import InvalidInputError
from spillway.keys import TIME_WIDTH
from spillway.scanning.costs import ReadBudget, ReadCost
from spillway.scanning.cursor import decode_cursor, encode_cursor, invalid_cursor
from spillway.scanning.pages import Missing
from spillway.scanning.query import MAX_LIMIT, Order, ReadQuery
from spillway.scanning.reader import Reader
from spillway.scanning.scan import Scan
from spillway.scanning.sources import ReadSources
from spillway.scanning.streams import StoredEvent
from spillway.timestamps import is_stored_time

__all__ = ["AggregatePage", "AggregateRow", "Aggregator", "EventScan", "ScanFrom", "aggregate"]


@dataclass(frozen=True, slots=True)
class AggregateRow:
    """What the events of one interval come to; `row["avg"]` is its average.

    Attributes:
        start: the interval's first time, which may lie before the range's. It ends where the next begins.
        values: by function, in the order asked for; None where there are no numbers to make one of.
        skipped: events without a number at the field.
        approximate: whether its percentiles are from a sketch.
    """

    start: datetime
    values: Mapping[str, Number | None]
    skipped: int
    approximate: bool

    def __getitem__(self, function: str) -> Number | None:
        return self.values[function]


@dataclass(frozen=True, slots=True, kw_only=True)
class AggregatePage:
    """Rows in order, and where to go on.

    Attributes:
        rows: finished intervals.
        cursor: for the next page; None after the last.
        reason: why the page ends before its limit and before its range does: `deadline`, `read_units` or the code of
            a storage error; None where it does not.
        missing: partitions that were left off then: up to 20, those with errors first.
        missing_count: how many partitions were left off.
        percentiles: `exact`, or `ddsketch` where any row's are approximate; None where none are asked for.
        percentile_error: by how much of itself an approximate percentile may be off: 0 where all are exact.
        spent: what the page has cost.
    """

    rows: tuple[AggregateRow, ...]
    cursor: str | None
    reason: str | None
    missing: tuple[Missing, ...]
    missing_count: int
    percentiles: str | None
    percentile_error: float
    spent: ReadCost

    @property
    def complete(self) -> bool:
        """Whether the page ends at its limit or at the range's end."""
        return self.reason is None


_SAME: Final = "all but limit, consistent, source and max_rcu"


class EventScan(Protocol):
    """A pass over a range; see `spillway.scanning.scan.Scan`."""

    stopped_at: str | None
    missing: tuple[Missing, ...]
    missing_count: int
    reason: str | None
    failure: StorageError | None
    cost: ReadCost

    def batches(self) -> Iterator[list[StoredEvent]]:
        """Yield the events in order."""
        ...


class ScanFrom(Protocol):
    """Begins a scan of a range, of which about `wanted` events will be taken, None for all."""

    def __call__(self, query: ReadQuery, wanted: int | None, /) -> EventScan:
        """Return the scan, not begun."""
        ...


def aggregate(
    query: AggregateQuery,
    scan_from: ScanFrom,
    *,
    limit: int,
    cursor: str | None,
    max_exact: int = MAX_EXACT,
) -> AggregatePage:
    """Return up to `limit` rows from a cursor on.

    Holds one interval's tally, up to `max_exact` of its numbers where percentiles are asked for, and the rows.
    Raises InvalidInputError, and what the scan raises.
    """
    if not 1 <= limit <= MAX_LIMIT:
        raise InvalidInputError("invalid_query", "limit", f"must be 1 to {MAX_LIMIT:,}")
    first = query.grid.first if cursor is None else _decode_row(cursor, query)
    one = _Pass(query, scan_from, first, max_exact)
    rows = one.rows(limit)
    following = one.following(rows, limit)
    return _page(query, one.scan, rows, following, complete=following is None or len(rows) == limit)


def _encode_row(row: int, query: AggregateQuery) -> str:
    """Return the cursor of a page that begins with a row."""
    return encode_cursor(query.grid.begin_within(row), query.binding)


def _decode_row(cursor: str, query: AggregateQuery) -> int:
    """Return the row of a cursor; InvalidInputError where no row of the query begins there."""
    grid, begin = query.grid, decode_cursor(cursor, query.binding, _SAME)
    if is_stored_time(begin) and grid.start <= begin < grid.end:
        row = grid.index_of(begin)
        if grid.begin_within(row) == begin:
            return row
    raise invalid_cursor(_SAME)


class _Pass:
    """One scan, and the rows made of it, from `first` on."""

    def __init__(
        self, query: AggregateQuery, scan_from: ScanFrom, first: int, max_exact: int
    ) -> None:
        self._query = query
        self._grid = query.grid
        self._first = first
        begin = query.grid.begin_within(_neighbour(query, scan_from, first))
        self.scan = scan_from(replace(query.read, start=begin), None)
        self._maker = RowMaker(query, max_exact)

    def rows(self, limit: int) -> list[Row]:
        """Return the finished rows, filled."""
        before, finished = self._split()
        filler = Filler(self._query.fill, self._query.functions, limit)
        filled = filler.filled(finished, self._first, self._stop, before, self._ended)
        return list(islice(filled, limit))

    def _split(self) -> tuple[Neighbour | None, Iterator[Row]]:
        """Return the last row with numbers before the page, and the rows of the page."""
        rows = self._finished()
        before = None
        for row in rows:
            if row.index >= self._first:
                return before, chain([row], rows)
            if row.count:
                before = Neighbour(row.index, row.values)
        return before, rows

    def _finished(self) -> Iterator[Row]:
        yield from self._maker.rows(self.scan.batches())
        last = self._maker.open
        if last is not None and last.border <= self._reached():
            yield self._maker.close(last)

    def _ended(self) -> bool:
        return self.scan.stopped_at is None

    def _reached(self) -> str:
        """Return the time before which all events were seen."""
        stopped_at = self.scan.stopped_at
        return self._grid.end if stopped_at is None else stopped_at[:TIME_WIDTH]

    def _stop(self) -> int:
        """Return the first interval that was not seen to its end."""
        if self._ended():
            return self._grid.stop
        return max(self._first, self._grid.index_of(self._reached()))

    def following(self, rows: list[Row], limit: int) -> int | None:
        """Return the row that the next page begins with, None at the end.

        Raises what stopped the scan where the page has made no progress.
        """
        if len(rows) == limit:
            row = rows[-1].index + 1
            return None if row >= self._grid.stop else row
        if self._ended():
            return None
        following = self._first_left(rows)
        if following == self._first:
            raise _no_progress(self.scan)
        return following

    def _first_left(self, rows: list[Row]) -> int:
        """Return the first row not given out: a line needs the end of its gap as well."""
        if self._query.fill is not Fill.LINEAR:
            return self._stop()
        return rows[-1].index + 1 if rows else self._first


def _neighbour(query: AggregateQuery, scan_from: ScanFrom, first: int) -> int:
    """Return the last interval with numbers before a page filled from it, else the first one.

    Costs a read in descending order as far as that interval.
    """
    filled = query.fill in {Fill.PREVIOUS, Fill.LINEAR} and query.functions != (
        AggregateFunction.COUNT,
    )
    if query.path is None or not filled or first == query.grid.first:
        return first
    numbers = numbers_of(query.path)
    part = replace(query.read, end=query.grid.begin_within(first), order=Order.DESCENDING)
    scan = scan_from(part, 1)
    for run in scan.batches():
        for record in run:
            if numbers([record]):
                return query.grid.index_of(record.sort_key[:TIME_WIDTH])
    if scan.stopped_at is not None:
        raise _no_progress(scan)
    return first


def _no_progress(scan: EventScan) -> Exception:
    """Return the storage error that stopped a scan, else that an interval is too long."""
    if scan.failure is not None:
        return scan.failure
    reason = (
        "holds more events than could be read within the time and max_rcu; choose a shorter interval, or more of these. "
        "A row must be read to its end within one page; fill=linear needs the end of its gap as "
        "well, and a later page of fill=previous or linear the last interval with numbers before it"
    )
    return InvalidInputError("interval_too_long", "interval", reason)


def _page(
    query: AggregateQuery,
    scan: EventScan,
    rows: list[Row],
    following: int | None,
    *,
    complete: bool,
) -> AggregatePage:
    approximate = any(row.approximate for row in rows)
    percentiles = ("ddsketch" if approximate else "exact") if query.percentiles else None
    return AggregatePage(
        rows=tuple(_public(query, row) for row in rows),
        cursor=None if following is None else _encode_row(following, query),
        reason=None if complete else scan.reason,
        missing=() if complete else scan.missing,
        missing_count=0 if complete else scan.missing_count,
        percentiles=percentiles,
        percentile_error=RELATIVE_ERROR if approximate else 0,
        spent=scan.cost,
    )


def _public(query: AggregateQuery, row: Row) -> AggregateRow:
    values = {each.value: value for each, value in zip(query.functions, row.values, strict=True)}
    return AggregateRow(query.grid.begin(row.index), values, row.skipped, row.approximate)


class Aggregator:
    """Answers aggregate queries by scans of an event store. Thread-safe."""

    def __init__(self, sources: ReadSources, reader: Reader) -> None:
        self._sources = sources
        self._reader = reader

    def page(
        self,
        query: AggregateQuery,
        *,
        limit: int,
        cursor: str | None,
        max_rcu: float | None,
        timeout: float,
    ) -> AggregatePage:
        """Return the page of up to `limit` rows after a cursor. Raises as `aggregate` does."""
        budget = ReadBudget.lasting(timeout, self._sources.runtime, max_rcu)
        spent = ReadCost()

        def scan_from(part: ReadQuery, wanted: int | None) -> Scan:
            return self._reader.scan(part, requested=wanted, budget=budget, cost=spent)

        return aggregate(query, scan_from, limit=limit, cursor=cursor)
