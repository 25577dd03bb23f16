"""What exports cost: requests, memory, and how hard they press on one partition."""

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from itertools import pairwise
from typing import Any, TypeVar

import pytest

from spillway import EventStore, Settings
from spillway.dynamodb.port import Call
from spillway.scanning.merge import OrderedMerge
from spillway.scanning.streams import StoredEvent
from tests.scanning.world import END, START, small_pages
from tests.support.fakes import NOON, fake_runtime
from tests.support.layouts import epoch, store_layout
from tests.support.memory_table import EVENTS, LAYOUTS
from tests.support.stores import MemoryStore, event_at, events_every

T = TypeVar("T")


def _memory(shards: int, events: int = 400) -> MemoryStore:
    memory = MemoryStore(Settings(shards=shards))
    assert memory.store.write(events_every(timedelta(seconds=30), events)).accepted == events
    memory.table.forget_calls()
    return memory


def _keys_asked(memory: MemoryStore) -> list[str]:
    queries = memory.table.requests_of("Query")
    return [request["ExpressionAttributeValues"][":p"]["S"] for request in queries]


@pytest.mark.parametrize("mode", ["shards", "blocks", "round_robin"])
def test_an_export_that_fits_into_pages_costs_a_query_a_shard(mode: str) -> None:
    memory = _memory(8)
    export = memory.store.export("ORD", START, END, mode=mode)
    assert sum(1 for _ in export) == 400
    assert memory.table.counts == {"GetItem": 1, "Query": 8}
    assert (export.spent.requests, export.spent.items) == (8, 400)
    assert export.spent.rounds == {"shards": 8, "blocks": 2, "round_robin": 1}[mode]


def test_in_round_robin_each_shard_waits_for_the_others_between_two_of_its_pages() -> None:
    memory = _memory(8)
    memory.wrap = lambda call: small_pages(call, 5)
    assert sum(1 for _ in memory.another().export("ORD", START, END, mode="round_robin")) == 400
    asked = _keys_asked(memory)
    at: dict[str, list[int]] = {}
    for number, key in enumerate(asked):
        at.setdefault(key, []).append(number)
    gaps = [other - one for numbers in at.values() for one, other in pairwise(numbers)]
    assert sum(gaps) / len(gaps) > 5
    assert sum(gap == 1 for gap in gaps) < len(gaps) / 20


def test_shards_are_read_one_after_the_other() -> None:
    memory = _memory(8)
    memory.wrap = lambda call: small_pages(call, 5)
    assert sum(1 for _ in memory.another().export("ORD", START, END)) == 400
    asked = _keys_asked(memory)
    assert asked == sorted(asked)


class _Watched:
    """Counts requests that run at the same time, in real threads."""

    def __init__(self, call: Call) -> None:
        self._call = call
        self._lock = threading.Lock()
        self.running = 0
        self.most = 0

    def __call__(self, operation: str, request: Mapping[str, Any], /) -> dict[str, Any]:
        with self._lock:
            self.running += 1
            self.most = max(self.most, self.running)
        try:
            with self._lock:
                return self._call(operation, request)
        finally:
            with self._lock:
                self.running -= 1


