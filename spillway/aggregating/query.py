"""An aggregate query: intervals, field, functions and fill, checked."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

from spillway.aggregating.fields import parse_path
from spillway.aggregating.functions import PERCENTILES, AggregateFunction, Fill
from spillway.errors import InvalidInputError
from spillway.scanning.query import ReadQuery
from spillway.timestamps import format_time, to_datetime

__all__ = ["AggregateQuery", "IntervalGrid"]


_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MONDAY: Final = datetime(1970, 1, 5, tzinfo=UTC)
_WEEK: Final = timedelta(weeks=1)
_STEP: Final = timedelta(microseconds=1)
_FIRST: Final = datetime.min.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class IntervalGrid:
    """The intervals that a range of time meets; the first and the last may exceed it.

    They are counted from 1970-01-01T00:00Z, so days begin at midnight UTC; whole
    weeks are counted from a Monday.

    Attributes:
        start: the range's first time, stored text.
        end: the first time after it.
        width: length of an interval; None for one that is the range.
    """

    start: str
    end: str
    width: timedelta | None

    @property
    def first(self) -> int:
        """The number of the first interval."""
        return self.index_of(self.start)

    @property
    def stop(self) -> int:
        """The number after the last interval's."""
        return self._index(to_datetime(self.end) - _STEP) + 1

    def index_of(self, time: str) -> int:
        """Return the number of the interval that a stored time lies in."""
        return self._index(to_datetime(time))

    def begin(self, index: int) -> datetime:
        """Return the first time of an interval, at least that of year 1."""
        try:
            return self._origin + index * self._step
        except OverflowError:
            return _FIRST

    def begin_within(self, index: int) -> str:
        """Return the first time of an interval that lies within the range, as stored text."""
        return max(self.start, format_time(self.begin(index)))

    def border(self, index: int) -> str:
        """Return the first time after an interval, at most the range's end, as stored text."""
        return self.end if index + 1 >= self.stop else format_time(self.begin(index + 1))

    def _index(self, time: datetime) -> int:
        return (time - self._origin) // self._step

    @property
    def _origin(self) -> datetime:
        if self.width is None:
            return to_datetime(self.start)
        return _EPOCH if self.width % _WEEK else _MONDAY

    @property
    def _step(self) -> timedelta:
        return self.width or to_datetime(self.end) - to_datetime(self.start)


# By whether a field is given.
_DEFAULT: Final = {
    False: (AggregateFunction.COUNT,),
    True: (AggregateFunction.COUNT, AggregateFunction.AVG),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class AggregateQuery:
    """A checked question for rows of intervals.

    Attributes:
        read: the events that are looked at, in ascending order.
        grid: the intervals of their range.
        path: keys that lead to the field; None where only events are counted.
        functions: what is asked for, in that order.
        fill: what stands in intervals without numbers.
    """

    read: ReadQuery
    grid: IntervalGrid
    path: tuple[str, ...] | None
    functions: tuple[AggregateFunction, ...]
    fill: Fill

    @property
    def percentiles(self) -> list[float]:
        """The percentiles among the functions, as fractions."""
        return [PERCENTILES[each] for each in self.functions if each in PERCENTILES]

    @property
    def binding(self) -> str:
        """What a cursor belongs to: everything that decides what stands in the rows."""
        functions = [each.value for each in self.functions]
        return repr((self.read.binding, self.grid.width, self.path, functions, self.fill.value))

    @classmethod
    def checked(
        cls,
        read: ReadQuery,
        *,
        interval: timedelta | None,
        field: str | None,
        functions: Iterable[str] | None,
        fill: str,
    ) -> "AggregateQuery":
        """Check the parameters of an aggregate; InvalidInputError names the first that is wrong."""
        _check_interval(interval)
        path = None if field is None else parse_path(field)
        chosen = _DEFAULT[path is not None] if functions is None else _functions(functions)
        if path is None and chosen != (AggregateFunction.COUNT,):
            raise _invalid("field", "is missing: without one, only `count` can be asked for")
        if fill not in list(Fill):
            raise _invalid("fill", f"must be one of {', '.join(Fill)}")
        grid = IntervalGrid(read.start, read.end, interval)
        return cls(read=read, grid=grid, path=path, functions=chosen, fill=Fill(fill))


def _check_interval(interval: object) -> None:
    if interval is None or (isinstance(interval, timedelta) and interval > timedelta(0)):
        return
    raise _invalid("interval", "must be a timedelta above 0, or None for one row")


def _functions(names: Iterable[str]) -> tuple[AggregateFunction, ...]:
    """Return the functions in the order asked for, each once."""
    given = [names] if isinstance(names, str) else list(names)
    known = list(AggregateFunction)
    if not given or not all(name in known for name in given):
        raise _invalid("functions", f"must be some of {', '.join(known)}")
    return tuple(dict.fromkeys(AggregateFunction(name) for name in given))


def _invalid(field: str, reason: str) -> InvalidInputError:
    return InvalidInputError("invalid_query", field, reason)
