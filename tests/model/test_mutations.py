"""Each deviation from the protocol has a schedule of its own that loses an event; the protocol loses none by it."""

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Final

import pytest

from spillway import Event, Settings, keys
from spillway.layouts.codec import decode_layout, encode_layout
from spillway.settings import Growth
from spillway.sharding import routing_hash
from spillway.timestamps import format_epoch, format_time
from tests.model import coverage
from tests.model.cluster import Cluster, Faults, Process
from tests.model.mutations import MUTATIONS

SETTINGS: Final = replace(coverage.SETTINGS, growth=Growth(policy=None))
SERIES: Final = "s"
LOST: Final = "an acknowledged event is missing from a later read"


class Scene:
    """A cluster, and the steps that schedules are made of."""

    def __init__(self) -> None:
        self.cluster = Cluster(lambda: 0.5)
        self._acknowledged: list[Event] = []

    def process(
        self,
        name: str,
        settings: Settings = SETTINGS,
        clock_offset: float = 0.0,
        *,
        sees_date: bool = True,
    ) -> Process:
        return self.cluster.process(name, settings, clock_offset, sees_date=sees_date)

    def event(self, seconds: float, shard: int, shards: int) -> Event:
        """Return an event of `seconds` from now that lies in one shard of a count."""
        time = datetime.fromtimestamp(self.cluster.time + seconds, UTC)
        for number in range(1_000):
            event_id = str(number)
            stored = keys.sort_key(format_time(time), None, event_id)
            if routing_hash(SERIES, stored) % shards == shard:
                return Event(series=SERIES, time=time, id=event_id, payload={"n": number})
        raise AssertionError("no such event")

    def writing(self, process: Process, event: Event) -> None:
        """Let a process begin to write an event, to be acknowledged when it ends."""

        def write() -> None:
            if process.store.write([event], timeout=60).accepted:
                self._acknowledged.append(event)

        process.start(write)

    def write(self, process: Process, event: Event) -> None:
        assert self.try_write(process, event)

    def try_write(self, process: Process, event: Event) -> bool:
        self.writing(process, event)
        process.run()
        return bool(self._acknowledged) and self._acknowledged[-1] is event

    def setting(self, process: Process, **counts: int) -> None:
        process.start(lambda: process.store.set_layout(SERIES, **counts))

    def set_counts(self, process: Process, **counts: int) -> None:
        self.setting(process, **counts)
        process.run()

    def finds_all(self, reader: Process, *, by_index: bool = False) -> bool:
        """Tell whether reads of the range and of each event find everything that was acknowledged."""
        found: set[str | None] = set()
        points: list[Event | None] = []

        def read() -> None:
            start = datetime.fromtimestamp(self.cluster.time, UTC) - timedelta(hours=2)
            page = reader.store.read(
                SERIES,
                start,
                start + timedelta(hours=3),
                consistent=not by_index,
                source="index" if by_index else "table",
            )
            found.update(event.id for event in page.events)
            points.extend(
                reader.store.read_one(SERIES, event.time, event.id or "")
                for event in self._acknowledged
            )

        reader.start(read)
        reader.run()
        return points == self._acknowledged and found >= {each.id for each in self._acknowledged}


def _two_operators(scene: Scene) -> bool:
    """One operator waits before its write while another grows the series and shrinks it to the same count again."""
    settings = replace(SETTINGS, shards=2)
    writer, slow, quick = (scene.process(name, settings) for name in ("writer", "slow", "quick"))
    scene.write(writer, scene.event(0, 0, 2))
    scene.setting(slow, shards=4)
    slow.run_until("before", "UpdateItem", "PutItem")
    scene.set_counts(quick, shards=8)
    scene.write(scene.process("another", settings), scene.event(0, 7, 8))
    scene.set_counts(quick, shards=2)
    slow.run()
    return scene.finds_all(scene.process("reader"))


def _backfill_meets_a_new_epoch(scene: Scene) -> bool:
    """A writer is about to lower the mark of its epoch when another, narrower one begins."""
    operator, writer = scene.process("operator"), scene.process("writer")
    scene.write(scene.process("first"), scene.event(0, 0, 1))
    scene.set_counts(operator, shards=4)
    scene.cluster.faults = Faults(put_throttled=lambda item: item["PK"]["S"] == "s#0")
    scene.writing(writer, scene.event(-1_000, 3, 4))
    writer.run_until("before", "UpdateItem")
    scene.set_counts(operator, shards=2)
    writer.run()
    return scene.finds_all(scene.process("reader"))


