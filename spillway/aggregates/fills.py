"""What stands in intervals without numbers."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

from spillway.aggregates.functions import Fill, Function, Number
from spillway.aggregates.interpolation import interpolate
from spillway.aggregates.rows import Row

__all__ = ["Filler", "Neighbour"]

_Values = tuple[Number | None, ...]


class Neighbour(NamedTuple):
    """The values of an interval with numbers, from which those beside it are filled."""

    at: int
    values: _Values


class Filler:
    """Fills the intervals without numbers that lie between those with some."""

    def __init__(self, fill: Fill, functions: Sequence[Function], most_held: int) -> None:
        """Fill for a page of `most_held` rows: what comes after may be left out."""
        self._fill = fill
        self._functions = functions
        self._most_held = most_held

    def filled(
        self,
        rows: Iterable[Row],
        first: int,
        stop: Callable[[], int],
        before: Neighbour | None,
        ended: Callable[[], bool],
    ) -> Iterator[Row]:
        """Yield the rows of all intervals from `first` on.

        `rows` are those with events, in order; `before` the last one with numbers before `first`. When they end, `stop`
        tells up to which interval there are no others, and `ended` whether none come later.
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
                if row.index < index + self._most_held:
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
            0 if function is Function.COUNT else value
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
