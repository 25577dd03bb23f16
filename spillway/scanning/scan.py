"""One pass over a range: the layout and the first queries at once, then rounds of requests and a merge."""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import Enum, auto
from functools import partial
from math import inf
from typing import Final

from spillway.dynamodb.port import StorageError
from spillway.dynamodb.retries import DeadlinePassedError
from spillway.errors import InvalidInputError
from spillway.keys import partition_key
from spillway.layouts.model import Layout
from spillway.runtime import Runtime
from spillway.scanning.copies import drop_copies
from spillway.scanning.costs import UNIT_BYTES, ReadBudget, ReadCost
from spillway.scanning.limits import fit_limits, limit_for, limit_through, stream_shares
from spillway.scanning.merge import OrderedMerge
from spillway.scanning.pages import MAX_MISSING, Missing
from spillway.scanning.partitions import ScanPartition, partitions_of
from spillway.scanning.planner import ReadPlan, plan_read
from spillway.scanning.query import ReadQuery, Source
from spillway.scanning.series_stats import mean_bytes, seconds_between, stats_from_probe
from spillway.scanning.sources import ReadSources, ScanRequests, SourceThrottledError
from spillway.scanning.streams import PartitionStream, StoredEvent

__all__ = [
    "Scan",
    "ScanContext",
    "ScanEnd",
    "SourceScan",
    "end_reason",
    "missing_partitions",
    "raise_failure",
]


class ScanEnd(Enum):
    """Why a leg gave out no more."""

    WHOLE = auto()  # nothing is left
    TIME = auto()  # the soft_deadline of its budget
    UNITS = auto()  # the read units of its budget
    FAILED = auto()  # a partition's requests
    GIVEN_UP = auto()  # it took as many requests as the other source would have


@dataclass(frozen=True, slots=True)
class ScanContext:
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
    budget: ReadBudget
    spent: ReadCost
    runtime: Runtime


class SourceScan:
    """A read of one source after a position; used once.

    Attributes:
        merge: its open partitions.
        item_bytes: the size that items are expected to have.
        ended: why it ended, once it has.
        min_units: where its budget has a bound, the read units without which no round makes progress.
    """

    def __init__(
        self,
        work: ScanContext,
        source: Source,
        merge: OrderedMerge,
        *,
        item_bytes: float,
        max_requests: float,
    ) -> None:
        self._work = work
        self._source = source
        self._max_requests = work.spent.requests + max_requests
        self.merge = merge
        self.item_bytes = item_bytes
        self.ended: ScanEnd | None = None
        self.min_units = 0.0
        self._taken = 0

    @property
    def upto(self) -> str | None:
        """The position up to which all was given out; None at the end."""
        reached, after = self.merge.position, self._work.after
        if reached is None or after is None:
            return reached
        return min(reached, after) if self._work.query.descending else max(reached, after)

    @property
    def failed(self) -> list[PartitionStream]:
        """The streams whose last requests failed."""
        return [stream for stream in self.merge.streams if stream.failure is not None]

    def runs(self, remaining: Callable[[], int]) -> Iterator[list[StoredEvent]]:
        """Yield the records that became final, round by round; some rounds give none."""
        while self.merge.streams:
            due = self._affordable(self._due(remaining()))
            if due is None:
                self.ended = ScanEnd.UNITS
                return
            if due:
                self._fetch(due)
            run = self.merge.take_final()
            self._taken += len(run)
            yield run
            self.ended = self._why_end()
            if self.ended is not None:
                return
            self.merge.open_next(self._bounds_needed(remaining()))
        self.ended = ScanEnd.WHOLE

    def _bounds_needed(self, remaining: int) -> int:
        """Return how many bounds to open next: those expected to hold what remains, at most as many as before.

        So where a range turns out sparse each round opens twice as many, and where it turns out dense few are in vain.
        """
        opened = self.merge.opened_bounds
        return min(opened, math.ceil(remaining * opened / max(1, self._taken)))

    def _why_end(self) -> ScanEnd | None:
        if self.upto is None:
            return ScanEnd.WHOLE
        if self.failed:
            return ScanEnd.FAILED
        if self._work.runtime.monotonic() >= self._work.budget.soft_deadline:
            return ScanEnd.TIME
        return ScanEnd.GIVEN_UP if self._work.spent.requests >= self._max_requests else None

    def _due(self, remaining: int) -> list[tuple[PartitionStream, int]]:
        """Return the streams to fetch next, each with its limit."""
        due = stream_shares(self.merge.streams, remaining, descending=self._work.query.descending)
        unit_items = max(1.0, UNIT_BYTES / self.item_bytes)
        return [(stream, self._limit(stream, part, len(due), unit_items)) for stream, part in due]

    def _limit(
        self, stream: PartitionStream, expected: float, together: int, unit_items: float
    ) -> int:
        if self._work.query.sharding_key is not None:
            return limit_through(
                expected, stream.match_count, stream.filtered_out_count, unit_items
            )
        # The index holds the last event of a page back, until all its copies are there.
        held_back = 1 if self._source is Source.INDEX else 0
        again = stream.match_count > 0
        return limit_for(expected, together, unit_items, again=again) + held_back

    def _affordable(
        self, due: list[tuple[PartitionStream, int]]
    ) -> list[tuple[PartitionStream, int]] | None:
        """Return what the budget allows: all with lower limits, or only those furthest behind; None for less."""
        budget, spent = self._work.budget, self._work.spent
        if budget.read_units is None or not due:
            return due
        left = budget.read_units - spent.read_units
        first = max if self._work.query.descending else min
        furthest_behind = first(stream.reached for stream, _ in due)
        behind = [each for each in due if each[0].reached == furthest_behind]
        self.min_units = self._unit * len(behind)
        for some in (due, behind):
            limits = fit_limits([limit for _, limit in some], left, self.item_bytes, self._unit)
            if limits is not None:
                return [(stream, limit) for (stream, _), limit in zip(some, limits, strict=True)]
        return None

    @property
    def _unit(self) -> float:
        return 1.0 if self._work.query.consistent else 0.5

    def _fetch(self, due: list[tuple[PartitionStream, int]]) -> None:
        self._work.spent.begin_round()
        self._work.runtime.parallel([partial(stream.fetch, limit) for stream, limit in due])


