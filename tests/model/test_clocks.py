"""What wrong clocks do to layouts, with and without DynamoDB's date to compare them with."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Final

import pytest

from spillway import Event, Settings
from spillway.dynamodb.port import ThrottlingReason
from spillway.layouts.clock import ClockSkewError
from spillway.layouts.codec import decode_layout, encode_layout
from spillway.layouts.model import OPEN, Layout
from spillway.settings import Growth
from spillway.timestamps import format_epoch
from spillway.writing.results import WriteResult
from tests.model.cluster import NOON, Cluster, Faults, Process

SERIES: Final = "s"
SETTINGS: Final = Settings(shards=4, growth=Growth(policy=None))
MINUTE: Final = 60.0
HOUR: Final = 3_600.0
_TICK: Final = timedelta(microseconds=1)
STALE: Final = 2 * SETTINGS.layout_ttl


class Fleet:
    """Processes that share a series, and the events of it that were acknowledged."""

    def __init__(self, settings: Settings = SETTINGS) -> None:
        self.settings = settings
        self.cluster = Cluster(lambda: 0.5)
        self.acknowledged: list[Event] = []
        self._ids: Iterator[int] = iter(range(1_000_000))
        self.writer = self.process()
        self.write(0)

    def process(self, clock_offset: float = 0.0, *, sees_date: bool = False) -> Process:
        number = next(self._ids)
        return self.cluster.process(
            f"process-{number}", self.settings, clock_offset, sees_date=sees_date
        )

    @property
    def layout(self) -> Layout:
        return decode_layout(self.cluster.tables.layouts[SERIES])

    def event(self, seconds: float) -> Event:
        """Return an event of `seconds` from now, by the true time."""
        time = datetime.fromtimestamp(self.cluster.time + seconds, UTC)
        return Event(series=SERIES, time=time, id=str(next(self._ids)), payload={"n": 1})

    def write(self, *ahead: float, by: Process | None = None) -> WriteResult:
        """Write an event for each number of seconds from now."""
        process = by or self.writer
        events = [self.event(seconds) for seconds in ahead]
        results: list[WriteResult] = []
        process.start(lambda: results.append(process.store.write(events, timeout=30)))
        process.run()
        rejected = {each.index for each in results[0].rejected}
        self.acknowledged += [event for index, event in enumerate(events) if index not in rejected]
        return results[0]

    def set_shards(self, process: Process, shards: int) -> None:
        process.start(lambda: process.store.set_layout(SERIES, shards=shards))
        process.run()

    def set_shards_and_die(self, process: Process, shards: int) -> None:
        """Begin an epoch, and die before anything else is done."""
        process.start(lambda: process.store.set_layout(SERIES, shards=shards))
        process.run_until("after", "UpdateItem")
        process.crash()

    def missing(self, by: Process | None = None) -> list[Event]:
        """Return the acknowledged events that a consistent read of their time does not return."""
        reader = by or self.process()
        missing: list[Event] = []

        def read() -> None:
            for event in self.acknowledged:
                page = reader.store.read(SERIES, event.time, event.time + _TICK)
                if event not in page.events:
                    missing.append(event)

        reader.start(read)
        reader.run()
        return missing


@pytest.fixture
def fleet() -> Fleet:
    return Fleet()


@pytest.mark.parametrize("minutes", [-300, -11, -1, 1, 60, 300])
def test_an_operator_with_a_wrong_clock_loses_nothing(fleet: Fleet, minutes: float) -> None:
    fleet.cluster.time += HOUR
    fleet.write(*range(-30, 300, 5))
    fleet.set_shards(fleet.process(minutes * MINUTE), 1)
    fleet.write(*range(-30, 300, 5))  # by the layout in its cache
    assert not fleet.missing()
    fleet.cluster.time += STALE
    fleet.write(*range(-30, 300, 5))
    assert not fleet.missing()


@pytest.mark.parametrize("minutes", [-300, -11, 11, 60, 300])
def test_no_write_is_refused_after_an_operator_with_a_wrong_clock_died(
    fleet: Fleet, minutes: float
) -> None:
    fleet.set_shards_and_die(fleet.process(minutes * MINUTE), 1)
    fleet.set_shards(fleet.process(sees_date=True), 8)
    for _ in range(60):
        fleet.cluster.time += 10 * MINUTE
        assert not fleet.write(*range(-300, 300, 30)).rejected
    assert not fleet.missing()


def test_a_writer_begins_and_closes_what_an_operator_with_a_fast_clock_began(fleet: Fleet) -> None:
    fleet.set_shards_and_die(fleet.process(HOUR), 1)
    fleet.cluster.time += STALE
    fleet.write(0)
    retired, current = fleet.layout.epochs
    assert current.low == format_epoch(fleet.cluster.time - SETTINGS.slack)
    assert current.low <= retired.close < OPEN


@pytest.mark.parametrize("minutes", [30, 90])
def test_writes_into_a_gap_that_no_epoch_covers_lower_the_mark_over_it(
    fleet: Fleet, minutes: float
) -> None:
    """A gap from 10 to 60 minutes, as a close by the clock alone leaves after a fast operator."""
    (first,) = fleet.layout.epochs
    now = fleet.cluster.time
    closed = replace(first, close=format_epoch(now + 10 * MINUTE))
    current = replace(first, id=2, low=format_epoch(now + HOUR), shards=8)
    epochs = (closed, current)
    layout = Layout(series=SERIES, version=2, last_updated=now + HOUR, epochs=epochs)
    fleet.cluster.tables.put_layout(encode_layout(layout))
    fleet.cluster.time += minutes * MINUTE
    for _ in range(3):
        assert not fleet.write(*range(int(-(minutes - 1) * MINUTE), 300, 60)).rejected
        fleet.cluster.time += STALE
    assert fleet.layout.current.low == closed.close
    assert fleet.layout.version <= 4
    assert not fleet.missing()


@pytest.mark.parametrize("seconds", [-8 * HOUR, -10 * MINUTE, -7, 7, 10 * MINUTE, 8 * HOUR])
def test_an_operator_learns_from_the_date_that_its_clock_is_wrong(
    fleet: Fleet, seconds: float
) -> None:
    before = fleet.layout
    with pytest.raises(ClockSkewError, match=r"of this process .* 's' .* synchronise") as caught:
        fleet.set_shards(fleet.process(seconds, sees_date=True), 1)
    assert caught.value.offset == pytest.approx(seconds, abs=1.1)
    assert fleet.layout == before


@pytest.mark.parametrize("seconds", [-5, -4, 0, 4, 5])
def test_a_clock_within_its_error_is_never_refused(fleet: Fleet, seconds: float) -> None:
    for _ in range(20):
        fleet.cluster.time += 0.05
        operator = fleet.process(seconds, sees_date=True)
        fleet.set_shards(operator, 8 if fleet.layout.current.shards == 1 else 1)
        assert fleet.layout.has_closed_retired
        assert not fleet.write(0, by=fleet.process(seconds, sees_date=True)).rejected
    assert not fleet.missing()


def test_a_slow_reply_is_no_wrong_clock(fleet: Fleet) -> None:
    operator = fleet.process(sees_date=True)
    operator.start(lambda: operator.store.set_layout(SERIES, shards=1))
    operator.run_until("before", "GetItem")
    fleet.cluster.time += HOUR
    operator.run_until("after", "GetItem")
    fleet.cluster.time += HOUR
    operator.run()
    assert fleet.layout.current.shards == 1


@pytest.mark.parametrize("seconds", [-HOUR, -7, 7, HOUR])
def test_a_writer_with_a_wrong_clock_has_nothing_acknowledged_and_creates_no_layout(
    fleet: Fleet, seconds: float
) -> None:
    writer = fleet.process(seconds, sees_date=True)
    (rejected,) = fleet.write(seconds, by=writer).rejected
    assert (rejected.code, rejected.retryable) == ("storage_refused", True)
    assert "ClockSkew" in rejected.message
    assert fleet.cluster.time == NOON, "it waited"
    fleet.cluster.tables.layouts.clear()
    assert fleet.write(seconds, by=writer).rejected
    assert not fleet.cluster.tables.layouts


def test_a_wrong_clock_reads_but_writes_by_no_layout_that_a_read_has_cached(fleet: Fleet) -> None:
    process = fleet.process(HOUR, sees_date=True)
    assert not fleet.missing(by=process)
    assert fleet.write(HOUR, by=process).rejected


def test_a_clock_that_was_set_right_writes_although_a_read_has_cached_by_the_wrong_one(
    fleet: Fleet,
) -> None:
    process = fleet.process(-SETTINGS.clock_error - 3, sees_date=True)
    assert not fleet.missing(by=process)
    process.clock_offset = 0.0
    assert not fleet.write(0, by=process).rejected


def test_where_no_date_tells_the_time_writers_close_what_operators_retire(fleet: Fleet) -> None:
    fleet.set_shards(fleet.process(), 1)
    assert not fleet.layout.has_closed_retired
    fleet.cluster.time += STALE
    fleet.write(0)
    assert fleet.layout.epochs[0].close == format_epoch(fleet.cluster.time + SETTINGS.horizon)


def test_series_grow_while_their_last_change_lies_in_the_future() -> None:
    fleet = Fleet(replace(SETTINGS, growth=Growth(partition_wcu=1)))  # one write is enough
    fleet.set_shards(fleet.process(HOUR), 1)
    fleet.cluster.time += STALE
    reason = ThrottlingReason("TableWriteKeyRangeThroughputExceeded", "")
    fleet.cluster.faults = Faults(
        put_throttled=lambda item: item["PK"]["S"] in {f"s#{shard}" for shard in range(4)},
        reasons=lambda: (reason,),
    )
    fleet.write(0)
    assert fleet.layout.current.shards > 1
    assert fleet.layout.current.low <= format_epoch(fleet.cluster.time)
    fleet.cluster.faults = Faults()
    assert not fleet.write(0).rejected
    assert not fleet.missing()
