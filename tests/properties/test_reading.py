"""Any history of layouts, any events, any page size: every event is read once, in order."""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from spillway import Event, Settings, StorageError
from spillway.keys import TimeBucket
from spillway.layouts.model import OPEN, Epoch
from spillway.scanning.merge import OrderedMerge
from spillway.scanning.pages import to_event
from spillway.scanning.partitions import ScanPartition
from spillway.scanning.query import Order, ReadQuery
from spillway.scanning.streams import PartitionStream, decode_event
from spillway.sharding import routing_hash, shard_of
from spillway.timestamps import format_time
from tests.support.fakes import NOON
from tests.support.faults import Fault, FaultyCall
from tests.support.layouts import epoch, store_layout
from tests.support.memory_table import EVENTS, memory_table
from tests.support.stores import DAY, HOUR, MemoryStore, identity, read_all
from tests.support.strategies import orders, power_of_two_shards, ranges, recent_times

START, END = NOON - 6 * HOUR, NOON + HOUR
spans = st.just((START, END)) | ranges(START, END)
sort_keys = st.integers(0, 60).map(lambda n: f"{format_time(NOON)}#{n:03}")


@given(
    st.lists(st.sets(sort_keys, max_size=30), min_size=1, max_size=6),
    st.integers(1, 9),
    orders,
)
def test_a_merge_is_the_sorted_union(parts: list[set[str]], page: int, order: str) -> None:
    table = memory_table()
    for n, part in enumerate(parts):
        for sort_key in part:
            item = {"PK": {"S": f"s#{n}"}, "SK": {"S": sort_key}, "payload": {"S": "{}"}}
            table.items[EVENTS][f"s#{n}", sort_key] = item
    query = ReadQuery.checked(
        "s", START, END, order=order, sharding_key=None, source="table", consistent=False
    )
    descending = order == Order.DESCENDING
    bound = query.end if descending else query.start
    merge = OrderedMerge(
        iter([ScanPartition(f"s#{n}", bound, on_index=False) for n in range(len(parts))]),
        lambda partition: PartitionStream(table, EVENTS, query, partition),
        descending=descending,
    )
    merged: list[str] = []
    while merge.streams:
        for stream in merge.streams:
            if stream.blocks_merge:
                stream.fetch(page)
        merged += [record.sort_key for record in merge.take_final()]
        merge.open_next()
    assert merged == sorted((key for part in parts for key in part), reverse=descending)


@dataclass(frozen=True)
class History:
    """Layouts one after the other, and what was written under each."""

    epochs: list[Epoch]
    written: list[list[Event]]

    def play(self, settings: Settings) -> MemoryStore:
        """Write it all, each part under its own layout alone, then leave all epochs in force side by side."""
        memory = MemoryStore(settings)
        for each, events in zip(self.epochs, self.written, strict=True):
            store_layout(memory.table, [replace(each, close=OPEN)], series="s")
            assert not memory.another().write(events).rejected
        store_layout(memory.table, self.epochs, series="s")
        return memory

    def expected(
        self, memory: MemoryStore, start: datetime = START, end: datetime = END
    ) -> list[Event]:
        """Return a range's events in order, each as the newest epoch with a copy of it has it."""
        by_identity = {
            identity(event): event
            for part in self.written
            for event in part
            if start <= event.time < end
        }
        return sorted((self._kept(memory, each) for each in by_identity.values()), key=_position)

    def _kept(self, memory: MemoryStore, event: Event) -> Event:
        sort_key = _position(event).decode()
        routing = routing_hash("s", event.sharding_key or sort_key)
        for each in reversed(self.epochs):
            key = f"s#{shard_of(routing, each.shards)}", sort_key
            item = memory.table.items[EVENTS].get(key)
            if item is not None and format_time(event.time) <= each.close:
                return to_event("s", decode_event(item))
        raise AssertionError(f"{event} was written nowhere")


def _position(event: Event) -> bytes:
    key = "" if event.sharding_key is None else f"{event.sharding_key}#"
    return f"{format_time(event.time)}#{key}{event.id}".encode()


def _ordered(events: list[Event], order: str) -> list[Event]:
    return events if order == Order.ASCENDING else events[::-1]


def _event(time: Any, number: int, key: str | None, version: int) -> Event:
    return Event(
        series="s", time=time, id=str(number), sharding_key=key, payload={"version": version}
    )


@st.composite
def histories(draw: st.DrawFn, shards: st.SearchStrategy[int] = power_of_two_shards) -> History:
    count = draw(st.integers(1, 3))
    epochs = [
        epoch(
            n + 1,
            shards=draw(shards),
            index_shards=draw(st.sampled_from([1, 2, 4])),
            bucket=draw(st.sampled_from(TimeBucket)),
            close=None if n == count - 1 else NOON,
        )
        for n in range(count)
    ]
    identities = draw(
        st.lists(
            st.tuples(
                recent_times, st.integers(0, 3), st.none() | st.sampled_from(["k", "k#1", "é"])
            ),
            max_size=25,
            unique=True,
        )
    )
    written = []
    for version in range(count):
        chosen = [each for each in identities if draw(st.booleans())]
        written.append([_event(*each, version) for each in chosen])
    return History(epochs, written)


