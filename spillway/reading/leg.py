"""One source of a read, from a position on: rounds of requests, within a budget."""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import Enum, auto
from functools import partial

from spillway.reading.budget import Budget
from spillway.reading.limits import UNIT_BYTES, affordable, limit_for, limit_through, shares
from spillway.reading.merge import Merge
from spillway.reading.query import ReadQuery, Source
from spillway.reading.spent import Spent
from spillway.reading.stream import Record, Stream
from spillway.runtime import Runtime

__all__ = ["Ended", "Leg", "Work"]


class Ended(Enum):
    """Why a leg gave out no more."""

    WHOLE = auto()  # nothing is left
    TIME = auto()  # the patience of its budget
    UNITS = auto()  # the read units of its budget
    FAILED = auto()  # a partition's requests
    GIVEN_UP = auto()  # it took as many requests as the other source would have


@dataclass(frozen=True, slots=True)
class Work:
    """What a leg reads, and within what.

    Attributes:
        query: the read, narrowed to what lies after the position.
        after: the position; None at the beginning.
        budget: of the whole read.
        spent: by the whole read.
        runtime: clock and threads.
    """

    query: ReadQuery
    after: str | None
    budget: Budget
    spent: Spent
    runtime: Runtime


class Leg:
    """A read of one source after a position; used once.

    Attributes:
        merge: its open partitions.
        item_bytes: the size that items are expected to have.
        ended: why it ended, once it has.
        least_units: where its budget has a bound, the read units without which no round makes progress.
    """

    def __init__(
        self, work: Work, source: Source, merge: Merge, *, item_bytes: float, most_requests: float
    ) -> None:
        self._work = work
        self._source = source
        self._most_requests = work.spent.requests + most_requests
        self.merge = merge
        self.item_bytes = item_bytes
        self.ended: Ended | None = None
        self.least_units = 0.0
        self._taken = 0

    @property
    def upto(self) -> str | None:
        """The position up to which all was given out; None at the end."""
        reached, after = self.merge.upto, self._work.after
        if reached is None or after is None:
            return reached
        return min(reached, after) if self._work.query.descending else max(reached, after)

    @property
    def failed(self) -> list[Stream]:
        """The streams whose last requests failed."""
        return [stream for stream in self.merge.streams if stream.failure is not None]

    def runs(self, remaining: Callable[[], int]) -> Iterator[list[Record]]:
        """Yield the records that became final, round by round; some rounds give none."""
        while self.merge.streams:
            due = self._affordable(self._due(remaining()))
            if due is None:
                self.ended = Ended.UNITS
                return
            if due:
                self._fetch(due)
            run = self.merge.take()
            self._taken += len(run)
            yield run
            self.ended = self._why_end()
            if self.ended is not None:
                return
            self.merge.open(self._bounds_needed(remaining()))
        self.ended = Ended.WHOLE

    def _bounds_needed(self, remaining: int) -> int:
        """Return how many bounds to open next: those expected to hold what remains, at most as many as before.

        So where a range turns out sparse each round opens twice as many, and where it turns out dense few are in vain.
        """
        opened = self.merge.opened
        return min(opened, math.ceil(remaining * opened / max(1, self._taken)))

    def _why_end(self) -> Ended | None:
        if self.upto is None:
            return Ended.WHOLE
        if self.failed:
            return Ended.FAILED
        if self._work.runtime.monotonic() >= self._work.budget.patience:
            return Ended.TIME
        return Ended.GIVEN_UP if self._work.spent.requests >= self._most_requests else None

    def _due(self, remaining: int) -> list[tuple[Stream, int]]:
        """Return the streams to fetch next, each with its limit."""
        due = shares(self.merge.streams, remaining, descending=self._work.query.descending)
        unit_items = max(1.0, UNIT_BYTES / self.item_bytes)
        return [(stream, self._limit(stream, part, len(due), unit_items)) for stream, part in due]

    def _limit(self, stream: Stream, expected: float, together: int, unit_items: float) -> int:
        if self._work.query.sharding_key is not None:
            return limit_through(expected, stream.kept, stream.passed_over, unit_items)
        # The index holds the last event of a page back, until all its copies are there.
        held_back = 1 if self._source is Source.INDEX else 0
        again = stream.kept > 0
        return limit_for(expected, together, unit_items, again=again) + held_back

    def _affordable(self, due: list[tuple[Stream, int]]) -> list[tuple[Stream, int]] | None:
        """Return what the budget allows: all with lower limits, or only those furthest behind; None for less."""
        budget, spent = self._work.budget, self._work.spent
        if budget.read_units is None or not due:
            return due
        left = budget.read_units - spent.read_units
        first = max if self._work.query.descending else min
        furthest_behind = first(stream.reached for stream, _ in due)
        behind = [each for each in due if each[0].reached == furthest_behind]
        self.least_units = self._unit * len(behind)
        for some in (due, behind):
            limits = affordable([limit for _, limit in some], left, self.item_bytes, self._unit)
            if limits is not None:
                return [(stream, limit) for (stream, _), limit in zip(some, limits, strict=True)]
        return None

    @property
    def _unit(self) -> float:
        return 1.0 if self._work.query.consistent else 0.5

    def _fetch(self, due: list[tuple[Stream, int]]) -> None:
        self._work.spent.begin_round()
        self._work.runtime.parallel([partial(stream.fetch, limit) for stream, limit in due])
