"""Rows of an aggregate: one an interval, and what fills intervals without numbers."""

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from spillway.aggregating.fields import numbers_of
from spillway.aggregating.functions import (
    PERCENTILES,
    AggregateFunction,
    Fill,
    IntervalTally,
    Number,
    Percentiles,
    interpolate,
)
from spillway.aggregating.query import AggregateQuery
from spillway.keys import TIME_WIDTH
from spillway.scanning.streams import StoredEvent

__all__ = ["Filler", "Neighbour", "OpenRow", "Row", "RowMaker"]


@dataclass(frozen=True, slots=True)
class Row:
    """A finished interval.

    Attributes:
        index: its number in the grid.
        count: numbers in it, without a field events.
        skipped: events in it without a number.
        values: of the query's functions, in their order.
        approximate: whether its percentiles are.
    """

    index: int
    count: int
    skipped: int
    values: tuple[Number | None, ...]
    approximate: bool


@dataclass(slots=True)
class OpenRow:
    """An interval that events are added to. It ends before `border`.

    `percentiles` is None if none are requested.
    """

    index: int
    border: str
    tally: IntervalTally
    percentiles: Percentiles | None


class RowMaker:
    """Makes rows of events.

    Attributes:
        open: the last interval begun, whose end the events have not passed yet.
    """

    def __init__(self, query: AggregateQuery, max_exact: int) -> None:
        self._query = query
        self._numbers = None if query.path is None else numbers_of(query.path)
        self._max_exact = max_exact
        self.open: OpenRow | None = None

    def rows(self, batches: Iterable[Sequence[StoredEvent]]) -> Iterator[Row]:
        """Yield each interval with events in it, once events of a later one follow.

        `batches` are unexpired events in ascending order, each once. Costs some microseconds for
        each row and a few tenths of one for each event, mostly for decoding.
        """
        for batch in batches:
            start = 0
            while start < len(batch):
                time = batch[start].sort_key[:TIME_WIDTH]
                if self.open is not None and time >= self.open.border:
                    yield self.close(self.open)
                if self.open is None:
                    self.open = self._begin(self._query.grid.index_of(time))
                stop = bisect_left(batch, self.open.border, start, key=_sort_key)
                self._add(self.open, batch[start:stop])
                start = stop

    def close(self, row: OpenRow) -> Row:
        """Finish an interval."""
        self.open = None
        tally = row.tally
        found: dict[float, float | None] = {}
        if row.percentiles is not None:
            fractions = self._query.percentiles
            found = dict(zip(fractions, row.percentiles.values_at(fractions), strict=True))
        values = [
            _held(found[PERCENTILES[each]], tally) if each in PERCENTILES else tally.value(each)
            for each in self._query.functions
        ]
        approximate = row.percentiles is not None and row.percentiles.approximate
        return Row(row.index, tally.count, tally.skipped, tuple(values), approximate)

    def _begin(self, index: int) -> OpenRow:
        percentiles = Percentiles(self._max_exact) if self._query.percentiles else None
        return OpenRow(index, self._query.grid.border(index), IntervalTally(), percentiles)

    def _add(self, row: OpenRow, records: Sequence[StoredEvent]) -> None:
        if self._numbers is None:
            row.tally.count += len(records)
            return
        values = self._numbers(records)
        row.tally.add(values, len(records) - len(values))
        if row.percentiles is not None:
            row.percentiles.add(values)


def _sort_key(record: StoredEvent) -> str:
    return record.sort_key


def _held(percentile: float | None, tally: IntervalTally) -> float | None:
    """Hold a percentile, maybe off by a sketch's error, within the extremes; a zero has no sign."""
    if percentile is None or tally.low is None or tally.high is None:
        return percentile
    return max(tally.low, min(percentile, tally.high)) + 0.0


_Values = tuple[Number | None, ...]


class Neighbour(NamedTuple):
    """The values of an interval with numbers, from which those beside it are filled."""

    at: int
    values: _Values


class Filler:
    """Fills the intervals without numbers that lie between those with some."""

    def __init__(self, fill: Fill, functions: Sequence[AggregateFunction], max_held: int) -> None:
        """Fill for a page of `max_held` rows: what comes after may be left out."""
        self._fill = fill
        self._functions = functions
        self._max_held = max_held

    def filled(
        self,
        rows: Iterable[Row],
        first: int,
        stop: Callable[[], int],
        before: Neighbour | None,
        ended: Callable[[], bool],
    ) -> Iterator[Row]:
        """Yield the rows of all intervals from `first` on.

        `rows` are those with events, in order; `before` is the last with numbers before `first`.
        After the last row, `stop` returns the interval before which no other row has events, and
        `ended` whether there are no later rows.
        """
        if self._fill is Fill.NONE:
            yield from rows
        elif self._fill is Fill.LINEAR:
            yield from self._between_neighbours(rows, first, stop, before, ended)
        else:
            yield from self._at_once(rows, first, stop, before)

    def _at_once(
        self, rows: Iterable[Row], first: int, stop: Callable[[], int], before: Neighbour | None
    ) -> Iterator[Row]:
        """Fill from what is known when an interval's turn comes."""
        standing = _standing(self._fill, len(self._functions), before)
        index = first
        for row in rows:
            for empty in range(index, row.index):
                yield self._row(empty, standing)
            if row.count:
                yield row
                standing = row.values if self._fill is Fill.PREVIOUS else standing
            else:
                yield self._row(row.index, standing, row.skipped)
            index = row.index + 1
        for empty in range(index, stop()):
            yield self._row(empty, standing)

    def _between_neighbours(
        self,
        rows: Iterable[Row],
        first: int,
        stop: Callable[[], int],
        before: Neighbour | None,
        ended: Callable[[], bool],
    ) -> Iterator[Row]:
        """Hold intervals back until the next one with numbers is there."""
        index = first
        skipped: dict[int, int] = {}  # of the intervals held back that have events
        for row in rows:
            if not row.count:
                if row.index < index + self._max_held:
                    skipped[row.index] = row.skipped
                continue
            after = Neighbour(row.index, row.values)
            for empty in range(index, row.index):
                values = _line(before, after, empty, len(self._functions))
                yield self._row(empty, values, skipped.get(empty, 0))
            yield row
            before, index, skipped = after, row.index + 1, {}
        for empty in range(index, stop() if ended() else index):
            yield self._row(empty, (None,) * len(self._functions), skipped.get(empty, 0))

    def _row(self, index: int, values: _Values, skipped: int = 0) -> Row:
        known = tuple(
            0 if function is AggregateFunction.COUNT else value
            for function, value in zip(self._functions, values, strict=True)
        )
        return Row(index, 0, skipped, known, approximate=False)


def _standing(fill: Fill, width: int, before: Neighbour | None) -> _Values:
    if fill is Fill.ZERO:
        return (0,) * width
    if fill is Fill.PREVIOUS and before is not None:
        return before.values
    return (None,) * width


def _line(before: Neighbour | None, after: Neighbour, index: int, width: int) -> _Values:
    if before is None:
        return (None,) * width
    share = (index - before.at) / (after.at - before.at)
    return tuple(
        _between(low, high, share) for low, high in zip(before.values, after.values, strict=True)
    )


def _between(low: Number | None, high: Number | None, share: float) -> float | None:
    """Return the value at a share of the way; None beside a sum beyond the range of doubles."""
    if low is None or high is None:
        return None
    try:
        return interpolate(low, high, share)
    except OverflowError:
        return None