@given(histories(), spans, st.integers(1, 9), orders, st.sampled_from(["table", "index"]))
def test_paging_yields_every_event_once_in_order_as_the_newest_epoch_has_it(
    history: History, span: tuple[datetime, datetime], limit: int, order: str, read: str
) -> None:
    memory = history.play(Settings())
    found = read_all(
        memory.another(), "s", *span, limit=limit, order=order, source=read, consistent=False
    )
    assert list(found) == _ordered(history.expected(memory, *span), order)


@given(histories(), spans, st.integers(1, 400), orders)
def test_any_budget_of_bytes_yields_every_event_once_in_order(
    history: History, span: tuple[datetime, datetime], page_bytes: int, order: str
) -> None:
    memory = history.play(Settings(page_bytes=page_bytes))
    found = read_all(memory.another(), "s", *span, limit=1_000, order=order)
    assert list(found) == _ordered(history.expected(memory, *span), order)


# So many shards that plans begin with the index.
@given(histories(st.sampled_from([2, 16, 32])), ranges(START, END), orders, st.data())
def test_reads_that_fail_at_any_request_hold_what_lies_in_their_range_and_nothing_else(
    history: History, span: tuple[datetime, datetime], order: str, data: st.DataObject
) -> None:
    memory = history.play(Settings())
    faults = data.draw(st.lists(st.sampled_from([Fault.NONE, Fault.THROTTLED]), max_size=60))
    memory.wrap = lambda call: FaultyCall(call, faults)
    store = memory.another()
    found: list[Event] = []
    cursor = None
    for _ in range(200):
        try:
            page = store.read(
                "s",
                *span,
                limit=data.draw(st.integers(1, 9)),
                order=order,
                cursor=cursor,
                source=data.draw(st.sampled_from(["auto", "table", "index"])),
                consistent=False,
                timeout=data.draw(st.sampled_from([0.05, 10])),
            )
        except StorageError:
            continue
        found += page.events
        cursor = page.cursor
        if cursor is None:
            break
    assert found == _ordered(history.expected(memory, *span), order)


@given(histories(), recent_times, recent_times, orders, st.sampled_from(["table", "index"]))
def test_a_range_holds_what_lies_in_it_and_nothing_else(
    history: History, one: Any, other: Any, order: str, read: str
) -> None:
    start, end = min(one, other), max(one, other) + timedelta(microseconds=1)
    memory = history.play(Settings())
    found = read_all(
        memory.another(), "s", start, end, limit=3, order=order, source=read, consistent=False
    )
    expected = [event for event in history.expected(memory) if start <= event.time < end]
    assert list(found) == _ordered(expected, order)


@given(histories(), spans, st.sampled_from(["k", "k#1", "é", "absent"]), st.integers(1, 4), orders)
def test_a_sharding_key_holds_its_events_and_nothing_else(
    history: History, span: tuple[datetime, datetime], sharding_key: str, limit: int, order: str
) -> None:
    memory = history.play(Settings())
    found = read_all(
        memory.another(), "s", *span, limit=limit, order=order, sharding_key=sharding_key
    )
    inside = history.expected(memory, *span)
    expected = [event for event in inside if event.sharding_key == sharding_key]
    assert list(found) == _ordered(expected, order)


@given(histories())
def test_every_event_is_found_by_its_identity(history: History) -> None:
    memory = history.play(Settings())
    store = memory.another()
    for event in history.expected(memory):
        assert event.id is not None
        found = store.read_one("s", event.time, event.id, sharding_key=event.sharding_key)
        assert found == event


@given(histories(), spans, st.integers(1, 5), st.data())
def test_a_cursor_goes_on_over_changes_of_order_of_source_and_of_layout(
    history: History, span: tuple[datetime, datetime], limit: int, data: st.DataObject
) -> None:
    memory = history.play(Settings())
    cursor = None
    found: list[Event] = []
    while True:
        read = data.draw(st.sampled_from(["table", "index"]))
        page = memory.another().read(
            "s", *span, limit=limit, cursor=cursor, source=read, consistent=False
        )
        found += page.events
        cursor = page.cursor
        if cursor is None:
            break
        if data.draw(st.booleans()):
            last = history.epochs[-1]
            grown = replace(last, shards=last.shards * 2, id=last.id + 1)
            store_layout(memory.table, [*history.epochs, grown], series="s")
    assert [identity(event) for event in found] == [
        identity(event) for event in history.expected(memory, *span)
    ]


@given(histories(), st.integers(0, 26))
def test_expired_events_are_never_returned_and_others_always_are(
    history: History, hours: int
) -> None:
    memory = history.play(Settings(retention=DAY))
    memory.clock.forward(timedelta(hours=hours, minutes=30))
    found = list(read_all(memory.another(), "s", START, END, limit=4))
    limit = memory.clock.time - DAY
    assert found == [event for event in history.expected(memory) if event.time > limit]
