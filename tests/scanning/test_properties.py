"""Any history of layouts, copies anywhere, any page size and any cursor: every event is given out once."""

from collections import Counter
from itertools import pairwise
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from spillway import Event, ShardingMode
from spillway.layouts.transitions import compact
from spillway.scanning.streams import StoredEvent
from tests.scanning.world import SERIES, World, changes, modes, worlds
from tests.support.stores import identity as identity_of
from tests.support.stores import read_all

pools = st.integers(1, 8)


def identity(event: Event) -> str:
    return repr(identity_of(event))


def _records(export: Any) -> list[StoredEvent]:
    return [record for chunk in export.chunks(200) for record in chunk.records]


def _in_pieces(
    world: World, mode: str, data: st.DataObject, between: Any = lambda: None
) -> list[StoredEvent]:
    """Export by one process after the other, each taking over by the cursor of the one before."""
    cursor: str | None = None
    found: list[StoredEvent] = []
    while True:
        pool = data.draw(pools)
        export = world.export(mode, cursor, pool=pool, consistent=data.draw(st.booleans()))
        budget = data.draw(st.integers(1, 600))
        for _ in range(data.draw(st.integers(1, 3))):
            chunk = export.chunk(budget)
            found += chunk.records
            assert chunk.cursor == export.cursor
        if export.cursor is None:
            return found
        assert export.cursor != cursor
        cursor = export.cursor
        between()


@given(worlds(), modes, pools)
def test_each_mode_gives_what_an_ordered_read_gives_once_each(
    world: World, mode: str, pool: int
) -> None:
    found: list[Event] = list(world.export(mode, pool=pool))
    ordered = list(read_all(world.store(), SERIES, *world.span))
    assert Counter(map(identity, found)) == Counter(map(identity, ordered))
    assert len(found) == len(world.copies)
    if world.settings.mode is ShardingMode.CALCULATED:
        assert sorted(found, key=identity) == sorted(ordered, key=identity)


@given(worlds(), modes, st.data())
def test_cursors_give_every_event_once_at_any_cut_and_under_any_change_of_layout(
    world: World, mode: str, data: st.DataObject
) -> None:
    def between() -> None:
        for change in data.draw(st.lists(changes(world.settings), max_size=2)):
            world.change(change)

    found = _in_pieces(world, mode, data, between)
    assert Counter(record.sort_key for record in found) == Counter(list(world.copies))


@given(worlds(), modes, st.data())
def test_without_changes_each_event_is_as_the_newest_epoch_has_it(
    world: World, mode: str, data: st.DataObject
) -> None:
    found = {record.sort_key: record.payload for record in _in_pieces(world, mode, data)}
    if world.settings.mode is ShardingMode.RANDOM and mode != "round_robin":
        newest = {key: found[key] for key in world.copies}  # any copy is as good as another
    else:
        newest = {key: f'{{"shard":{shard}}}' for key, shard in world.newest().items()}
    assert found == newest


@given(worlds(), modes, st.data())
def test_writes_meanwhile_hide_nothing_and_double_only_what_they_write(
    world: World, mode: str, data: st.DataObject
) -> None:
    before = set(world.copies)
    written: set[str] = set()

    def between() -> None:
        for change in data.draw(st.lists(changes(world.settings), max_size=1)):
            world.change(change)
        again = sorted(world.copies)
        for sort_key in data.draw(st.lists(st.sampled_from(again), max_size=4)) if again else ():
            world.put(sort_key, data.draw(st.sampled_from(world.shards_for(sort_key))))
            written.add(sort_key)

    counts = Counter(record.sort_key for record in _in_pieces(world, mode, data, between))
    assert set(counts) == before
    assert {key for key, count in counts.items() if count > 1} <= written


@given(worlds(), pools)
def test_events_come_in_the_order_that_their_mode_promises(world: World, pool: int) -> None:
    world.change(lambda layout: compact(layout, 3))
    in_turns = [record.sort_key for record in _records(world.export("round_robin"))]
    assert in_turns == sorted(in_turns)
    assert _descents(world.export("shards")) < 8  # shards
    assert _descents(world.export("blocks", pool=pool)) < -(-8 // pool)


def _descents(export: Any) -> int:
    """Return how often an event comes before one of an earlier time."""
    return sum(one.sort_key > other.sort_key for one, other in pairwise(_records(export)))


@given(worlds(), modes, st.floats(0.1, 20), st.floats(0.01, 3))
def test_bounded_exports_stop_and_say_so_and_give_every_event_once_together(
    world: World, mode: str, max_rcu: float, max_seconds: float
) -> None:
    cursor: str | None = None
    found: list[str] = []
    while True:
        export = world.export(mode, cursor, max_rcu=max_rcu, max_seconds=max_seconds)
        found += [record.sort_key for record in _records(export)]
        assert (export.stopped is None) == export.complete
        cursor = export.cursor
        if cursor is None:
            break
    assert Counter(found) == Counter(list(world.copies))
