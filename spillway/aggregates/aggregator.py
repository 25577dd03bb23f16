"""One page of an aggregate: a scan from where the last one ended, its rows, and where the next one begins."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import islice
from typing import Protocol

from spillway.aggregates.fills import Filler, Neighbour
from spillway.aggregates.functions import Fill
from spillway.aggregates.page import AggregatePage, AggregateRow
from spillway.aggregates.percentiles import MOST_EXACT, RELATIVE_ERROR
from spillway.aggregates.progress import Progress, decode_progress, encode_progress
from spillway.aggregates.query import AggregateQuery
from spillway.aggregates.rows import Row, RowMaker
from spillway.errors import InvalidInputError
from spillway.keys import TIME_WIDTH
from spillway.reading.page import Missing
from spillway.reading.query import MAX_LIMIT, ReadQuery
from spillway.reading.spent import Spent
from spillway.reading.stream import Record

__all__ = ["EventScan", "ScanFrom", "aggregate"]


class EventScan(Protocol):
    """A pass over a range; see `spillway.reading.scan.Scan`."""

    left_off: str | None
    missing: tuple[Missing, ...]
    missing_count: int
    reason: str | None
    spent: Spent

    def runs(self) -> Iterator[list[Record]]:
        """Yield the events in order."""
        ...


class ScanFrom(Protocol):
    """Begins a scan of a range after a position in it."""

    def __call__(self, query: ReadQuery, after: str | None, /) -> EventScan:
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
    progress = decode_progress(cursor, query.binding, query.grid)
    one = _Pass(query, scan_from, progress, most_exact)
    rows = one.rows(limit)
    following = one.following(rows, limit)
    return _page(query, one.scan, rows, following, complete=following is None or len(rows) == limit)


class _Pass:
    """One scan, and the rows made of it."""

    def __init__(
        self, query: AggregateQuery, scan_from: ScanFrom, progress: Progress, most_exact: int
    ) -> None:
        self._query = query
        self._grid = query.grid
        self._progress = progress
        begin = query.grid.begin_within(progress.row)
        self.scan = scan_from(replace(query.read, start=begin), progress.after)
        self._maker = RowMaker(query, most_exact)
        self._latest = progress.row - 1  # interval that was finished
        if progress.tally is not None:
            self._maker.carry(progress.row, progress.tally)

    def rows(self, limit: int) -> list[Row]:
        """Return the finished rows, filled."""
        filler = Filler(self._query.fill, self._query.functions, limit)
        filled = filler.filled(
            self._finished(), self._progress.row, self._stop, self._progress.before, self._ended
        )
        return list(islice(filled, limit))

    def _finished(self) -> Iterator[Row]:
        for row in self._maker.rows(self.scan.runs()):
            self._latest = row.index
            yield row
        last = self._maker.open
        if last is not None and last.border <= self._reached():
            self._latest = last.index
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
        return max(self._progress.row, self._grid.index_of(self._reached()))

    def following(self, rows: list[Row], limit: int) -> Progress | None:
        """Return where the next page goes on; None at the end. InvalidInputError where that is where this one began."""
        if len(rows) == limit:
            row = rows[-1].index + 1
            return None if row >= self._grid.stop else Progress(row=row, before=self._before(rows))
        if self._ended():
            return None
        following = self._from(rows, self._first_left(rows))
        if not rows and _position(following) <= _position(self._progress):
            raise _no_progress()
        return following

    def _first_left(self, rows: list[Row]) -> int:
        """Return the first row not given out: a line needs the end of its gap as well."""
        if self._query.fill is not Fill.LINEAR:
            return self._stop()
        return rows[-1].index + 1 if rows else self._progress.row

    def _from(self, rows: list[Row], row: int) -> Progress:
        """Return where the next page goes on: where the scan left off, if what came since the row's begin fits a cursor."""
        before, begun = self._before(rows), self._maker.open
        if begun is None and self._latest < row:
            return Progress(row=row, before=before, after=self.scan.left_off)
        if begun is not None and begun.index == row and begun.percentiles is None:
            return Progress(row=row, before=before, after=self.scan.left_off, tally=begun.tally)
        return Progress(row=row, before=before)

    def _before(self, rows: list[Row]) -> Neighbour | None:
        if self._query.fill not in {Fill.PREVIOUS, Fill.LINEAR}:
            return None
        last = next((row for row in reversed(rows) if row.count), None)
        return self._progress.before if last is None else Neighbour(last.index, last.values)


def _position(progress: Progress) -> tuple[int, str]:
    return progress.row, progress.after or ""


def _no_progress() -> InvalidInputError:
    reason = (
        "holds more events than could be read within the time and max_rcu; choose a shorter interval, or more of these. "
        "Only percentiles and fill=linear need an interval's end within one page"
    )
    return InvalidInputError("interval_too_long", "interval", reason)


def _page(
    query: AggregateQuery,
    scan: EventScan,
    rows: list[Row],
    following: Progress | None,
    *,
    complete: bool,
) -> AggregatePage:
    approximate = any(row.approximate for row in rows)
    percentiles = ("ddsketch" if approximate else "exact") if query.percentiles else None
    return AggregatePage(
        rows=tuple(_public(query, row) for row in rows),
        cursor=None if following is None else encode_progress(following, query.binding),
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
