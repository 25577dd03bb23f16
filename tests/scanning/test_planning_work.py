"""What a read works out before its first request is bounded, however wide its range and its layout."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import pytest

from spillway import Page
from spillway.dynamodb.port import Call
from tests.support.fakes import NOON
from tests.support.layouts import epoch, store_layout
from tests.support.stores import DAY, HOUR, MemoryStore, event_at
from tests.support.work import counting_calls

SHARDS = 256
CALLS_PER_PARTITION = 60  # to plan, to open and to limit it
SPANS = {"minutes": timedelta(minutes=1), "hours": 5 * HOUR, "decades": 20_000 * DAY}


class FirstQueryError(Exception):
    """Ends a read where its planning ends."""


@dataclass
class World:
    """A series of one event, with 256 shards and as many in each minute of the index.

    Queries take `seconds` each, or end the read where these are None.
    """

    seconds: float | None = 0
    memory: MemoryStore = field(init=False)

    def __post_init__(self) -> None:
        self.memory = MemoryStore(wrap=self._wrap)
        wide = epoch(shards=SHARDS, index_shards=SHARDS, bucket="minute")
        store_layout(self.memory.table, [wide])
        assert self.memory.store.write([event_at(NOON - timedelta(seconds=1))]).accepted
        # Shows that the series is sparse, so that reads open many buckets at once.
        self.memory.store.read("ORD", NOON - DAY, NOON)

    def _wrap(self, call: Call) -> Call:
        def through(operation: str, request: Mapping[str, Any], /) -> dict[str, Any]:
            if operation == "Query" and self.seconds is None:
                raise FirstQueryError
            if operation == "Query":
                self.memory.clock.forward(timedelta(seconds=self.seconds or 0))
            return call(operation, request)

        return through

    def read(self, span: str, order: str, **query: Any) -> Page:
        return self.memory.store.read(
            "ORD", NOON - SPANS[span], NOON, limit=10_000, order=order, consistent=False, **query
        )


@pytest.mark.parametrize("span", SPANS)
@pytest.mark.parametrize("order", ["asc", "desc"])
@pytest.mark.parametrize("read", ["index", "table", "auto"])
@pytest.mark.parametrize("max_rcu", [None, 10_000])
def test_the_work_before_the_first_request_is_that_of_some_hundred_partitions(
    span: str, order: str, read: str, max_rcu: float | None
) -> None:
    world = World()
    world.seconds = None
    with counting_calls() as calls, pytest.raises(FirstQueryError):
        world.read(span, order, source=read, max_rcu=max_rcu)
    assert calls() < CALLS_PER_PARTITION * SHARDS


@pytest.mark.parametrize("span", SPANS)
@pytest.mark.parametrize("order", ["asc", "desc"])
def test_a_wide_walk_of_the_index_ends_soon_after_its_soft_deadline(span: str, order: str) -> None:
    world = World()
    world.seconds = 0.01
    began = world.memory.clock.seconds
    page = world.read(span, order, source="index", timeout=8)
    one_round = SHARDS * world.seconds
    assert world.memory.clock.seconds - began <= 4 + one_round + 0.001
    assert page.reason == (None if span == "minutes" else "deadline")
    assert not page.missing or page.missing[0].error is None
