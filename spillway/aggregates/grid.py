"""The intervals of a range, by number: where each begins and ends."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

from spillway.timestamps import format_time, to_datetime

__all__ = ["Grid"]

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MONDAY: Final = datetime(1970, 1, 5, tzinfo=UTC)
_WEEK: Final = timedelta(weeks=1)
_STEP: Final = timedelta(microseconds=1)
_FIRST: Final = datetime.min.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Grid:
    """The intervals that a range of time meets; the first and the last may reach beyond it.

    They are counted from 1970-01-01T00:00Z, so days begin at midnight UTC; whole weeks from a Monday.

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
