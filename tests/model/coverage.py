"""The coverage rule under random schedules: what was acknowledged before a read began is in its answer.

Writers, readers and operators run the shipped store over shared tables; a seed decides who goes on, when time
passes, who freezes or crashes, and what is throttled or lost. Races are rare, so draws prefer the edges of epochs, and a
process that is about to write on a condition is often kept waiting while the others go on.

Operators' clocks are wrong by up to hours, and operators often die before they close what they
retired. Writers' clocks are right within `clock_error`, but where all processes see DynamoDB's
date: then these are wrong now and then, too. Whatever the clocks, writes by a right one must go on.
"""

import bisect
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from functools import partial
from random import Random
from typing import Final

from spillway import Event, Settings, ShardingMode, StorageError, TimeBucket, keys
from spillway.dynamodb.port import ThrottlingReason
from spillway.layouts.clock import ClockSkewError
from spillway.layouts.codec import decode_layout, encode_layout
from spillway.layouts.transitions import first_layout
from spillway.settings import Growth
from spillway.timestamps import format_epoch, format_time
from tests.model.cluster import Cluster, Faults, Process

__all__ = ["SETTINGS", "CoverageModel", "CoverageViolationError", "Dates", "Tally"]

SETTINGS: Final = Settings(
    horizon=60,
    slack=20,
    clock_error=2,
    future_skew=50,
    layout_ttl=8,
    max_epochs=5,
    growth=Growth(partition_wcu=1),  # so small that any throttled write makes its series grow
)
_SERIES: Final = ("s", "s#1")
_TICK: Final = timedelta(microseconds=1)
_COUNTS: Final = (1, 2, 4, 8)
_HOUR: Final = 3_600.0
_SHARDING_KEYS: Final = (None, None, None, "a", "b#")


class CoverageViolationError(AssertionError):
    """A read missed, doubled, invented or misordered an event, or a right clock was refused."""


class Dates(StrEnum):
    """Which processes see DynamoDB's date in its responses."""

    ALL = "all"
    SOME = "some"
    NONE = "none"


@dataclass
class Tally:
    """How much was done and checked."""

    steps: int = 0
    acknowledged: int = 0
    reads: int = 0
    events_checked: int = 0
    layout_changes: int = 0
    crashes: int = 0
    freezes: int = 0
    changes_by_wrong_clocks: int = 0
    clocks_refused: int = 0
    deaths_before_closing: int = 0

    def add(self, other: "Tally") -> None:
        """Add another run's."""
        for name in self.__dataclass_fields__:
            setattr(self, name, getattr(self, name) + getattr(other, name))


@dataclass(frozen=True)
class _Stored:
    series: str
    event: Event
    sort_key: str


