"""What an aggregate answers."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from spillway.aggregates.functions import Number
from spillway.reading.page import Missing
from spillway.reading.spent import Spent

__all__ = ["AggregatePage", "AggregateRow"]


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
    spent: Spent

    @property
    def complete(self) -> bool:
        """Whether the page ends at its limit or at the range's end."""
        return self.reason is None
