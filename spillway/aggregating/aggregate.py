"""One page of an aggregate: a scan, its rows, and the cursor of the next page."""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import islice
from typing import Protocol

import msgspec
from msgspec import Struct

from spillway.aggregating.functions import MAX_EXACT, RELATIVE_ERROR, Fill, IntervalTally, Number
from spillway.aggregating.query import AggregateQuery, IntervalGrid
from spillway.aggregating.rows import Filler, Neighbour, Row, RowMaker
from spillway.errors import InvalidInputError
from spillway.keys import TIME_WIDTH
from spillway.scanning.costs import ReadBudget, ReadCost
from spillway.scanning.cursor import decode_cursor, encode_cursor
from spillway.scanning.pages import Missing
from spillway.scanning.query import MAX_LIMIT, Order, ReadQuery
from spillway.scanning.reader import Reader
from spillway.scanning.scan import Scan
from spillway.scanning.sources import ReadSources
from spillway.scanning.streams import StoredEvent

__all__ = [
    "AggregatePage",
    "AggregateProgress",
    "AggregateRow",
    "Aggregating",
    "EventScan",
    "ScanFrom",
    "aggregate",
    "decode_progress",
    "encode_progress",
]


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
        missing: the partitions that were left off then.
        percentiles: `exact`, or `ddsketch` where any row's are approximate; None where none are asked for.
        percentile_error: by how much of itself an approximate percentile may be off: 0 where all are exact.
        spent: what the page has cost.
    """

    rows: tuple[AggregateRow, ...]
    cursor: str | None
    reason: str | None
    missing: tuple[Missing, ...]
    percentiles: str | None
    percentile_error: float
    spent: ReadCost

    @property
    def complete(self) -> bool:
        """Whether the page ends at its limit or at the range's end."""
        return self.reason is None


class AggregateProgress(Struct, frozen=True, kw_only=True):
    """What a page leaves to the next one.

    Attributes:
        row: the first interval that was not given out.
        before: the last one before with numbers, where intervals are filled from it.
        after: the position that the page has reached within that interval.
        tally: what the events up to there come to; None where there were none.
    """

    row: int
    before: Neighbour | None = None
    after: str | None = None
    tally: IntervalTally | None = None


def encode_progress(progress: AggregateProgress, binding: str) -> str:
    """Return an opaque text of some hundred bytes for a progress; `binding` names the query it belongs to."""
    # Not msgspec's own JSON: integers may have more than 64 bits.
    return encode_cursor(json.dumps(msgspec.to_builtins(progress)), binding)


def decode_progress(cursor: str | None, binding: str, grid: IntervalGrid) -> AggregateProgress:
    """Return the progress of a cursor, without one the beginning; InvalidInputError where it is another query's."""
    if cursor is None:
        return AggregateProgress(row=grid.first)
    try:
        progress = msgspec.convert(json.loads(decode_cursor(cursor, binding)), AggregateProgress)
    except (InvalidInputError, ValueError) as error:
        reason = (
            "is damaged, or belongs to another query: all but limit, consistent, source "
            "and max_rcu must stay the same"
        )
        raise InvalidInputError("invalid_cursor", "cursor", reason) from error
    return progress


class EventScan(Protocol):
    """A pass over a range; see `spillway.scanning.scan.Scan`."""

    left_off: str | None
    missing: tuple[Missing, ...]
    reason: str | None
    spent: ReadCost

    def runs(self) -> Iterator[list[StoredEvent]]:
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
    max_exact: int = MAX_EXACT,
) -> AggregatePage:
    """Return up to `limit` rows from a cursor on.

    Holds one interval's tally, up to `max_exact` of its numbers where percentiles are asked for, and the rows.
    Raises InvalidInputError, and what the scan raises.
    """
    if not 1 <= limit <= MAX_LIMIT:
        raise InvalidInputError("invalid_query", "limit", f"must be 1 to {MAX_LIMIT:,}")
    progress = decode_progress(cursor, query.binding, query.grid)
    one = _Pass(query, scan_from, progress, max_exact)
    rows = one.rows(limit)
    following = one.following(rows, limit)
    return _page(query, one.scan, rows, following, complete=following is None or len(rows) == limit)


