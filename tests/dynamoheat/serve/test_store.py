"""The library on a DynamoDB that throttles and fails: all is accepted, and read back once."""

from collections.abc import Callable
from datetime import timedelta
from time import monotonic

import pytest

from local.engine import EngineProcess
from spillway import Event, EventStore, Settings
from tests.dynamoheat.serve.serving import endpoint
from tests.support.clients import client_with
from tests.support.engine_tables import create_tables
from tests.support.fakes import NOON
from tests.support.stores import HOUR, read_all

pytestmark = pytest.mark.engine

EVENTS = 300
FAULTS = (
    "BatchWriteItem:500:0.05",
    "BatchWriteItem:503:0.05",
    "BatchWriteItem:throttle:0.05",
    "BatchWriteItem:latency:5ms:0.2",
    "BatchWriteItem:reset-before:0.05",
    "BatchWriteItem:reset-after:0.05",
    "BatchWriteItem:lost-reply:0.03",
    "UpdateItem:500:0.1",
    "UpdateItem:reset-after:0.1",
    "Query:500:0.05",
    "Query:throttle:0.05",
    "GetItem:reset-before:0.1",
)


def hurried(factor: float) -> Callable[[], float]:
    """Return a clock that runs faster than the wall's, so that what throttles soon passes."""
    began = monotonic()
    return lambda: 1_700_000_000.0 + factor * (monotonic() - began)


def test_everything_is_accepted_and_read_back_once_whatever_throttles_and_breaks(
    engine: EngineProcess,
) -> None:
    with endpoint(
        engine.url, clock=hurried(60), partition_wcu=10, partition_rcu=50, seed=11, faults=FAULTS
    ) as served:
        table, layouts = create_tables(served.client(), "throttled")
        client = client_with(served.url, read_timeout=0.3, max_pool_connections=16)
        store = EventStore(
            client, table=table, layouts=layouts, settings=Settings(write_timeout=600)
        )
        events = [
            Event(series="ORD", time=NOON - timedelta(seconds=n), id=str(n), payload={"n": n})
            for n in range(1, EVENTS + 1)
        ]
        for start in range(0, EVENTS, 100):
            result = store.write(events[start : start + 100])
            assert result.rejected == ()
        found = list(
            read_all(
                store, "ORD", NOON - HOUR, NOON, order="asc", limit=37, consistent=True, timeout=100
            )
        )
        throttled = served.heat()["tables"][table]["throttled"]
        injected = served.request("GET", "/heat/faults")[2]["injected"]
        client.close()
    assert [event.id for event in found] == [str(n) for n in range(EVENTS, 0, -1)]
    assert sum(throttled.values()) > 50
    assert len(injected) >= 6