@dataclass
class CoverageModel:
    """One random run; `run` raises CoverageViolationError where the rule is broken."""

    seed: int
    max_steps: int
    dates: Dates | None = None
    tally: Tally = field(default_factory=Tally)

    def __post_init__(self) -> None:
        self.random = Random(self.seed)
        self.storm = ""
        faults = Faults(
            throttled=lambda *_: self._chance(0.01),
            put_throttled=lambda item: item["PK"]["S"] == self.storm or self._chance(0.01),
            reply_lost=lambda _: self._chance(0.02),
            reasons=self._reasons,
        )
        self.cluster = Cluster(self.random.random, faults)
        self.attempted: dict[tuple[str, str], Event] = {}
        self.acknowledged: list[_Stored] = []
        self._parked: dict[str, int] = {}
        self._writes = 0
        mode = ShardingMode.RANDOM if self._chance(0.15) else ShardingMode.CALCULATED
        settings = replace(SETTINGS, mode=mode)
        self.dates = self.dates or self.random.choice(list(Dates))
        # One fast clock keeps all later closes in the future, where no event is lost: so most runs
        # have slow ones only.
        self._sides = self.random.choice(((-1,), (-1,), (1,), (-1, 1)))
        if self._chance(0.3):
            self._leave_gap(settings)
        self.processes = {self._process(f"writer-{n}", settings): self._write for n in range(3)}
        self.processes |= {self._process(f"reader-{n}", settings): self._read for n in range(2)}
        later = replace(
            settings, horizon=40, future_skew=30, bucket=self.random.choice(list(TimeBucket))
        )
        deploys = (("operator-0", settings), ("operator-1", later))
        self.operators = {
            self._process(name, deployed): self._operate for name, deployed in deploys
        }
        self.processes |= self.operators

    def run(self) -> Tally:
        """Run to the end, then write to every series and read everything when all is quiet."""
        self._write_quietly()
        while self.cluster.steps < self.max_steps:
            self._step()
        for process in self.processes:
            process.crash()
        self.storm = ""
        self.cluster.faults = Faults()
        self._write_quietly()
        self.cluster.time += 10 * SETTINGS.horizon
        self._write_quietly()
        self._final_reads()
        self.tally.steps = self.cluster.steps
        return self.tally

    def _reasons(self) -> tuple[ThrottlingReason, ...]:
        """Draw what a throttled write says; key ranges make writers grow the layout themselves."""
        what = self.random.choice(("TableWriteKeyRange", "IndexWriteKeyRange", "AccountLimit"))
        return (ThrottlingReason(f"{what}ThroughputExceeded", ""),)

    def _process(self, name: str, settings: Settings) -> Process:
        sees_date = {Dates.ALL: 1.0, Dates.SOME: 0.5, Dates.NONE: 0.0}[self.dates or Dates.NONE]
        return self.cluster.process(
            name, settings, self._right_clock(), sees_date=self._chance(sees_date)
        )

    def _right_clock(self) -> float:
        error = SETTINGS.clock_error
        return self.random.choice((self.random.uniform(-error, error), -error, error))

    def _wrong_clock(self) -> float:
        """Draw an offset: a little beyond the error, some minutes, or hours."""
        beyond = self.random.uniform(0, self.random.choice((1.5, 5, 300, 3 * _HOUR)))
        return self.random.choice(self._sides) * (SETTINGS.clock_error + beyond)

    def _leave_gap(self, settings: Settings) -> None:
        """Store a layout with times that no epoch covers, as older versions may leave behind."""
        now = self.cluster.time
        layout = first_layout("s", settings, now - 200)
        closed = replace(layout.current, close=format_epoch(now - self.random.uniform(0, 100)))
        low = format_epoch(now + self.random.choice((-20, 20, 200, _HOUR)))
        epochs = (closed, replace(layout.current, id=2, low=low, shards=4))
        gapped = replace(layout, version=2, last_updated=now + _HOUR, epochs=epochs)
        self.cluster.tables.put_layout(encode_layout(gapped))

    def _chance(self, probability: float) -> bool:
        return self.random.random() < probability

    # The scheduler

    def _step(self) -> None:
        self._let_time_pass()
        process = self._pick()
        if process is None:
            return
        if process.done:
            self._start(process)
        process.resume()
        self._maybe_park(process)
        retired = process.at == ("after", "UpdateItem") and process in self.operators
        if retired and self._chance(0.2):
            process.crash()
            self.tally.deaths_before_closing += 1
        elif self._chance(0.002):
            process.crash()
            self.tally.crashes += 1
        elif self._chance(0.002):
            process.freeze(self.random.uniform(0, 3 * SETTINGS.horizon))
            self.tally.freezes += 1

    def _start(self, process: Process) -> None:
        script = self.processes[process]
        is_operator = process in self.operators
        if is_operator or self.dates is Dates.ALL:
            wrong = self._chance(0.5 if is_operator else 0.2)
            process.clock_offset = self._wrong_clock() if wrong else self._right_clock()

        def run() -> None:
            try:
                script(process)
            except ClockSkewError:
                self._check_refusal(process)
            except StorageError:
                pass  # an honest failure, such as a deadline that passed

        process.start(run)

    def _check_refusal(self, process: Process) -> None:
        self.tally.clocks_refused += 1
        if abs(process.clock_offset) <= SETTINGS.clock_error:
            self._fail(f"{process.name}, off by {process.clock_offset:.3f} s, is refused")

    def _let_time_pass(self) -> None:
        if self._chance(0.2):
            self.cluster.time += self.random.expovariate(20)
        if self._chance(0.003):
            self.cluster.time += self.random.uniform(0, 1.5 * SETTINGS.horizon)
        if self._chance(0.01):
            series, shard = self.random.choice(_SERIES), self.random.choice((0, 0, 0, 1))
            self.storm = keys.partition_key(series, shard) if self._chance(0.5) else ""

    def _pick(self) -> Process | None:
        awake = [each for each in self.processes if each.wakes_at <= self.cluster.time]
        ready = [each for each in awake if self._parked.get(each.name, 0) <= self.cluster.steps]
        if ready:
            return self.random.choice(ready)
        if awake:
            return min(awake, key=lambda each: self._parked[each.name])
        self.cluster.time = min(each.wakes_at for each in self.processes)
        return None

    def _maybe_park(self, process: Process) -> None:
        """Keep a process waiting between a read of the layout and what it does by it."""
        patience = {("before", "UpdateItem"): 0.6, ("after", "GetItem"): 0.2}.get(process.at, 0.02)
        if self._chance(patience):
            self._parked[process.name] = self.cluster.steps + self.random.randint(1, 40)

    # What processes do

    def _operate(self, process: Process) -> None:
        def maybe() -> int | None:
            return self.random.choice(_COUNTS) if self._chance(0.6) else None

        series = self.random.choice(_SERIES)
        process.store.set_layout(series, shards=maybe(), index_shards=maybe())
        self.tally.layout_changes += 1
        self.tally.changes_by_wrong_clocks += abs(process.clock_offset) > SETTINGS.clock_error
        self._nap(process, 3)

    def _nap(self, process: Process, mean: float) -> None:
        process.runtime().sleep(self.random.expovariate(1 / mean))

    def _write(self, process: Process) -> None:
        events = [self._event(process) for _ in range(self.random.randint(1, 4))]
        for event in events:
            self.attempted.setdefault((event.series, _sort_key(event)), event)
        result = process.store.write(events, timeout=20)
        rejected = {each.index for each in result.rejected}
        if any("ClockSkew" in each.message for each in result.rejected):
            self._check_refusal(process)
        for index, event in enumerate(events):
            if index not in rejected:
                self.acknowledged.append(_Stored(event.series, event, _sort_key(event)))
                self.tally.acknowledged += 1
        if self._chance(0.3):
            self._nap(process, 1)

    def _event(self, process: Process) -> Event:
        if self.acknowledged and self._chance(0.1):
            return self.random.choice(self.acknowledged).event
        series = self.random.choice(_SERIES)
        return self._event_at(series, self._moment(series, process.now()))

    def _event_at(self, series: str, seconds: float) -> Event:
        self._writes += 1
        return Event(
            series=series,
            time=_datetime(seconds),
            id=str(self._writes),
            sharding_key=self.random.choice(_SHARDING_KEYS),
            payload={"n": self._writes},
        )

    def _moment(self, series: str, now: float) -> float:
        """Draw a time: around now, at the limit of the future, at an edge of an epoch, or long ago."""
        edges = self._edges(series)
        draw = self.random.random()
        if draw < 0.3:
            return now + self.random.uniform(-2, 2)
        if draw < 0.5:
            reach = self.random.choice((SETTINGS.future_skew, 40 - 2 * SETTINGS.clock_error))
            return now + reach - self.random.choice((0, 0.001, 0.5, 2))
        if draw < 0.85 and edges:
            edge = self.random.choice(edges)
            return edge + self.random.choice((-1, -0.001, -0.000001, 0, 0.000001, 0.001, 1))
        return now - self.random.choice((10, 100, 1_000, 100_000)) * self.random.random()

    def _edges(self, series: str) -> list[float]:
        item = self.cluster.tables.layouts.get(series)
        if item is None:
            return []
        edges = []
        for epoch in decode_layout(item).epochs:
            edges += [edge for edge in (epoch.low, epoch.close) if len(edge) == keys.TIME_WIDTH]
        return [datetime.fromisoformat(edge).timestamp() for edge in edges]

    def _read(self, process: Process) -> None:
        kind = self.random.choices(
            (self._read_range, self._read_sharding_key, self._read_one), (6, 2, 2)
        )[0]
        kind(process)
        self.tally.reads += 1
        if self._chance(0.2):
            self._nap(process, 1)

    def _read_range(self, process: Process, sharding_key: str | None = None) -> None:
        series = self.random.choice(_SERIES)
        start, end = self._range(series, process.now())
        expected = self._expected(series, start, end, sharding_key)
        order = self.random.choice(("asc", "desc"))
        found = _pages(
            process, series, start, end, order, self.random.choice((1, 3, 100)), sharding_key
        )
        self._check(series, found, expected, descending=order == "desc")

    def _read_sharding_key(self, process: Process) -> None:
        self._read_range(process, sharding_key=self.random.choice(("a", "b#")))

    def _read_one(self, process: Process) -> None:
        if not self.acknowledged:
            return
        wanted = self.random.choice(self.acknowledged[-50:])
        event = wanted.event
        assert event.id is not None
        found = process.store.read_one(
            wanted.series, event.time, event.id, sharding_key=event.sharding_key
        )
        if found != event:
            self._fail(f"point read of {wanted.series} {wanted.sort_key} found {found}")
        self.tally.events_checked += 1

    def _range(self, series: str, now: float) -> tuple[datetime, datetime]:
        if self._chance(0.3):
            return _datetime(now - 200_000), _datetime(now + 100)
        middle = self._moment(series, now)
        if self.acknowledged and self._chance(0.5):
            middle = self.random.choice(self.acknowledged[-50:]).event.time.timestamp()
        margins = (0, 0.000001, 0.5, 20, 100, self.random.uniform(0, 10_000))
        before, after = (self.random.choice(margins) for _ in range(2))
        return _datetime(middle - before), _datetime(middle + after) + _TICK

    def _expected(
        self, series: str, start: datetime, end: datetime, sharding_key: str | None
    ) -> dict[str, Event]:
        """Return what was acknowledged in a range before now, in order."""
        low, high = format_time(start), format_time(end)
        return {
            stored.sort_key: stored.event
            for stored in sorted(self.acknowledged, key=lambda each: each.sort_key)
            if stored.series == series
            and low <= stored.sort_key < high
            and sharding_key in {None, stored.event.sharding_key}
        }

    def _check(
        self, series: str, found: list[Event], expected: dict[str, Event], *, descending: bool
    ) -> None:
        sort_keys = [_sort_key(event) for event in found]
        in_order = sorted(set(sort_keys), reverse=descending)
        if sort_keys != in_order:
            self._fail(f"doubled or out of order: {sort_keys}")
        answer = dict(zip(sort_keys, found, strict=True))
        missing = [key for key in expected if key not in answer]
        if missing:
            self._fail(f"{series} misses {missing}")
        for key, event in answer.items():
            if self.attempted.get((series, key)) != event:
                self._fail(f"{series} invents {event}")
        self.tally.events_checked += len(expected)

    def _fail(self, reason: str) -> None:
        raise CoverageViolationError(f"seed {self.seed}, step {self.cluster.steps}: {reason}")

    def _write_quietly(self) -> None:
        """Write by a right clock while all else rests: nothing may be refused."""
        faults, self.cluster.faults = self.cluster.faults, Faults()
        writer = self.cluster.process("quiet", SETTINGS, sees_date=self._chance(0.5))
        for series in _SERIES:
            writer.start(partial(self._write_at_edges, writer, series))
            writer.run()
        self.cluster.faults = faults

    def _write_at_edges(self, process: Process, series: str) -> None:
        """Write around now, as far ahead as every deploy takes, and at the edges of epochs."""
        now = process.now()
        times = [now + ahead for ahead in (-1_000, -100, -10, 0, 10, 28)]
        times += [edge + by for edge in self._edges(series) for by in (-0.001, 0, 0.001)]
        events = [self._event_at(series, time) for time in times if time <= now + 28]
        for event in events:
            self.attempted[series, _sort_key(event)] = event
        rejected = process.store.write(events, timeout=20).rejected
        if rejected:
            self._fail(f"{series} refuses {events[rejected[0].index].time}: {rejected[0]}")
        self.acknowledged += [_Stored(series, event, _sort_key(event)) for event in events]

    def _final_reads(self) -> None:
        for process in list(self.processes)[:1]:
            process.start(lambda: self._read_all(process))  # noqa: B023  run before the loop goes on
            process.run()

    def _read_all(self, process: Process) -> None:
        now = process.now()
        start, end = _datetime(now - 400_000), _datetime(now)
        for series in _SERIES:
            expected = self._expected(series, start, end, None)
            found = _pages(process, series, start, end, "asc", 100, None)
            self._check(series, found, expected, descending=False)
            self._check_index(process, series, expected)

    def _check_index(self, process: Process, series: str, expected: dict[str, Event]) -> None:
        """Read the same events from the index; bucket by bucket where they lie, since most buckets are empty."""
        for key in expected:
            time = datetime.fromisoformat(key[: keys.TIME_WIDTH])
            page = process.store.read(
                series, time, time + _TICK, limit=1_000, consistent=False, source="index"
            )
            found = [_sort_key(event) for event in page.events]
            at = bisect.bisect_left(found, key)
            if at == len(found) or found[at] != key:
                self._fail(f"the index of {series} misses {key}")


def _pages(  # noqa: PLR0917  a read's parameters
    process: Process,
    series: str,
    start: datetime,
    end: datetime,
    order: str,
    limit: int,
    sharding_key: str | None,
) -> list[Event]:
    found: list[Event] = []
    cursor = None
    while True:
        page = process.store.read(
            series,
            start,
            end,
            limit=limit,
            order=order,
            cursor=cursor,
            sharding_key=sharding_key,
            timeout=60,
        )
        found += page.events
        cursor = page.cursor
        if cursor is None:
            return found


def _sort_key(event: Event) -> str:
    assert event.id is not None
    return keys.sort_key(format_time(event.time), event.sharding_key, event.id)


def _datetime(seconds: float) -> datetime:
    return datetime.fromtimestamp(round(seconds, 6), UTC)