@pytest.mark.parametrize("pool", [1, 3, 8])
def test_blocks_send_and_hold_no_more_than_the_pool(
    pool: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory = _memory(16)
    together: list[int] = []

    def noted(tasks: Sequence[Callable[[], T]], /) -> list[T]:
        together.append(len(tasks))
        return [task() for task in tasks]

    held: list[int] = []
    take_final = OrderedMerge.take_final

    def measured(merge: OrderedMerge) -> list[StoredEvent]:
        held.append(sum(len(stream.buffer) for stream in merge.streams))
        return take_final(merge)

    monkeypatch.setattr(OrderedMerge, "take_final", measured)
    store = EventStore(
        small_pages(memory.table, 7),
        table=EVENTS,
        layouts=LAYOUTS,
        runtime=replace(fake_runtime(memory.clock), parallel=noted),
    )
    assert sum(1 for _ in store.export("ORD", START, END, mode="blocks", pool=pool)) == 400
    assert max(together) == pool
    assert max(held) <= pool * 7


@pytest.mark.parametrize("mode", ["shards", "round_robin"])
def test_only_blocks_send_requests_at_the_same_time(mode: str) -> None:
    def never(tasks: Sequence[Callable[[], T]], /) -> list[T]:
        raise AssertionError(f"{len(tasks)} requests at the same time")

    memory = _memory(4)
    store = EventStore(
        small_pages(memory.table, 7),
        table=EVENTS,
        layouts=LAYOUTS,
        runtime=replace(fake_runtime(memory.clock), parallel=never),
    )
    assert sum(1 for _ in store.export("ORD", START, END, mode=mode)) == 400


def test_a_shard_is_first_asked_where_its_layout_begins() -> None:
    memory = MemoryStore(Settings(shards=1))
    memory.store.write(events_every(timedelta(seconds=30), 400))
    grown = NOON - timedelta(seconds=30 * 100)
    epochs = [epoch(1, shards=1, close=grown), epoch(2, shards=8, low=grown)]
    store_layout(memory.table, epochs)
    memory.wrap = lambda call: small_pages(call, 10)
    for mode in ("blocks", "round_robin"):
        memory.table.forget_calls()
        export = memory.another().export("ORD", START, END, mode=mode, pool=8)
        given = 0
        for _ in export:
            given += 1
            assert given >= 290 or set(_keys_asked(memory)) == {"ORD#0"}
        assert given == 400
        assert len(set(_keys_asked(memory))) == 8


@pytest.mark.parametrize("mode", ["shards", "blocks", "round_robin"])
def test_a_single_chunk_reads_little_that_it_does_not_return(mode: str) -> None:
    memory = _memory(4, 1_000)
    export = memory.store.export("ORD", START, END, mode=mode)
    chunk = export.chunk(5_000)
    assert len(chunk.records) > 80
    assert export.spent.items < 2 * len(chunk.records)


@pytest.mark.parametrize("mode", ["shards", "blocks", "round_robin"])
def test_pages_are_no_larger_than_the_read_units_allow(mode: str) -> None:
    memory = _memory(4, 1_000)
    export = memory.store.export("ORD", START, END, mode=mode, max_rcu=8)
    assert sum(1 for _ in export) < 1_000
    assert 8 <= export.spent.read_units <= 12


def test_round_robin_asks_many_shards_for_small_pages_once_it_knows_the_events() -> None:
    memory = MemoryStore(Settings(shards=64))
    payload = {"text": "x" * 2_000}
    memory.store.write(
        event_at(NOON - timedelta(seconds=n), f"{n:04}", payload=payload) for n in range(1_000)
    )
    memory.table.forget_calls()
    assert sum(1 for _ in memory.store.export("ORD", START, END, mode="round_robin")) == 1_000
    limits = [request["Limit"] for request in memory.table.requests_of("Query")]
    assert limits[-1] * 64 * 2_000 < 9_000_000


def test_real_threads_give_the_same_events() -> None:
    memory = _memory(8)
    watched = _Watched(small_pages(memory.table, 9))
    store = EventStore(watched, table=EVENTS, layouts=LAYOUTS)
    export = store.export("ORD", START, END, mode="blocks", pool=4)
    assert len({event.id for event in export}) == 400
    assert watched.most <= 4
    assert export.spent.requests == memory.table.counts["Query"]


@pytest.mark.parametrize(("pool", "looked_up"), [(1, True), (8, False)])
def test_copies_are_looked_up_only_beyond_the_block(pool: int, looked_up: bool) -> None:
    memory = _memory(1)
    memory.store.set_layout("ORD", shards=8)
    memory.table.forget_calls()
    export = memory.store.export("ORD", START, END, mode="blocks", pool=pool)
    assert sum(1 for _ in export) == 400
    assert (export.spent.requests > 8) == looked_up
    assert export.spent.requests <= 8 + 7
