"""One page of a read."""

from collections.abc import Callable
from dataclasses import dataclass

import msgspec

from spillway import keys
from spillway.event import Event
from spillway.reading.stream import Record
from spillway.timestamps import to_datetime

__all__ = ["Measure", "Page", "stored_size", "to_event"]

Measure = Callable[[Record], int]
"""Bytes that a record adds to a page, by which the page's budget is counted."""


@dataclass(frozen=True, slots=True)
class Page:
    """Events in order, and where to go on.

    Attributes:
        series: the series read.
        records: the stored events, payloads as JSON text.
        cursor: opaque, for the next page of the same query; None after the last. Also after a page without events.
    """

    series: str
    records: tuple[Record, ...]
    cursor: str | None

    @property
    def events(self) -> tuple[Event, ...]:
        """The events, payloads decoded; decoded anew at each use."""
        return tuple(to_event(self.series, record) for record in self.records)


def to_event(series: str, record: Record) -> Event:
    """Return a stored record as the event that was written."""
    time, sharding_key, event_id = keys.parse_sort_key(record.sort_key)
    return Event(
        series=series,
        time=to_datetime(time),
        id=event_id,
        sharding_key=sharding_key,
        payload=msgspec.json.decode(record.payload),
    )


def stored_size(record: Record) -> int:
    """Return the bytes of what identifies a record and of its payload."""
    return len(record.sort_key.encode()) + len(record.payload.encode())
