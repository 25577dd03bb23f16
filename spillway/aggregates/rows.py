"""From ordered events to rows: one interval at a time, so memory does not grow with the range."""

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from spillway.aggregates.fields import numbers_of
from spillway.aggregates.functions import PERCENTILES, Number
from spillway.aggregates.percentiles import Percentiles
from spillway.aggregates.query import AggregateQuery
from spillway.aggregates.tally import Tally
from spillway.keys import TIME_WIDTH
from spillway.reading.stream import Record

__all__ = ["OpenRow", "Row", "RowMaker"]


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
    """An interval that events are still added to; it ends before `border`. `percentiles` is None where none are asked for."""

    index: int
    border: str
    tally: Tally
    percentiles: Percentiles | None


class RowMaker:
    """Makes rows of events.

    Attributes:
        open: the last interval begun, whose end the events have not passed yet.
    """

    def __init__(self, query: AggregateQuery, most_exact: int) -> None:
        self._query = query
        self._numbers = None if query.path is None else numbers_of(query.path)
        self._most_exact = most_exact
        self.open: OpenRow | None = None

    def rows(self, runs: Iterable[Sequence[Record]]) -> Iterator[Row]:
        """Yield each interval with events in it, once events of a later one follow.

        `runs` are events in ascending order, unexpired, each once. Costs some microseconds a row and, mostly for
        decoding, a few tenths of one an event.
        """
        for run in runs:
            at = 0
            while at < len(run):
                time = run[at].sort_key[:TIME_WIDTH]
                if self.open is not None and time >= self.open.border:
                    yield self.close(self.open)
                if self.open is None:
                    self.open = self._begin(self._query.grid.index_of(time))
                stop = bisect_left(run, self.open.border, at, key=_sort_key)
                self._add(self.open, run[at:stop])
                at = stop

    def close(self, row: OpenRow) -> Row:
        """Finish an interval."""
        self.open = None
        tally = row.tally
        found: dict[float, float | None] = {}
        if row.percentiles is not None:
            fractions = self._query.percentiles
            found = dict(zip(fractions, row.percentiles.at(fractions), strict=True))
        values = [
            _held(found[PERCENTILES[each]], tally) if each in PERCENTILES else tally.value(each)
            for each in self._query.functions
        ]
        approximate = row.percentiles is not None and row.percentiles.approximate
        return Row(row.index, tally.count, tally.skipped, tuple(values), approximate)

    def _begin(self, index: int) -> OpenRow:
        percentiles = Percentiles(self._most_exact) if self._query.percentiles else None
        return OpenRow(index, self._query.grid.border(index), Tally(), percentiles)

    def _add(self, row: OpenRow, records: Sequence[Record]) -> None:
        if self._numbers is None:
            row.tally.count += len(records)
            return
        values = self._numbers(records)
        row.tally.add(values, len(records) - len(values))
        if row.percentiles is not None:
            row.percentiles.add(values)


def _sort_key(record: Record) -> str:
    return record.sort_key


def _held(percentile: float | None, tally: Tally) -> float | None:
    """Hold a percentile, maybe off by a sketch's error, within the extremes; a zero has no sign."""
    if percentile is None or tally.low is None or tally.high is None:
        return percentile
    return max(tally.low, min(percentile, tally.high)) + 0.0