class _Pass:
    """One scan, and the rows made of it."""

    def __init__(
        self,
        query: AggregateQuery,
        scan_from: ScanFrom,
        progress: AggregateProgress,
        max_exact: int,
    ) -> None:
        self._query = query
        self._grid = query.grid
        self._progress = progress
        begin = query.grid.begin_within(progress.row)
        self.scan = scan_from(replace(query.read, start=begin), progress.after)
        self._maker = RowMaker(query, max_exact)
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

    def following(self, rows: list[Row], limit: int) -> AggregateProgress | None:
        """Return where the next page goes on; None at the end. InvalidInputError where that is where this one began."""
        if len(rows) == limit:
            row = rows[-1].index + 1
            return (
                None
                if row >= self._grid.stop
                else AggregateProgress(row=row, before=self._before(rows))
            )
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

    def _from(self, rows: list[Row], row: int) -> AggregateProgress:
        """Return where the next page goes on: where the scan left off, if what came since the row's begin fits a cursor."""
        before, begun = self._before(rows), self._maker.open
        if begun is None and self._latest < row:
            return AggregateProgress(row=row, before=before, after=self.scan.left_off)
        if begun is not None and begun.index == row and begun.percentiles is None:
            return AggregateProgress(
                row=row, before=before, after=self.scan.left_off, tally=begun.tally
            )
        return AggregateProgress(row=row, before=before)

    def _before(self, rows: list[Row]) -> Neighbour | None:
        if self._query.fill not in {Fill.PREVIOUS, Fill.LINEAR}:
            return None
        last = next((row for row in reversed(rows) if row.count), None)
        return self._progress.before if last is None else Neighbour(last.index, last.values)


def _position(progress: AggregateProgress) -> tuple[int, str]:
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
    following: AggregateProgress | None,
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
        percentiles=percentiles,
        percentile_error=RELATIVE_ERROR if approximate else 0,
        spent=scan.spent,
    )


def _public(query: AggregateQuery, row: Row) -> AggregateRow:
    values = {each.value: value for each, value in zip(query.functions, row.values, strict=True)}
    return AggregateRow(query.grid.begin(row.index), values, row.skipped, row.approximate)


class Aggregating:
    """The aggregates of an event store, which is one."""

    _sources: ReadSources
    _reader: Reader

    def aggregate(  # noqa: PLR0913  the parameters of a question
        self,
        series: str,
        start: datetime,
        end: datetime,
        *,
        interval: timedelta | None = None,
        field: str | None = None,
        functions: Iterable[str] | None = None,
        fill: str = "none",
        limit: int = 1_000,
        cursor: str | None = None,
        consistent: bool = True,
        sharding_key: str | None = None,
        source: str = "auto",
        max_rcu: float | None = None,
        timeout: float = 10,
    ) -> AggregatePage:
        r"""Return what a field's numbers in [start, end) come to, a row an interval, in order of time.

        Args:
            series: the series; an unknown one has no events.
            start: first time that is looked at, aware.
            end: first time that is not.
            interval: length of a row, such as `timedelta(hours=1)`; None for one row. Intervals are counted from
                1970-01-01T00:00Z, whole weeks from a Monday, so days begin at midnight UTC; the first and the last row
                cover only their part within the range.
            field: where in the payload the number is: `a.b` is the key `b` of the object at key `a`, `a\.b` the key
                `a.b`. Events with something else there, or nothing, are counted in `AggregateRow.skipped`. None to
                count events.
            functions: any of `count` (numbers; without a field events), `sum`, `min`, `max`, `avg`, `first`, `last`, `p50`,
                `p90`, `p99`; None for `count`, and with a field `avg`.
            fill: what stands in intervals without numbers: `none` leaves out those without events; `null`, `zero`,
                `previous`, `linear` (between the neighbours). `count` is 0 there. Nothing beyond the range is looked at.
            limit: most rows of the page, 1 to 10,000.
            cursor: of the page before, for the same question; it outlives any change of layout.
            consistent: whether every write acknowledged before is seen. Costs twice the read units.
            sharding_key: only its events: one shard is read, whose other keys are passed over.
            source: `table`, `index` or `auto`, as in `EventStore.read`.
            max_rcu: read units that the page may cost.
            timeout: seconds for which throttled and failed reads are retried; no round of reads begins in its second half.

        Sums and averages are exact until they are rounded once, and percentiles interpolate between ranks as NumPy
        and pandas do, so the same events always give the same rows, whatever the shards, pages or order of arrival. A row
        of over 100,000 numbers has percentiles from a sketch: within 0.5 % of the number at that rank, and
        `AggregateRow.approximate` says so.

        A page that reaches its time or `max_rcu` ends with the last finished row, maybe without any, and a cursor that
        also carries what an unfinished row came to so far.

        Costs what reading the range does, and no memory for it: one row at a time, and up to 20,000 events on their way.

        Raises:
            InvalidInputError: a parameter is wrong, or the cursor is not of this question; or, as `interval_too_long`,
                a row with percentiles, or one that a line is drawn to, has more events than time or `max_rcu` suffice for.
            StorageError: DynamoDB throttled or failed until the time was up, before anything was certain.
        """
        events = ReadQuery.checked(
            series,
            start,
            end,
            order=Order.ASCENDING,
            sharding_key=sharding_key,
            source=source,
            consistent=consistent,
        )
        query = AggregateQuery.checked(
            events, interval=interval, field=field, functions=functions, fill=fill
        )
        budget = ReadBudget.lasting(timeout, self._sources.runtime, max_rcu)

        def scan_from(part: ReadQuery, after: str | None) -> Scan:
            at = None if after is None else encode_cursor(after, part.binding)
            return self._reader.scan(part, cursor=at, wanted=None, budget=budget)

        return aggregate(query, scan_from, limit=limit, cursor=cursor)