_NOT_SENT: Final = DeadlinePassedError().code


def missing_partitions(leg: SourceScan) -> tuple[tuple[Missing, ...], int]:
    """Return up to `MAX_MISSING` partitions that a leg left off, errors first, and how many it did.

    These are the partitions that failed, else the open ones that are not read to their end. Where
    there is none, it is the first of those that were not begun.
    """
    left = leg.failed or [each for each in leg.merge.streams if not each.is_exhausted]
    closed = leg.merge.next_partition
    if not left and closed is not None:
        return (Missing(closed.key, closed.bound, None),), 1
    left.sort(key=lambda each: _code(each) is None)
    return tuple(_missing(each) for each in left[:MAX_MISSING]), len(left)


def _missing(stream: PartitionStream) -> Missing:
    return Missing(stream.partition.key, stream.reached, _code(stream))


def _code(stream: PartitionStream) -> str | None:
    """Return the code of the error that a stream ended with, None where nothing was sent."""
    code = None if stream.failure is None else stream.failure.code
    return None if code == _NOT_SENT else code


def end_reason(leg: SourceScan) -> str:
    """Return why a leg ended before its range: `read_units`, the code of a storage error, or `deadline`."""
    if leg.ended is ScanEnd.UNITS:
        return "read_units"
    codes = (_code(each) for each in leg.failed)
    return next((code for code in codes if code is not None), "deadline")


def raise_failure(leg: SourceScan) -> None:
    """Raise what kept a read from making any progress."""
    for failure in (stream.failure for stream in leg.failed):
        if isinstance(failure, SourceThrottledError):
            raise failure.throttle
        if failure is not None:
            raise failure
    if leg.ended is ScanEnd.UNITS:
        reason = f"must be {leg.min_units:g} at least: one round of requests to all partitions"
        raise InvalidInputError("invalid_query", "max_rcu", reason)


_STREAMED: Final = 20_000  # records asked for at once by a read of a whole range
_OTHER: Final = {Source.TABLE: Source.INDEX, Source.INDEX: Source.TABLE}


