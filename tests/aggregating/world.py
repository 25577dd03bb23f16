"""Events in a list instead of a table, a scan over them that stops where told, and rows worked out the long way."""

import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from typing import Any

import numpy as np

from spillway.aggregating.aggregate import AggregatePage, AggregateRow, aggregate
from spillway.aggregating.functions import PERCENTILES, AggregateFunction, Number
from spillway.aggregating.query import AggregateQuery
from spillway.dynamodb.port import StorageError
from spillway.keys import TIME_WIDTH
from spillway.scanning.costs import ReadCost
from spillway.scanning.pages import Missing
from spillway.scanning.query import ReadQuery
from spillway.scanning.streams import StoredEvent
from spillway.timestamps import format_time, parse_time

__all__ = ["FakeScan", "World", "ask", "expected_rows", "is_number", "record", "shown"]

ALL = tuple(AggregateFunction)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MONDAY = datetime(1970, 1, 5, tzinfo=UTC)


def record(time: datetime, event_id: str, payload: Any) -> StoredEvent:
    """Return a stored event; `payload` as JSON text or as what is encoded to it."""
    text = payload if isinstance(payload, str) else json.dumps(payload)
    return StoredEvent(f"{format_time(time)}#{event_id}", "s#0", text, None)


@dataclass
class FakeScan:
    """A pass over a list: in runs of `size`, up to `most` events, then left off.

    It is left off at the last event given, or, with `ahead`, at the time of the next, as where no partition holds any between.
    """

    records: Sequence[StoredEvent]
    size: int
    most: int | None = None
    ahead: bool = False
    stopped_at: str | None = None
    missing: tuple[Missing, ...] = ()
    missing_count: int = 0
    reason: str | None = None
    failure: StorageError | None = None
    cost: ReadCost = field(default_factory=ReadCost)

    def batches(self) -> Iterator[list[StoredEvent]]:
        given = self.records if self.most is None else self.records[: self.most]
        for at in range(0, len(given), self.size):
            yield list(given[at : at + self.size])
        if len(given) < len(self.records):
            last, following = given[-1].sort_key, self.records[len(given)].sort_key[:TIME_WIDTH]
            self.stopped_at = following if self.ahead and following > last else last
            self.reason = "deadline"


@dataclass
class World:
    """Events of a series; `most` is how many one scan gives out before it leaves off."""

    records: list[StoredEvent]
    size: int = 3
    most: int | None = None
    ahead: bool = False

    def scan(self, query: ReadQuery, wanted: int | None) -> FakeScan:
        assert wanted is None or query.descending
        ordered = sorted(self.records, reverse=query.descending)
        kept = [each for each in ordered if query.start <= each.sort_key < query.end]
        return FakeScan(kept, self.size, self.most, self.ahead)

    def pages(
        self, query: AggregateQuery, limit: int = 10_000, max_exact: int = 100_000
    ) -> Iterator[AggregatePage]:
        cursor = None
        for _ in range(100_000):
            page = aggregate(query, self.scan, limit=limit, cursor=cursor, max_exact=max_exact)
            yield page
            assert len(page.rows) <= limit
            assert page.cursor != cursor or cursor is None
            cursor = page.cursor
            if cursor is None:
                return
        raise AssertionError("pages without end")

    def rows(self, query: AggregateQuery, **options: int) -> list[AggregateRow]:
        return [row for page in self.pages(query, **options) for row in page.rows]


def ask(
    start: datetime,
    end: datetime,
    interval: timedelta | None = None,
    *,
    path: str | None = "v",
    functions: Sequence[str] = ALL,
    fill: str = "none",
) -> AggregateQuery:
    """Return a checked question."""
    read = ReadQuery.checked(
        "s", start, end, order="asc", sharding_key=None, source="auto", consistent=False
    )
    return AggregateQuery.checked(
        read, interval=interval, field=path, functions=functions, fill=fill
    )


def shown(rows: Sequence[AggregateRow]) -> str:
    """Return rows as text in which any difference shows."""
    return "\n".join(repr(row) for row in rows)


