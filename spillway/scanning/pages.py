"""One page of a read."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

import msgspec

from spillway import keys
from spillway.event import Event
from spillway.scanning.streams import StoredEvent
from spillway.timestamps import to_datetime

__all__ = [
    "MAX_MISSING",
    "Explanation",
    "Measure",
    "Missing",
    "Page",
    "stored_size",
    "to_event",
]

MAX_MISSING: Final = 20  # unfinished partitions that a page names

Measure = Callable[[StoredEvent], int]
"""Returns the bytes that a record adds to a page."""


@dataclass(frozen=True, slots=True)
class Missing:
    """A partition that a read did not finish.

    Attributes:
        partition: its partition key, of the table or of the index.
        reached: the position up to which it was read; it begins with a stored time.
        error: the error code of its last request; None if no request was sent.
    """

    partition: str
    reached: str
    error: str | None

    @property
    def reached_time(self) -> str:
        """The stored time up to which it was read."""
        return self.reached[: keys.TIME_WIDTH]


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """The plan of a page, its estimated and its actual cost.

    Attributes:
        source: where the read began: `table` or `index`.
        reason: why.
        estimates: expected requests and read units of the page, by source.
        requests, read_units, rounds: its actual cost; see `ReadCost`.
        items: items fetched.
        returned: events of the page.
        seconds: time that it took.
    """

    source: str
    reason: str
    estimates: Mapping[str, tuple[float, float]]
    requests: int
    read_units: float
    rounds: int
    items: int
    returned: int
    seconds: float


@dataclass(frozen=True, slots=True)
class Page:
    """Events in order, and a cursor for the next page.

    Attributes:
        series: the series read.
        records: the stored events, payloads as JSON text.
        cursor: opaque, for the next page of the same query; None after the last. A page without
            events may have one.
        explanation: its plan and its cost.
        reason: why the page ends before its limit and before the end of its range: `deadline`,
            `read_units` or the code of a storage error; None if it is complete.
        missing: partitions that were not finished: up to 20, those with errors first.
        missing_count: how many partitions were not finished.
    """

    series: str
    records: tuple[StoredEvent, ...]
    cursor: str | None
    explanation: Explanation
    reason: str | None = None
    missing: tuple[Missing, ...] = ()
    missing_count: int = 0

    @property
    def complete(self) -> bool:
        """Whether the page ends at its limit, its bytes or the end of its range."""
        return self.reason is None

    @property
    def events(self) -> tuple[Event, ...]:
        """The events with decoded payloads. Each use decodes them again."""
        return tuple(to_event(self.series, record) for record in self.records)


def to_event(series: str, record: StoredEvent) -> Event:
    """Return a stored record as the event that was written."""
    time, sharding_key, event_id = record.identity
    return Event(
        series=series,
        time=to_datetime(time),
        id=event_id,
        sharding_key=sharding_key,
        payload=msgspec.json.decode(record.payload),
    )


def stored_size(record: StoredEvent) -> int:
    """Return the bytes of what identifies a record and of its payload."""
    return len(record.sort_key.encode()) + len(record.payload.encode())
