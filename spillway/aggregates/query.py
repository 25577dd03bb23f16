"""What an aggregate asks for, checked."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from spillway.aggregates.fields import parse_path
from spillway.aggregates.functions import PERCENTILES, Fill, Function
from spillway.aggregates.grid import Grid
from spillway.errors import InvalidInputError
from spillway.reading.query import ReadQuery

__all__ = ["AggregateQuery"]

_DEFAULT: Final = {False: (Function.COUNT,), True: (Function.COUNT, Function.AVG)}  # with a field


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
    grid: Grid
    path: tuple[str, ...] | None
    functions: tuple[Function, ...]
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
        if path is None and chosen != (Function.COUNT,):
            raise _invalid("field", "is missing: without one, only `count` can be asked for")
        if fill not in list(Fill):
            raise _invalid("fill", f"must be one of {', '.join(Fill)}")
        grid = Grid(read.start, read.end, interval)
        return cls(read=read, grid=grid, path=path, functions=chosen, fill=Fill(fill))


def _check_interval(interval: object) -> None:
    if interval is None or (isinstance(interval, timedelta) and interval > timedelta(0)):
        return
    raise _invalid("interval", "must be a timedelta above 0, or None for one row")


def _functions(names: Iterable[str]) -> tuple[Function, ...]:
    """Return the functions in the order asked for, each once."""
    given = [names] if isinstance(names, str) else list(names)
    known = list(Function)
    if not given or not all(name in known for name in given):
        raise _invalid("functions", f"must be some of {', '.join(known)}")
    return tuple(dict.fromkeys(Function(name) for name in given))


def _invalid(field: str, reason: str) -> InvalidInputError:
    return InvalidInputError("invalid_query", field, reason)
