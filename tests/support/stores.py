"""Event stores over memory, events to put into them, and reads of everything page by page."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from spillway import Event, EventStore, Settings
from spillway.dynamodb.port import Call
from spillway.layouts.model import Snapshot
from spillway.layouts.repository import LayoutRepository
from tests.support.fakes import NOON, FakeClock, fake_runtime
from tests.support.memory_table import EVENTS, LAYOUTS, USAGE, MemoryTable, memory_table

__all__ = ["DAY", "HOUR", "MemoryStore", "event_at", "events_every", "identity", "read_all"]

HOUR = timedelta(hours=1)
DAY = timedelta(days=1)


@dataclass
class MemoryStore:
    """A store over memory, and everything it stands on. `wrap` comes between the store and its tables."""

    settings: Settings = field(default_factory=Settings)
    wrap: Callable[[Call], Call] = lambda call: call
    random: Callable[[], float] = lambda: 0.5
    table: MemoryTable = field(default_factory=memory_table)
    clock: FakeClock = field(default_factory=FakeClock)

    def __post_init__(self) -> None:
        self.store = self.another()

    def another(self, settings: Settings | None = None) -> EventStore:
        """Return another process's store on the same tables, with caches of its own."""
        return EventStore(
            self.wrap(self.table),
            table=EVENTS,
            layouts=LAYOUTS,
            usage=USAGE,
            settings=settings or self.settings,
            runtime=fake_runtime(self.clock, self.random),
        )

    def layout(self, series: str) -> Snapshot:
        """Return the stored layout of a series, by a way of its own."""
        found = LayoutRepository(self.table, LAYOUTS, self.settings, self.clock.now).read(series)
        assert found is not None
        return found

    @property
    def stored(self) -> list[dict[str, Any]]:
        """The items of the main table, as DynamoDB holds them."""
        return list(self.table.items[EVENTS].values())


def event_at(
    time: datetime = NOON, event_id: str | None = "1", series: str = "ORD", **fields: Any
) -> Event:
    """Return an event; `fields` are its payload, `sharding_key` and unused parts left out."""
    sharding_key = fields.pop("sharding_key", None)
    payload = fields.pop("payload", None) or fields or {"delay": 33}
    return Event(series=series, time=time, id=event_id, sharding_key=sharding_key, payload=payload)


def events_every(
    step: timedelta, count: int, *, until: datetime = NOON, series: str = "ORD"
) -> list[Event]:
    """Return `count` events of a series, evenly spaced, in time order; the last one before `until`."""
    return [
        event_at(until - step * (count - n), f"{n:07d}", series=series, n=n) for n in range(count)
    ]


def read_all(
    store: EventStore, series: str, start: datetime, end: datetime, **query: Any
) -> Iterator[Event]:
    """Yield the events of a range, page by page; a cursor that comes back would never end."""
    cursor = None
    seen: set[str | None] = set()
    while cursor not in seen:
        seen.add(cursor)
        page = store.read(series, start, end, cursor=cursor, **query)
        yield from page.events
        cursor = page.cursor
        if cursor is None:
            return
    raise AssertionError(f"the cursor {cursor} came back")


def identity(event: Event) -> tuple[str, datetime, str | None, str | None]:
    """Return the four that identify an event."""
    return event.series, event.time, event.sharding_key, event.id
