"""Sentences of docs/semantics.md that no other test holds."""

from dataclasses import replace
from datetime import timedelta

from spillway import Settings
from spillway.keys import parse_partition_key
from tests.support.fakes import NOON
from tests.support.stores import DAY, HOUR, MemoryStore, event_at, events_every, read_all

SECOND = timedelta(seconds=1)


def test_a_write_after_a_deletion_stores_the_event_again() -> None:
    memory = MemoryStore()
    event = event_at()
    memory.store.write([event])
    assert memory.store.delete("ORD", event.time, "1")
    assert memory.store.read_one("ORD", event.time, "1") is None
    memory.store.write([event])
    assert memory.store.read_one("ORD", event.time, "1") == event


def test_later_pages_show_what_was_written_ahead_of_the_cursor_and_not_behind_it() -> None:
    memory = MemoryStore(Settings(shards=4))
    first = events_every(HOUR, 4)
    memory.store.write(first)
    begin, end = first[0].time, NOON
    page = memory.store.read("ORD", begin, end, limit=2)
    behind, ahead = (event_at(first[n].time + SECOND, "new") for n in (0, 2))
    memory.store.write([behind, ahead])
    rest = memory.store.read("ORD", begin, end, cursor=page.cursor)
    assert [*page.events, *rest.events] == [*first[:3], ahead, first[3]]


def test_after_a_change_of_layout_the_last_payload_written_need_not_be_the_one_read() -> None:
    memory = MemoryStore()
    stale = memory.another()
    stale.write([event_at(event_id="2", n=1)])
    memory.store.set_layout("ORD", shards=64)
    memory.store.write([event_at(event_id="2", n=2)])
    stale.write([event_at(event_id="2", n=3)])  # by the layout that it read a moment ago
    shards = {parse_partition_key(item["PK"]["S"]).shard for item in memory.stored}
    assert len(shards) == 2
    found = list(read_all(memory.store, "ORD", NOON - HOUR, NOON + HOUR))
    assert [event.payload for event in found] == [{"n": 2}]


def test_a_change_of_retention_leaves_what_is_stored() -> None:
    memory = MemoryStore(Settings(retention=2 * DAY))
    memory.store.write([event_at()])
    later = memory.another(replace(memory.settings, retention=30 * DAY))
    memory.clock.forward(2 * DAY + SECOND + SECOND)
    assert later.read_one("ORD", NOON, "1") is None
