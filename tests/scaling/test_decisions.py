from typing import Final

from hypothesis import given
from hypothesis import strategies as st

from spillway import EventStore, Settings
from spillway.layouts.codec import decode_layout, encode_layout
from spillway.layouts.model import Layout, LayoutDecision
from spillway.layouts.source import LayoutSource
from spillway.layouts.transitions import (
    BY_HAND,
    ChangeReason,
    begin_epoch,
    close_retired,
    extend_low,
    first_layout,
    record_decision,
    record_remark,
)
from spillway.timestamps import format_epoch
from tests.scaling.world import SERIES, TABLE_KEY_RANGE, World, pressure_on, throttled
from tests.support.fakes import NOON, FakeClock, fake_runtime
from tests.support.memory_table import EVENTS, LAYOUTS, item_bytes, memory_table

NOW: Final = NOON.timestamp()
SETTINGS: Final = Settings()
texts = st.text(max_size=80)
reasons = st.builds(ChangeReason, texts, texts)


def _grown(layout: Layout, shards: int, reason: ChangeReason, now: float = NOW) -> Layout:
    return record_decision(layout, begin_epoch(layout, SETTINGS, now, shards=shards), reason)


@given(st.lists(st.tuples(st.sampled_from([1, 2, 4, 8]), reasons), max_size=30))
def test_the_last_20_changes_are_kept_with_their_reasons_and_survive_the_table(
    changes: list[tuple[int, ChangeReason]],
) -> None:
    layout = first_layout(SERIES, SETTINGS, NOW)
    expected = []
    for at, (shards, reason) in enumerate(changes):
        before = layout.current.shards
        layout = _grown(layout, shards, reason, NOW + 1 + at)
        if shards != before:
            expected.append((NOW + 1 + at, (before, 1), (shards, 1), reason.why, reason.evidence))
    found = [
        (each.at, each.before, each.after, each.why, each.evidence) for each in layout.decisions
    ]
    assert found == expected[-20:]
    assert decode_layout(encode_layout(layout)) == layout


def test_a_mark_that_is_lowered_and_an_epoch_that_is_closed_are_no_decisions() -> None:
    layout = _grown(first_layout(SERIES, SETTINGS, NOW), 8, BY_HAND)
    other = extend_low(close_retired(layout, NOW + 1), 2, format_epoch(NOW - 9_999), NOW + 2)
    assert other.current.low < layout.current.low
    assert other.decisions == layout.decisions


def test_items_from_before_decisions_were_kept_are_read() -> None:
    item = encode_layout(_grown(first_layout(SERIES, SETTINGS, NOW), 8, BY_HAND))
    del item["decisions"]
    assert decode_layout(item).decisions == ()


def test_twenty_decisions_leave_a_layout_with_few_epochs_within_one_read_unit() -> None:
    layout = first_layout(SERIES, SETTINGS, NOW)
    evidence = "table 123,456 throttled, 123,456 units/s wanted; index 123,456 units/s wanted"
    for n in range(20):
        layout = record_remark(layout, NOW + n, ChangeReason("ahead of demand", evidence))
    assert item_bytes(encode_layout(layout)) < 4_096 - 512


def test_counts_set_by_hand_are_recorded_with_the_change_itself() -> None:
    tables, clock = memory_table(), FakeClock()
    store = EventStore(tables, table=EVENTS, layouts=LAYOUTS, runtime=fake_runtime(clock))
    layout = store.set_layout(SERIES, shards=8)
    assert layout.decisions == (
        LayoutDecision(at=layout.decisions[0].at, before=(1, 1), after=(8, 1), why="set by hand"),
    )
    updates = [each["UpdateExpression"] for each in tables.requests_of("UpdateItem")]
    created, succession = updates
    assert "#decisions" not in created
    assert "#decisions" in succession
    assert store.set_layout(SERIES, shards=8).decisions == layout.decisions


def test_growth_of_writers_is_recorded_with_its_evidence() -> None:
    world = World()
    world.clock.seconds = 1_780_315_203.2
    grower = world.grower()
    assert grower.recorder is not None
    world.clock.seconds += 3
    pressure = pressure_on(throttled(TABLE_KEY_RANGE, units=300))
    grower.grow_on_throttle(SERIES, pressure, world.clock.seconds + 10)
    (decision,) = world.layout.decisions
    assert (decision.before, decision.after) == ((1, 1), (8, 8))
    assert (decision.why, decision.evidence) == ("throttled", "table 300 throttled")
    assert [each.evidence for each in world.reported] == [decision.evidence]


def test_a_remark_leaves_counts_and_times_alone() -> None:
    tables, clock = memory_table(), FakeClock()
    source = LayoutSource(tables, LAYOUTS, SETTINGS, fake_runtime(clock))
    before = source.load_for_write(SERIES).layout
    clock.seconds += 60
    source.record_remark(SERIES, ChangeReason("warm throughput raised", "evidence"))
    after = source.read(SERIES)
    assert after is not None
    assert (after.epochs, after.last_updated) == (before.epochs, before.last_updated)
    assert [(each.before, each.after) for each in after.decisions] == [((1, 1), (1, 1))]