def _frozen_writer(scene: Scene) -> bool:
    """A writer freezes with a layout in its cache, and wakes when the series has shrunk."""
    settings = replace(SETTINGS, shards=4)
    writer, operator = scene.process("writer", settings), scene.process("operator", settings)
    scene.write(writer, scene.event(0, 3, 4))
    writer.freeze(1_000)
    scene.set_counts(operator, shards=1)
    scene.cluster.time += 1_000
    scene.write(writer, scene.event(0, 2, 4))
    return scene.finds_all(scene.process("reader"))


def _later_deploy(scene: Scene) -> bool:
    """A deploy with a shorter horizon retires an epoch whose writers go by a longer one."""
    settings = replace(SETTINGS, shards=4, layout_ttl=5)
    writer = scene.process("writer", settings)
    operator = scene.process("operator", replace(settings, horizon=40, future_skew=30))
    scene.write(writer, scene.event(0, 3, 4))
    scene.set_counts(operator, shards=1)
    scene.cluster.time += 4
    scene.write(writer, scene.event(49, 2, 4))
    return scene.finds_all(scene.process("reader"))


def _frozen_operator(scene: Scene) -> bool:
    """An operator freezes between its read and its write, and writers go on loading the epoch it will retire."""
    settings = replace(SETTINGS, shards=4)
    operator = scene.process("operator", settings)
    scene.write(scene.process("first", settings), scene.event(0, 0, 4))
    scene.setting(operator, shards=1)
    operator.run_until("before", "UpdateItem")
    scene.cluster.time += 100
    scene.write(scene.process("writer", settings), scene.event(0, 3, 4))
    operator.run()
    return scene.finds_all(scene.process("reader"))


def _two_creators(scene: Scene) -> bool:
    """Two writers with different first counts create the layout of a series."""
    loser, winner = scene.process("loser", replace(SETTINGS, shards=4)), scene.process("winner")
    scene.writing(loser, scene.event(0, 3, 4))
    loser.run_until("before", "UpdateItem")
    scene.write(winner, scene.event(0, 1, 4))
    loser.run()
    return scene.finds_all(scene.process("reader"))


def _fold(scene: Scene) -> bool:
    """Epochs get many, and the one with the most shards is folded into a narrower one."""
    settings = replace(SETTINGS, shards=8, max_epochs=2)
    operator = scene.process("operator", settings)
    scene.write(scene.process("writer", settings), scene.event(0, 7, 8))
    for shards in (2, 1, 2, 1):
        scene.cluster.time += 200
        scene.set_counts(operator, shards=shards)
    return scene.finds_all(scene.process("reader"))


def _growth_before_a_read(scene: Scene) -> bool:
    """A series grows after a reader has seen its layout."""
    reader, writer = scene.process("reader"), scene.process("writer")
    scene.write(writer, scene.event(0, 0, 4))
    assert scene.finds_all(reader)
    scene.set_counts(writer, shards=4)
    scene.write(writer, scene.event(1, 3, 4))
    return scene.finds_all(reader)


def _backfill_meets_a_retirement(scene: Scene) -> bool:
    """The epoch that an old event was to be written under retires while it is written."""
    operator, writer = scene.process("operator"), scene.process("writer")
    scene.write(scene.process("first"), scene.event(0, 0, 1))
    scene.set_counts(operator, shards=4)
    throttled = iter((True,))
    scene.cluster.faults = Faults(put_throttled=lambda _: next(throttled, False))
    scene.writing(writer, scene.event(-1_000, 3, 4))
    writer.run_until("asleep", "")
    scene.cluster.time = writer.wakes_at
    writer.run_until("after", "BatchWriteItem")
    scene.set_counts(operator, shards=2)
    writer.run()
    return scene.finds_all(scene.process("reader"))