class Scan:
    """A read of a range from a cursor on; used once.

    `wanted` is how many events the caller will take, None for all; the partitions' limits are chosen by it. With
    `explain` one shard is read before the others, so that the estimate rests on what it shows, unless units are bounded.

    Attributes:
        spent: what it has cost so far, with what `spent` held before, where it was given.
        plan: where it looks, once begun; None for a series without a layout.
        left_off: the position up to which all was given out, of a range that was not read to its end; else None.
        missing: what it could not read, where it left off; see `Page`.
        missing_count: how many partitions these are in all.
        reason: why it left off: `deadline`, `read_units`, or the code of a storage error.
        failure: that storage error.
    """

    def __init__(  # noqa: PLR0913  a read's whole situation
        self,
        sources: ReadSources,
        query: ReadQuery,
        *,
        after: str | None,
        wanted: int | None,
        budget: ReadBudget,
        explain: bool = False,
        spent: ReadCost | None = None,
    ) -> None:
        self._sources = sources
        self._query = query
        self._after = after
        self._wanted = wanted
        self._budget = budget
        self._explain = explain
        self.spent = ReadCost() if spent is None else spent
        self._age = sources.age(query.narrowed(after).end, consistent=query.consistent)
        deadline = budget.deadline
        self._requests = ScanRequests(sources, query.series, self._age, deadline, self.spent)
        self._known = sources.experience.of(query.series)
        self._seen_bytes: float | None = None
        self._given = 0
        self._upto = after
        self._started: dict[str, PartitionStream] = {}
        self.plan: ReadPlan | None = None
        self.left_off: str | None = None
        self.missing: tuple[Missing, ...] = ()
        self.missing_count = 0
        self.reason: str | None = None
        self.failure: StorageError | None = None

    def runs(self) -> Iterator[list[StoredEvent]]:
        """Yield the unexpired events in order, each once, as rounds of requests make them final; runs may be empty.

        Raises:
            StorageError: DynamoDB failed until the time was up, and the read has made no progress.
            InvalidInputError: the budget's read units do not suffice for one round.
        """
        work = self._work()
        layout = self._begin(work)
        if layout is None:
            return
        if self._explain and self._budget.read_units is None:
            self._probe(layout, work)
        self.plan = self._planned(layout, work.query)
        try:
            yield from self._legs(layout, work, self.plan)
        finally:
            self._learn()

    def _work(self) -> ScanContext:
        """Return what is left to read."""
        query, runtime = self._query.narrowed(self._upto), self._sources.runtime
        return ScanContext(query, self._upto, self._budget, self.spent, runtime)

    def _begin(self, work: ScanContext) -> Layout | None:
        """Read the layout, and at the same time the first pages of what the cached one names."""
        streams = [self._open(work, each) for each in self._guess(work.query)]
        limit = self._first_limit(len(streams))
        load = partial(self._sources.layout, self._query.series, self._age)
        tasks: list[Callable[[], Layout | None]] = [partial(self._requests.retrying, load)]
        tasks += [partial(stream.fetch, limit) for stream in streams]
        if streams:
            self.spent.begin_round()
        layout = self._sources.runtime.parallel(tasks)[0]
        self._started = {stream.partition.key: stream for stream in streams}
        return layout

    def _guess(self, query: ReadQuery) -> list[ScanPartition]:
        """Return the partitions to query before the layout is there; none where the plan may be another."""
        if not query.consistent or self._explain or self._budget.read_units is not None:
            return []
        known = self._sources.layouts.known(query.series)
        if known is not None:
            return list(partitions_of(known, query, Source.TABLE))
        if query.sharding_key is not None:
            return []
        # Every series has shard 0, whatever its layout.
        bound = query.end if query.descending else query.start
        return [ScanPartition(partition_key(query.series, 0), bound, on_index=False)]

    def _first_limit(self, partitions: int) -> int:
        unit_items = max(1.0, UNIT_BYTES / self._known.item_bytes)
        if self._query.sharding_key is not None:
            return int(unit_items)
        return limit_for(self._remaining() / max(1, partitions), partitions, unit_items)

    def _planned(self, layout: Layout, query: ReadQuery) -> ReadPlan:
        plan = plan_read(
            layout,
            query,
            self._remaining(),
            self._known,
            index_usable=self._sources.index_has_payload,
            avoided=self._sources.experience.avoided(query.series),
        )
        # What a probe has read of the table is a part of the table's estimate.
        return plan.after(self.spent) if plan.source is Source.INDEX else plan

    def _remaining(self) -> int:
        return _STREAMED if self._wanted is None else max(1, self._wanted - self._given)

    def _legs(
        self, layout: Layout, work: ScanContext, plan: ReadPlan
    ) -> Iterator[list[StoredEvent]]:
        source = plan.source
        self._requests.switchable = plan.may_switch
        leg = self._leg(layout, work, plan, source, plan.max_requests)
        begin = leg.upto
        while True:
            yield from self._unexpired(leg, layout)
            if not self._switches(leg):
                break
            source, work = _OTHER[source], self._work()
            self._requests.switchable = leg.ended is ScanEnd.GIVEN_UP
            self._started.clear()
            leg = self._leg(layout, work, plan, source)
        if leg.ended is not ScanEnd.WHOLE:
            if leg.upto == begin and not self._given:
                raise_failure(leg)
            self.left_off, self.reason = leg.upto, end_reason(leg)
            self.missing, self.missing_count = missing_partitions(leg)
            failures = (each.failure for each in leg.failed)
            self.failure = next((e for e in failures if e and e.code == self.reason), None)

    def _leg(
        self,
        layout: Layout,
        work: ScanContext,
        plan: ReadPlan,
        source: Source,
        max_requests: float = inf,
    ) -> SourceScan:
        merge = OrderedMerge(
            partitions_of(layout, work.query, source),
            partial(self._open, work),
            descending=work.query.descending,
            initial_bounds=plan.ahead,
        )
        size = self._known.item_bytes
        return SourceScan(work, source, merge, item_bytes=size, max_requests=max_requests)

    def _open(self, work: ScanContext, partition: ScanPartition) -> PartitionStream:
        started = self._started.pop(partition.key, None)
        if started is not None:
            return started
        source = Source.INDEX if partition.on_index else Source.TABLE
        call, table = self._requests.to(source), self._sources.table
        return PartitionStream(call, table, work.query, partition, work.after)

    def _probe(self, layout: Layout, work: ScanContext) -> None:
        """Read one of the table's shards first, since hashing makes all alike; the merge goes on with what it has."""
        shards = list(partitions_of(layout, work.query, Source.TABLE))
        if not shards:
            return
        stream = self._open(work, shards[0])
        self._requests.switchable = True  # a probe that throttles is not worth a wait
        self.spent.begin_round()
        stream.fetch(self._first_limit(len(shards)))
        if stream.failure is None:
            self._known = stats_from_probe(stream, work.query, len(shards), self._known)
            self._started[stream.partition.key] = stream

    def _unexpired(self, leg: SourceScan, layout: Layout) -> Iterator[list[StoredEvent]]:
        now = self._sources.runtime.now()
        for run in leg.runs(self._remaining):
            kept = drop_copies(run, self._query.series, layout, now)
            self._given += len(kept)
            self._upto = leg.upto
            if kept:
                leg.item_bytes = self._seen_bytes = mean_bytes(kept)
            yield kept

    def _switches(self, leg: SourceScan) -> bool:
        """Tell whether the other source goes on from here; none begins after the soft deadline."""
        in_time = self._sources.runtime.monotonic() < self._budget.soft_deadline
        if not (self._requests.switchable and in_time):
            return False
        throttled = any(isinstance(each.failure, SourceThrottledError) for each in leg.failed)
        return throttled or leg.ended is ScanEnd.GIVEN_UP

    def _learn(self) -> None:
        """Remember what the read has shown of its series."""
        work_end = self._query.start if self._query.descending else self._query.end
        begin = self._query.end if self._query.descending else self._query.start
        seconds = seconds_between(self._after or begin, self._upto or work_end)
        density = self._given / seconds if seconds and self._given else None
        self._sources.experience.learn(self._query.series, self._seen_bytes, density)
