"""Which copy is given out: rules that layouts which change in the middle of an export must not shake."""

from collections import Counter
from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spillway import Settings
from spillway.layouts.model import Epoch, Layout
from spillway.scanning.export_copies import CopyLookup
from spillway.scanning.query import ReadQuery
from spillway.sharding import routing_hash, shard_of
from spillway.timestamps import format_time
from tests.scanning.world import END, SERIES, START, World
from tests.support.fakes import NOON
from tests.support.layouts import epoch, layout_of
from tests.support.memory_table import EVENTS

sort_keys = st.integers(0, 80).map(lambda n: f"{format_time(NOON)}#{n:03}")


def _world(*epochs: Epoch) -> World:
    layout: Layout = layout_of(*epochs, series=SERIES)
    return World(layout, Settings(), 100)


def _moved(shards: int) -> str:
    """Return the sort key of an event that has another shard than 0 among so many."""
    keys = (f"{format_time(NOON)}#{n}" for n in range(100))
    return next(key for key in keys if shard_of(routing_hash(SERIES, key), shards))


def _grown() -> tuple[World, str, int]:
    """Return a world that grew from 1 to 8 shards, and an event with a copy under each."""
    world = _world(epoch(1, shards=1), epoch(2, shards=8))
    sort_key = _moved(8)
    other = world.shards_for(sort_key)[0]
    world.put(sort_key, 0)
    world.put(sort_key, other)
    return world, sort_key, other


@pytest.mark.parametrize("mode", ["shards", "blocks"])
def test_a_copy_passed_over_is_given_later_though_the_layout_prefers_another_by_then(
    mode: str,
) -> None:
    world, sort_key, _ = _grown()
    world.put(f"{format_time(NOON - timedelta(hours=1))}#first", 0)
    first = world.export(mode, pool=1)
    given = [record.sort_key for record in first.chunk(1).records]
    world.change(lambda old: replace(old, epochs=(*old.epochs, epoch(3, shards=1))))
    rest = world.export(mode, first.cursor)
    given += [record.sort_key for record in rest.chunk().records]
    assert sorted(given) == sorted(world.copies)
    assert sort_key in given


def test_a_copy_that_is_written_behind_the_export_does_not_hide_the_one_ahead() -> None:
    world = _world(epoch(1, shards=1), epoch(2, shards=8), epoch(3, shards=1))
    sort_key = _moved(8)
    world.put(sort_key, next(shard for shard in world.shards_for(sort_key) if shard))
    world.put(f"{format_time(NOON + timedelta(minutes=1))}#first", 0)
    export = world.export("shards")
    assert len(export.chunk(1).records) == 1
    world.put(sort_key, 0)  # again, under the newest epoch, at a time that has been passed there
    rest = world.export("shards", export.cursor)
    assert sort_key in [record.sort_key for record in rest.chunk().records]


def test_a_shard_is_skipped_only_where_nothing_after_the_cursor_can_lie_in_it() -> None:
    closing = NOON
    world = _world(epoch(1, shards=2, close=closing), epoch(2, shards=1, low=closing))
    world.put(f"{format_time(closing)}#1", 0)
    world.put(f"{format_time(closing)}#2", 1)
    export = world.export("round_robin")
    assert [record.sort_key[-1] for record in export.chunk(1).records] == ["1"]
    rest = world.export("round_robin", export.cursor)
    assert [record.sort_key[-1] for record in rest.chunk().records] == ["2"]


@given(st.sets(sort_keys), st.sets(sort_keys, min_size=1), st.integers(1, 30))
def test_a_lookup_finds_what_the_shard_holds_with_at_most_a_request_an_event(
    held: set[str], wanted: set[str], page: int
) -> None:
    world = _world(epoch(1, shards=2))
    world.page = page
    world.__post_init__()
    for sort_key in held:
        world.put(sort_key, 1)
    query = ReadQuery.checked(
        SERIES, START, END, order="asc", sharding_key=None, source="table", consistent=True
    )
    lookup = CopyLookup(world.memory.wrap(world.table), EVENTS, query, 0)
    assert set(lookup.find(1, sorted(wanted))) == held & wanted
    assert world.table.counts["Query"] <= len(wanted)


def test_events_under_one_count_are_looked_up_nowhere() -> None:
    world = _world(epoch(1, shards=8, close=NOON), epoch(2, shards=8, low=NOON, index_shards=4))
    for number in range(50):
        sort_key = f"{format_time(NOON - timedelta(minutes=number))}#{number}"
        world.put(sort_key, world.shards_for(sort_key)[0])
    assert sum(1 for _ in world.export("shards")) == 50
    assert world.table.counts["Query"] == 8


def test_history_before_a_growth_costs_one_shard_and_no_lookups() -> None:
    world = _world(epoch(1, shards=1, close=NOON), epoch(2, shards=8, low=NOON))
    world.put(f"{format_time(START)}#1", 0)
    for mode in ("shards", "blocks", "round_robin"):
        world.table.forget_calls()
        export = world.store().export(SERIES, START, NOON, mode=mode)
        assert [event.id for event in export] == ["1"]
        assert (world.table.counts["Query"], export.spent.requests) == (1, 1)


def test_expired_events_are_not_given_out_and_expired_copies_hide_none() -> None:
    world, sort_key, other = _grown()
    world.put(f"{format_time(NOON)}#gone", 0)
    for key, shard in ((f"{format_time(NOON)}#gone", 0), (sort_key, other)):
        world.table.items[EVENTS][f"s#{shard}", key]["expires"] = {"N": "1"}
    given = Counter(
        record.sort_key for chunk in world.export("shards").chunks() for record in chunk.records
    )
    assert given == Counter([sort_key])