def is_number(value: object) -> bool:
    """Tell whether a JSON value counts as a number."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return abs(value) <= 1.7976931348623157e308


def expected_rows(records: Sequence[StoredEvent], query: AggregateQuery) -> list[AggregateRow]:
    """Return what a query must answer: every interval by itself, from all events."""
    start, end = parse_time(query.read.start), parse_time(query.read.end)
    begins = _begins(start, end, query.grid.width)
    intervals = []
    for begin, after in begins:
        low, high = format_time(max(begin, start)), format_time(min(after, end))
        inside = [json.loads(r.payload) for r in sorted(records) if low <= r.sort_key < high]
        found = inside if query.path is None else [_at(each, query.path) for each in inside]
        values = [each for each in found if query.path is None or is_number(each)]
        intervals.append((begin, values, len(inside) - len(values)))
    computed = [
        AggregateRow(
            begin,
            {f.value: _computed(f, values) for f in query.functions},
            skipped,
            approximate=False,
        )
        for begin, values, skipped in intervals
    ]
    has_numbers = [bool(values) for _, values, _ in intervals]
    if query.fill == "none":
        return [row for row, (_, v, skipped) in zip(computed, intervals, strict=True) if v or skipped]  # fmt: skip
    return [
        row if there else replace(row, values=_filled(query, computed, has_numbers, at))
        for at, (row, there) in enumerate(zip(computed, has_numbers, strict=True))
    ]


def _begins(
    start: datetime, end: datetime, width: timedelta | None
) -> list[tuple[datetime, datetime]]:
    if width is None:
        return [(start, end)]
    begin = _MONDAY if width % timedelta(weeks=1) == timedelta(0) else _EPOCH
    begin += (start - begin) // width * width
    found = []
    while begin < end:
        found.append((begin, begin + width))
        begin += width
    return found


def _at(payload: Any, path: Sequence[str]) -> Any:
    for key in path:
        payload = payload.get(key) if isinstance(payload, dict) else None
    return payload


def _computed(function: AggregateFunction, values: list[Any]) -> Number | None:
    if function is AggregateFunction.COUNT:
        return len(values)
    if not values:
        return None
    if function in PERCENTILES:
        doubles = np.array([float(value) for value in values])
        with np.errstate(over="ignore", invalid="ignore"):
            return float(np.quantile(doubles, PERCENTILES[function]))
    total = sum(map(Fraction, values), Fraction(0))
    computed: dict[AggregateFunction, Any] = {
        AggregateFunction.SUM: lambda: _sum(total, values),
        AggregateFunction.AVG: lambda: float(total / len(values)),
        AggregateFunction.MIN: lambda: min(values) or abs(min(values)),  # no sign of zero
        AggregateFunction.MAX: lambda: max(values) or abs(max(values)),
        AggregateFunction.FIRST: lambda: values[0],
        AggregateFunction.LAST: lambda: values[-1],
    }
    result: Number | None = computed[function]()
    return result


def _sum(total: Fraction, values: list[Any]) -> Number | None:
    if all(isinstance(value, int) for value in values):
        return int(total)
    try:
        return float(total)
    except OverflowError:
        return None


def _filled(
    query: AggregateQuery, rows: list[AggregateRow], has_numbers: list[bool], at: int
) -> dict[str, Number | None]:
    before = next((n for n in range(at - 1, -1, -1) if has_numbers[n]), None)
    after = next((n for n in range(at + 1, len(rows)) if has_numbers[n]), None)
    filled: dict[str, Number | None] = {}
    for function in query.functions:
        low = None if before is None else rows[before][function.value]
        high = None if after is None else rows[after][function.value]
        value: Number | None = None
        if function is AggregateFunction.COUNT or query.fill == "zero":
            value = 0
        elif query.fill == "previous":
            value = low
        elif query.fill == "linear" and None not in {low, high}:
            value = _line(low, high, at, before, after)
        filled[function.value] = value
    return filled


def _line(low: Any, high: Any, at: int, before: Any, after: Any) -> float | None:
    exact = Fraction(low) + Fraction(high - low if isinstance(low, int) and isinstance(high, int) else Fraction(high) - Fraction(low)) * Fraction(at - before, after - before)  # fmt: skip
    try:
        return float(exact) if math.isfinite(float(low)) and math.isfinite(float(high)) else None
    except OverflowError:
        return None
