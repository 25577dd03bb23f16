"""What the processes share: series, settings, and what each of them is told when it starts."""

from collections.abc import Callable
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from random import Random
from threading import Event as Signal
from time import monotonic
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from spillway import Event, EventStore, Runtime, Settings, ShardingMode, keys
from spillway.settings import Growth
from spillway.timestamps import format_time, to_datetime
from tests.soak.journal import Identity, Journal, Tail

if TYPE_CHECKING:
    from types_boto3_dynamodb import DynamoDBClient

__all__ = [
    "COUNTS",
    "SERIES",
    "SETTINGS",
    "SHARDING_KEYS",
    "Orders",
    "Process",
    "event",
    "identity",
]

_ARCHIVE: Final = "archive"  # the one series in random mode
SERIES: Final = ("s", "s#1", "/a b/ü", _ARCHIVE)
SHARDING_KEYS: Final = (None, None, None, "a", "b#c")
COUNTS: Final = (1, 2, 4, 8, 16)
# Short, so that epochs begin, close and are folded all the time.
SETTINGS: Final = Settings(
    horizon=20,
    slack=5,
    clock_error=1,
    future_skew=15,
    layout_ttl=3,
    max_epochs=8,
    growth=Growth(max_shards=16, partition_wcu=1),  # any throttled write makes its series grow
)
_POLL: Final = 0.02  # seconds


class Orders(Struct, frozen=True, kw_only=True):
    """What a process is told: where everything is, and who it is."""

    endpoint_url: str
    table: str
    layouts: str
    folder: str
    name: str
    seed: int

    def journal(self, name: str) -> Path:
        """Return the path of a process's journal."""
        return Path(self.folder) / f"{name}.jsonl"

    @property
    def until(self) -> Path:
        """The file that says until when to go on; there once all may begin."""
        return Path(self.folder) / "until"


class Process:
    """One process at work: its stores, its clock (somewhat off), its chance, its journal."""

    def __init__(self, orders: Orders, client: "DynamoDBClient", journal: Journal) -> None:
        self.orders = orders
        self.journal = journal
        self.random = Random(orders.seed)
        self._client = client
        real, error = Runtime(), SETTINGS.clock_error
        offset = self.random.uniform(-error, error)
        self.runtime = replace(real, now=lambda: real.now() + offset, random=self.random.random)
        shards = self.random.choice(COUNTS[:-1])  # configured apart, so that creators race
        self._settings = replace(SETTINGS, shards=shards)
        self.acknowledged = Tail([])

    def store(self, series: str) -> EventStore:
        """Return the store by which a series is used."""
        return self._archive if series == _ARCHIVE else self._events

    def chance(self, probability: float) -> bool:
        """Decide by chance."""
        return self.random.random() < probability

    def go_on(self, step: Callable[["Process"], None], least: float, most: float) -> None:
        """Repeat a step, with pauses between, from when all are ready until the time is over."""
        until = self._when_all_are_ready()
        while monotonic() < until:
            self.acknowledged.update()
            step(self)
            self.runtime.sleep(self.random.uniform(least, most))

    def _when_all_are_ready(self) -> float:
        while not self.orders.until.exists():
            Signal().wait(_POLL)
        folder = self.orders.until.parent
        self.acknowledged = Tail(sorted(folder.glob("writer-*.jsonl")))
        return float(self.orders.until.read_text())

    @cached_property
    def _events(self) -> EventStore:
        return self._make(self._settings)

    @cached_property
    def _archive(self) -> EventStore:
        return self._make(replace(self._settings, mode=ShardingMode.RANDOM))

    def _make(self, settings: Settings) -> EventStore:
        return EventStore(
            self._client,
            table=self.orders.table,
            layouts=self.orders.layouts,
            settings=settings,
            runtime=self.runtime,
        )


def event(identity: Identity) -> Event:
    """Return the event of an identity; its payload tells which it is."""
    series, sort_key = identity
    time, sharding_key, event_id = keys.parse_sort_key(sort_key)
    return Event(
        series=series,
        time=to_datetime(time),
        id=event_id,
        sharding_key=sharding_key,
        payload={"series": series, "sort_key": sort_key},
    )


def identity(found: Event) -> Identity:
    """Return the identity of an event that has an id."""
    assert found.id is not None
    sort_key = keys.sort_key(format_time(found.time), found.sharding_key, found.id)
    return found.series, sort_key
