"""Reads through a real endpoint that throttles, fails and hangs: pages stay true, and go on."""

from collections.abc import Iterator
from datetime import timedelta
from itertools import count

import pytest

from local.engine import EngineProcess
from spillway import Event, EventStore, Settings, StorageError
from tests.dynamoheat.serve.serving import Endpoint, endpoint
from tests.support.engine_tables import create_tables
from tests.support.fakes import NOON
from tests.support.stores import DAY, event_at

EVENTS = [event_at(NOON - timedelta(minutes=n), f"{n:05}", n=n) for n in range(600, 0, -1)]
FAULTS = {
    "throttles": ("Query:throttle:0.4",),
    "errors": ("Query:500:0.3", "Query:503:0.2"),
    "resets": ("Query:reset-before:0.2", "Query:reset-after:0.2"),
    "hangs": ("Query:lost-reply:0.03", "Query:latency:50ms:0.2"),
    "everything": ("Query:throttle:0.2", "Query:500:0.1", "Query:reset-after:0.1",
                   "GetItem:throttle:0.2"),
}  # fmt: skip
SPANS = {
    "a day": (NOON - DAY, NOON),
    "in the midst of two buckets": (
        NOON - timedelta(minutes=101, microseconds=1),
        NOON - timedelta(minutes=19, seconds=59.999999),
    ),
    "in the midst of one bucket": (NOON - timedelta(minutes=40), NOON - timedelta(minutes=20)),
}
_numbers = count()


@pytest.fixture(scope="module")
def faulty(engine: EngineProcess) -> Iterator[Endpoint]:
    with endpoint(engine.url, seed=11) as running:
        yield running


@pytest.fixture(scope="module")
def store(faulty: Endpoint) -> EventStore:
    client = faulty.client(read_timeout=0.3, max_pool_connections=16)
    events, layouts = create_tables(client, f"faults-{next(_numbers)}")
    settings = Settings(shards=8, index_shards=2)
    made = EventStore(client, table=events, layouts=layouts, settings=settings)
    assert not made.write(EVENTS).rejected
    return made


@pytest.mark.engine
@pytest.mark.parametrize("faults", FAULTS)
@pytest.mark.parametrize("read", ["table", "auto"])
@pytest.mark.parametrize("span", SPANS)
@pytest.mark.parametrize("order", ["asc", "desc"])
def test_pages_under_faults_are_in_order_without_gaps_and_end_with_every_event(  # noqa: PLR0917
    faulty: Endpoint, store: EventStore, faults: str, read: str, span: str, order: str
) -> None:
    start, end = SPANS[span]
    expected = [event for event in EVENTS if start <= event.time < end]
    if order == "desc":
        expected.reverse()
    faulty.set_faults(*FAULTS[faults])
    found: list[Event] = []
    cursor: str | None = None
    try:
        while True:
            try:
                page = store.read(
                    "ORD", start, end, limit=250, cursor=cursor, source=read, order=order,
                    consistent=False, timeout=1.5,
                )  # fmt: skip
            except StorageError:
                continue  # nothing of the page was certain
            found += page.events
            assert found == expected[: len(found)]
            assert page.complete or page.missing
            cursor = page.cursor
            if cursor is None:
                break
    finally:
        faulty.set_faults()
    assert found == expected