def _index_with_fewer_shards(scene: Scene) -> bool:
    """A series has more shards in the table than in its index."""
    writer = scene.process("writer", replace(SETTINGS, shards=4, index_shards=1))
    scene.write(writer, scene.event(0, 3, 4))
    return scene.finds_all(scene.process("reader"), by_index=True)


def _slow_operator(scene: Scene) -> bool:
    """An operator whose clock is slow shrinks a series, and nothing tells it the date."""
    settings = replace(SETTINGS, shards=4)
    scene.write(scene.process("first", settings), scene.event(0, 0, 4))
    scene.cluster.time += 1_000
    writer = scene.process("writer", settings)
    scene.write(writer, scene.event(0, 0, 4))
    scene.set_counts(scene.process("operator", clock_offset=-100, sees_date=False), shards=1)
    scene.write(writer, scene.event(10, 3, 4))
    return scene.finds_all(scene.process("reader"))


def _fast_operator(scene: Scene) -> bool:
    """A fast operator begins an epoch of a longer horizon, and a writer goes by the one before."""
    short = replace(SETTINGS, shards=4, horizon=40, future_skew=30)
    writer = scene.process("writer")
    scene.write(scene.process("first", short), scene.event(0, 0, 4))
    scene.set_counts(scene.process("operator", clock_offset=3_600, sees_date=False), shards=1)
    assert scene.finds_all(writer)
    scene.write(scene.process("another"), scene.event(0, 3, 4))
    scene.write(writer, scene.event(49, 2, 4))
    return scene.finds_all(scene.process("reader"))


def _gap(scene: Scene) -> bool:
    """A layout has times that no epoch covers, and an event of such a time is to be written."""
    scene.write(scene.process("first"), scene.event(0, 0, 1))
    layout = decode_layout(scene.cluster.tables.layouts[SERIES])
    now = scene.cluster.time
    closed = replace(layout.current, close=format_epoch(now + 20))
    current = replace(layout.current, id=2, low=format_epoch(now + 200))
    gapped = replace(layout, epochs=(closed, current), version=2, last_updated=now + 220)
    scene.cluster.tables.put_layout(encode_layout(gapped))
    scene.cluster.time += 300
    accepted = scene.try_write(scene.process("writer"), scene.event(-200, 0, 1))
    return accepted and scene.finds_all(scene.process("reader"))


def _fast_writer(scene: Scene) -> bool:
    """A writer whose clock is fast, as DynamoDB's date tells, goes by a layout that retires."""
    settings = replace(SETTINGS, shards=4)
    writer = scene.process("writer", settings, clock_offset=100)
    scene.write(scene.process("first", settings), scene.event(0, 0, 4))
    scene.try_write(writer, scene.event(100, 0, 4))
    scene.set_counts(scene.process("operator", settings), shards=1)
    scene.try_write(writer, scene.event(130, 3, 4))
    return scene.finds_all(scene.process("reader"))


SCHEDULES: Final[dict[str, Callable[[Scene], bool]]] = {
    "condition_on_count": _two_operators,
    "whole_item_rewritten": _two_operators,
    "newest_mark_lowered": _backfill_meets_a_new_epoch,
    "monotonic_ttl": _frozen_writer,
    "upper_end_recomputed": _later_deploy,
    "closed_by_whoever_retires": _frozen_operator,
    "loser_keeps_its_count": _two_creators,
    "fold_keeps_newer_count": _fold,
    "cached_layout_on_strong_read": _growth_before_a_read,
    "written_before_lowered": _backfill_meets_a_retirement,
    "closed_by_any_clock": _slow_operator,
    "closed_by_the_clock_alone": _fast_operator,
    "gap_not_covered": _gap,
    "clocks_never_compared": _fast_writer,
    "index_routed_by_table_count": _index_with_fewer_shards,
}


def test_every_mutation_has_a_schedule() -> None:
    assert set(SCHEDULES) == set(MUTATIONS)


@pytest.mark.parametrize("name", SCHEDULES)
def test_the_protocol_loses_nothing_by_the_schedule(name: str) -> None:
    assert SCHEDULES[name](Scene()), LOST


@pytest.mark.parametrize("name", SCHEDULES)
def test_the_mutation_is_caught_by_its_schedule(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    MUTATIONS[name](monkeypatch)
    assert not SCHEDULES[name](Scene()), f"{name} was not noticed"
