"""Layouts and epochs: which shards may hold an event of a given time.

Pure; the coverage rule rests on it.

Times are the stored 27-character texts, whose order is time order, so an event's time is compared
as it is.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from spillway.keys import TimeBucket
from spillway.sharding import ShardingMode, shard_of
from spillway.timestamps import format_epoch

__all__ = ["OPEN", "START", "Epoch", "GrowthStop", "Layout", "LayoutDecision", "Snapshot"]

START: Final = ""  # sorts before every time: the first epoch has no least time
OPEN: Final = "~"  # sorts after every time: no greatest time is fixed yet


@dataclass(frozen=True, slots=True, kw_only=True)
class Epoch:
    """One layout that may still cover stored events of times `low` to `close`, both included.

    Attributes:
        id: ascending within the series; never used twice.
        shards: shards of the table.
        index_shards: shards of the index.
        mode: how events are spread over the shards.
        bucket: time buckets in the index's partition key.
        low: least event time that may lie under the epoch, START for the first.
        horizon: seconds ahead of its snapshot that a writer may write under the epoch.
        close: greatest event time, fixed once the epoch is known to be retired; OPEN until then.
        earlier_shards: other counts that events may lie under, oldest first, where older epochs
            were folded in.
    """

    id: int
    shards: int
    index_shards: int
    mode: ShardingMode
    bucket: TimeBucket
    low: str
    horizon: float
    close: str = OPEN
    earlier_shards: tuple[int, ...] = ()

    @property
    def fan_out(self) -> int:
        """Shards to open for a range of times: the most of all counts."""
        return max(self.shards, *self.earlier_shards, 0)

    @property
    def min_time(self) -> str | None:
        """Least event time, None for any."""
        return None if self.low == START else self.low

    @property
    def max_time(self) -> str | None:
        """Greatest event time, None while it is not fixed."""
        return None if self.close == OPEN else self.close

    def shards_of(self, routing: int) -> Iterable[int]:
        """Return the shards that may hold one event under the epoch, the likeliest first."""
        if self.mode is ShardingMode.RANDOM:
            return range(self.fan_out)
        return (shard_of(routing, count) for count in (self.shards, *reversed(self.earlier_shards)))

    def covers(self, time: str) -> bool:
        """Tell whether an event of this time may lie under the epoch."""
        return self.low <= time <= self.close

    def meets(self, start: str, end: str) -> bool:
        """Tell whether an event of the range [start, end) may lie under the epoch."""
        return self.low < end and start <= self.close


@dataclass(frozen=True, slots=True, kw_only=True)
class GrowthStop:
    """Why and when (epoch seconds) growth did not help, and the sharding keys no count can help."""

    reason: str
    at: float
    hot_sharding_keys: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class LayoutDecision:
    """A change of the counts of a layout, for people.

    `at` is in epoch seconds; `before` and `after` are (shards, index shards).
    """

    at: float
    before: tuple[int, int]
    after: tuple[int, int]
    why: str
    evidence: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """All epochs of a series, oldest first, as one item holds them under one `version`.

    `history` and `decisions` are for people: `(epoch seconds, shards)` of each change of the
    table's count, and what led to the last changes. `stop` is the last finding that growth does not
    help; it is not part of what `version` guards.
    """

    series: str
    version: int
    last_updated: float
    epochs: tuple[Epoch, ...]
    history: tuple[str, ...] = ()
    stop: GrowthStop | None = None
    decisions: tuple[LayoutDecision, ...] = ()

    @property
    def current(self) -> Epoch:
        """The epoch in force."""
        return self.epochs[-1]

    @property
    def has_closed_retired(self) -> bool:
        """Whether every retired epoch is closed."""
        return all(epoch.close != OPEN for epoch in self.epochs[:-1])

    def covering(self, time: str) -> Iterator[Epoch]:
        """Yield the epochs that may hold an event of this time, newest first."""
        return (epoch for epoch in reversed(self.epochs) if epoch.covers(time))

    def meeting(self, start: str, end: str) -> list[Epoch]:
        """Return the epochs that may hold events of [start, end), oldest first."""
        return [epoch for epoch in self.epochs if epoch.meets(start, end)]

    def candidates(self, time: str, routing: int) -> list[int]:
        """Return the shards that may hold one event, those of the newest epoch first.

        In random mode these are all.
        """
        found: dict[int, None] = {}
        for epoch in self.covering(time):
            found.update(dict.fromkeys(epoch.shards_of(routing)))
        return list(found)


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A layout as one strongly consistent read returned it.

    Attributes:
        layout: the layout.
        loaded_at: this process's wall clock, in epoch seconds, before the read was sent.
        clock_offset: seconds by which that clock was at least ahead of DynamoDB's, negative where
            behind.
        server_time: DynamoDB's clock had not passed this when it answered; None where the endpoint
            does not tell.
    """

    layout: Layout
    loaded_at: float
    clock_offset: float = 0.0
    server_time: float | None = None

    def writable_until(self, clock_error: float) -> str:
        """Return the latest event time that this snapshot lets be written under the epoch in force.

        A retired epoch closes `horizon` seconds after a time at which it was out of force, and it
        was in force at `loaded_at` or later; the clocks of the writer and of whoever closes may
        each be off by `clock_error` seconds.
        """
        return format_epoch(self.loaded_at + self.layout.current.horizon - 2 * clock_error)

    def epoch_for(self, time: str, writable_until: str) -> Epoch | None:
        """Return the epoch to write an event under.

        The newest that covers it, None where a reload must come first.
        """
        newest = next(self.layout.covering(time), None)
        if newest is not None and newest.close == OPEN and time > writable_until:
            return None
        return newest
