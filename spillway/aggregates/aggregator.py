"""One page of an aggregate: a scan from an interval on, its rows, and where the next page begins.

A cursor holds the begin of that interval and nothing of what was read before: the interval before,
from which others may be filled, is read again. So nobody can change a row by a cursor, and rows are
those of the events at that time.
"""

from collections.abc import Iterator
from dataclasses import replace
from itertools import chain, islice
from typing import Final, Protocol

from spillway.aggregates.fields import numbers_of
from spillway.aggregates.fills import Filler, Neighbour
from spillway.aggregates.functions import Fill, Function
from spillway.aggregates.page import AggregatePage, AggregateRow
from spillway.aggregates.percentiles import MOST_EXACT, RELATIVE_ERROR
from spillway.aggregates.query import AggregateQuery
from spillway.aggregates.rows import Row, RowMaker
from spillway.errors import InvalidInputError
from spillway.keys import TIME_WIDTH
from spillway.reading.cursor import decode_cursor, encode_cursor, invalid_cursor
from spillway.reading.page import Missing
from spillway.reading.query import MAX_LIMIT, Order, ReadQuery
from spillway.reading.spent import Spent
from spillway.reading.stream import Record
from spillway.storage.port import StorageError
from spillway.timestamps import is_stored_time

__all__ = ["EventScan", "ScanFrom", "aggregate"]

_SAME: Final = "all but limit, consistent, read and max_rcu"


class EventScan(Protocol):
    """A pass over a range; see `spillway.reading.scan.Scan`."""

    left_off: str | None
    missing: tuple[Missing, ...]
    missing_count: int
    reason: str | None
    failure: StorageError | None
    spent: Spent

    def runs(self) -> Iterator[list[Record]]:
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
    most_exact: int = MOST_EXACT,
) -> AggregatePage:
    """Return up to `limit` rows from a cursor on.

    Holds one interval's tally, up to `most_exact` of its numbers where percentiles are asked for, and the rows.
    Raises InvalidInputError, and what the scan raises.
    """
    if not 1 <= limit <= MAX_LIMIT:
        raise InvalidInputError("invalid_query", "limit", f"must be 1 to {MAX_LIMIT:,}")
    first = query.grid.first if cursor is None else _decode_row(cursor, query)
    one = _Pass(query, scan_from, first, most_exact)
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
        self, query: AggregateQuery, scan_from: ScanFrom, first: int, most_exact: int
    ) -> None:
        self._query = query
        self._grid = query.grid
        self._first = first
        begin = query.grid.begin_within(_neighbour(query, scan_from, first))
        self.scan = scan_from(replace(query.read, start=begin), None)
        self._maker = RowMaker(query, most_exact)

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
        yield from self._maker.rows(self.scan.runs())
        last = self._maker.open
        if last is not None and last.border <= self._reached():
            yield self._maker.close(last)

    def _ended(self) -> bool:
        return self.scan.left_off is None

    def _reached(self) -> str:
        """Return the time before which all events were seen."""
        left_off = self.scan.left_off
        return self._grid.end if left_off is None else left_off[:TIME_WIDTH]

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
    filled = query.fill in {Fill.PREVIOUS, Fill.LINEAR} and query.functions != (Function.COUNT,)
    if query.path is None or not filled or first == query.grid.first:
        return first
    numbers = numbers_of(query.path)
    part = replace(query.read, end=query.grid.begin_within(first), order=Order.DESCENDING)
    scan = scan_from(part, 1)
    for run in scan.runs():
        for record in run:
            if numbers([record]):
                return query.grid.index_of(record.sort_key[:TIME_WIDTH])
    if scan.left_off is not None:
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
        spent=scan.spent,
    )


def _public(query: AggregateQuery, row: Row) -> AggregateRow:
    values = {each.value: value for each, value in zip(query.functions, row.values, strict=True)}
    return AggregateRow(query.grid.begin(row.index), values, row.skipped, row.approximate)
