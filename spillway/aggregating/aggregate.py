"""One page of an aggregate: a scan, its rows, and the cursor of the next page."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import chain, islice
from typing import Final, Protocol

from spillway.aggregating.fields import numbers_of
from spillway.aggregating.functions import MAX_EXACT, RELATIVE_ERROR, Fill, Function, Number
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

__all__ = ["AggregatePage", "AggregateRow", "Aggregating", "EventScan", "ScanFrom", "aggregate"]


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


_SAME: Final = "all but limit, consistent, read and max_rcu"


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
    filled = query.fill in {Fill.PREVIOUS, Fill.LINEAR} and query.functions != (Function.COUNT,)
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
        read: str = "auto",
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
            read: `table`, `index` or `auto`, as in `EventStore.read`.
            max_rcu: read units that the page may cost.
            timeout: seconds for which throttled and failed reads are retried; no round of reads begins in its second half.

        Sums and averages are exact until they are rounded once, and percentiles interpolate between ranks as NumPy
        and pandas do, so the same events always give the same rows, whatever the shards, pages or order of arrival. A row
        of over 100,000 numbers has percentiles from a sketch: within 0.5 % of the number at that rank, and
        `AggregateRow.approximate` says so.

        A page that reaches its time or `max_rcu` ends with the last finished row, and a cursor.
        Each row is read to its end within one page, since cursors carry no figures: for long
        intervals allow more `timeout` and `max_rcu`, or ask for shorter ones and add up.

        Costs what reading the range does, and no memory for it: one row at a time, and up to 20,000
        events on their way. Where intervals are filled by neighbours, each later page reads the
        last interval with numbers before it again.

        Raises:
            InvalidInputError: a parameter is wrong, or the cursor is not of this question; or, as `interval_too_long`,
                the next row, or the gap that a line is drawn over, has more events than time or
                `max_rcu` suffice for.
            StorageError: DynamoDB throttled or failed until the time was up, before anything was certain.
        """
        events = ReadQuery.checked(
            series,
            start,
            end,
            order=Order.ASCENDING,
            sharding_key=sharding_key,
            source=read,
            consistent=consistent,
        )
        query = AggregateQuery.checked(
            events, interval=interval, field=field, functions=functions, fill=fill
        )
        budget = ReadBudget.lasting(timeout, self._sources.runtime, max_rcu)
        spent = ReadCost()

        def scan_from(part: ReadQuery, wanted: int | None) -> Scan:
            return self._reader.scan(part, requested=wanted, budget=budget, cost=spent)

        return aggregate(query, scan_from, limit=limit, cursor=cursor)
