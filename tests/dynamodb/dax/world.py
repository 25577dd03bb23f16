"""A DynamoDB engine, a DAX cluster before it, and processes with event stores on both."""

import itertools
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

import botocore.session

from spillway import DaxCall, Event, EventStore, Runtime, Settings, keys
from spillway.dynamodb.port import Call
from tests.dynamodb.dax.double.server import DaxDouble, dax_double
from tests.support.fakes import FakeClock, fake_runtime
from tests.support.stores import DAY, event_at

if TYPE_CHECKING:
    from types_boto3_dynamodb import DynamoDBClient

__all__ = ["EVENTS", "LAYOUTS", "Recorded", "World", "dax_session", "make_tables", "world_on"]

EVENTS: Final = "dax-events"
LAYOUTS: Final = "dax-layouts"
KEY_NAMES: Final = {EVENTS: (keys.PARTITION_KEY, keys.SORT_KEY), LAYOUTS: (keys.LAYOUT_KEY,)}
_INDEX_KEY: Final = (keys.INDEX_PARTITION_KEY, keys.SORT_KEY)
_numbers = itertools.count()


def make_tables(client: "DynamoDBClient") -> None:
    """Create both tables."""
    index: Any = {
        "IndexName": keys.INDEX_NAME,
        "KeySchema": _schema(_INDEX_KEY),
        "Projection": {"ProjectionType": "ALL"},
    }
    client.create_table(
        TableName=EVENTS,
        KeySchema=_schema(KEY_NAMES[EVENTS]),
        AttributeDefinitions=_texts({*KEY_NAMES[EVENTS], *_INDEX_KEY}),
        GlobalSecondaryIndexes=[index],
        BillingMode="PAY_PER_REQUEST",
    )
    client.create_table(
        TableName=LAYOUTS,
        KeySchema=_schema(KEY_NAMES[LAYOUTS]),
        AttributeDefinitions=_texts(KEY_NAMES[LAYOUTS]),
        BillingMode="PAY_PER_REQUEST",
    )


def _texts(names: Iterable[str]) -> Any:
    return [{"AttributeName": name, "AttributeType": "S"} for name in sorted(names)]


def _schema(names: tuple[str, ...]) -> Any:
    kinds = ("HASH", "RANGE")
    return [
        {"AttributeName": name, "KeyType": kind} for name, kind in zip(names, kinds, strict=False)
    ]


def dax_session() -> botocore.session.Session:
    """Return a session that knows nothing but made-up credentials and a region."""
    session = botocore.session.Session({"config_file": (None, None, "", None)})
    session.set_credentials("AKIATEST", "secret")
    session.set_config_variable("region", "eu-central-1")
    return session


class Recorded:
    """A port that notes what passes through it."""

    def __init__(self, call: Call) -> None:
        self._call = call
        self.requests: list[tuple[str, Mapping[str, Any]]] = []

    def __call__(self, operation: str, request: Mapping[str, Any], /) -> dict[str, Any]:
        self.requests.append((operation, request))
        return self._call(operation, request)

    def of(self, operation: str, table: str = EVENTS) -> list[Mapping[str, Any]]:
        """Return the requests of one operation on one table."""
        return [
            request
            for name, request in self.requests
            if name == operation and request.get("TableName") == table
        ]


@dataclass
class World:
    """Processes on one DynamoDB and one DAX; all go by one clock, and so do the caches of DAX.

    Attributes:
        dynamodb: what all processes ask DynamoDB directly.
        series: a name that no other world has.
    """

    engine: Call
    dax: DaxDouble
    clock: FakeClock
    dynamodb: Recorded = field(init=False)
    series: str = field(default_factory=lambda: f"S{next(_numbers)}#é")
    ways: list[DaxCall] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.dynamodb = Recorded(self.engine)

    def way(self) -> DaxCall:
        """Return a way to DAX, closed at the end of the test."""
        way = DaxCall(self.dax.url, dax_session())
        self.ways.append(way)
        return way

    def process(
        self, *, cache: Call | None = None, runtime: Runtime | None = None, **settings: Any
    ) -> EventStore:
        """Return the event store of another process, by way of DAX unless another cache is given."""
        return EventStore(
            self.dynamodb,
            table=EVENTS,
            layouts=LAYOUTS,
            settings=Settings(**settings),
            runtime=runtime or fake_runtime(self.clock),
            cache=cache or self.way(),
        )

    def write(self, store: EventStore, count: int, at: datetime | None = None) -> list[Event]:
        """Write events a microsecond apart, by default a day ago; return them in order."""
        first = at or self.clock.time - DAY
        events = [
            event_at(first.replace(microsecond=n), f"{n:04d}", series=self.series, n=n)
            for n in range(count)
        ]
        assert store.write(events).accepted == count
        return events

    def forget_requests(self) -> None:
        """Start noting anew, and with empty caches in DAX."""
        self.dynamodb.requests.clear()
        self.dax.node.calls.clear()


@contextmanager
def world_on(engine: Call) -> Iterator[World]:
    """Run DAX before an engine that has the tables."""
    clock = FakeClock()
    with dax_double(engine, KEY_NAMES, clock.now) as dax:
        world = World(engine, dax, clock)
        try:
            yield world
        finally:
            for way in world.ways:
                way.close()
