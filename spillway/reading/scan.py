"""One pass over a range: the layout and the first queries at once, then the merge as far as it is read.

Where it may choose, a read follows its plan, and changes to the other source, at the position that it has reached,
when the one it reads throttles, or has cost as much as the other would have.
"""

from collections.abc import Callable, Iterator
from functools import partial
from math import inf
from typing import Final

from spillway.keys import partition_key
from spillway.layouts.model import Layout
from spillway.reading.budget import Budget
from spillway.reading.copies import without_copies
from spillway.reading.ending import missing_from, raise_for, reason_of
from spillway.reading.experience import mean_bytes
from spillway.reading.fanout import Partition, partitions_of
from spillway.reading.leg import Ended, Leg, Work
from spillway.reading.limits import UNIT_BYTES, limit_for
from spillway.reading.merge import Merge
from spillway.reading.page import Missing
from spillway.reading.planning import Plan, planned
from spillway.reading.probing import seconds_between, shown_by
from spillway.reading.query import ReadQuery, Source
from spillway.reading.requests import Requests, SourceThrottledError
from spillway.reading.sources import Sources
from spillway.reading.spent import Spent
from spillway.reading.stream import QueryTemplate, Record, Stream
from spillway.storage.port import StorageError

__all__ = ["Scan"]

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
        sources: Sources,
        query: ReadQuery,
        *,
        after: str | None,
        wanted: int | None,
        budget: Budget,
        explain: bool = False,
        spent: Spent | None = None,
    ) -> None:
        self._sources = sources
        self._query = query
        self._after = after
        self._wanted = wanted
        self._budget = budget
        self._explain = explain
        self.spent = Spent() if spent is None else spent
        self._age = sources.age(query.narrowed(after).end, consistent=query.consistent)
        deadline = budget.deadline
        self._requests = Requests(sources, query.series, self._age, deadline, self.spent)
        self._known = sources.experience.of(query.series)
        self._seen_bytes: float | None = None
        self._given = 0
        self._upto = after
        self._started: dict[str, Stream] = {}
        self.plan: Plan | None = None
        self.left_off: str | None = None
        self.missing: tuple[Missing, ...] = ()
        self.missing_count = 0
        self.reason: str | None = None
        self.failure: StorageError | None = None

    def runs(self) -> Iterator[list[Record]]:
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

    def _work(self) -> Work:
        """Return what is left to read."""
        query, runtime = self._query.narrowed(self._upto), self._sources.runtime
        return Work(query, self._upto, self._budget, self.spent, runtime)

    def _begin(self, work: Work) -> Layout | None:
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

    def _guess(self, query: ReadQuery) -> list[Partition]:
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
        return [Partition(partition_key(query.series, 0), bound, on_index=False)]

    def _first_limit(self, partitions: int) -> int:
        unit_items = max(1.0, UNIT_BYTES / self._known.item_bytes)
        if self._query.sharding_key is not None:
            return int(unit_items)
        return limit_for(self._remaining() / max(1, partitions), partitions, unit_items)

    def _planned(self, layout: Layout, query: ReadQuery) -> Plan:
        plan = planned(
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

    def _legs(self, layout: Layout, work: Work, plan: Plan) -> Iterator[list[Record]]:
        source = plan.source
        self._requests.switchable = plan.may_switch
        leg = self._leg(layout, work, plan, source, plan.most_requests)
        begin = leg.upto
        while True:
            yield from self._unexpired(leg, layout)
            if not self._switches(leg):
                break
            source, work = _OTHER[source], self._work()
            self._requests.switchable = leg.ended is Ended.GIVEN_UP
            self._started.clear()
            leg = self._leg(layout, work, plan, source)
        if leg.ended is not Ended.WHOLE:
            if leg.upto == begin and not self._given:
                raise_for(leg)
            self.left_off, self.reason = leg.upto, reason_of(leg)
            self.missing, self.missing_count = missing_from(leg)
            failures = (each.failure for each in leg.failed)
            self.failure = next((e for e in failures if e and e.code == self.reason), None)

    def _leg(
        self, layout: Layout, work: Work, plan: Plan, source: Source, most_requests: float = inf
    ) -> Leg:
        merge = Merge(
            partitions_of(layout, work.query, source),
            partial(self._open, work),
            descending=work.query.descending,
            ahead=plan.ahead,
        )
        size = self._known.item_bytes
        return Leg(work, source, merge, item_bytes=size, most_requests=most_requests)

    def _open(self, work: Work, partition: Partition) -> Stream:
        started = self._started.pop(partition.key, None)
        if started is not None:
            return started
        source = Source.INDEX if partition.on_index else Source.TABLE
        template = QueryTemplate(self._sources.table, work.query, work.after)
        begin = partition.bound
        if work.after is not None:
            begin = (min if work.query.descending else max)(begin, work.after)
        return Stream(self._requests.to(source), template, partition, begin)

    def _probe(self, layout: Layout, work: Work) -> None:
        """Read one of the table's shards first, since hashing makes all alike; the merge goes on with what it has."""
        shards = list(partitions_of(layout, work.query, Source.TABLE))
        if not shards:
            return
        stream = self._open(work, shards[0])
        self._requests.switchable = True  # a probe that throttles is not worth a wait
        self.spent.begin_round()
        stream.fetch(self._first_limit(len(shards)))
        if stream.failure is None:
            self._known = shown_by(stream, work.query, len(shards), self._known)
            self._started[stream.partition.key] = stream

    def _unexpired(self, leg: Leg, layout: Layout) -> Iterator[list[Record]]:
        now = self._sources.runtime.now()
        for run in leg.runs(self._remaining):
            kept = list(without_copies(run, self._query.series, layout, now))
            self._given += len(kept)
            self._upto = leg.upto
            if kept:
                leg.item_bytes = self._seen_bytes = mean_bytes(kept)
            yield kept

    def _switches(self, leg: Leg) -> bool:
        """Tell whether the other source goes on from here; none begins after the soft deadline."""
        in_time = self._sources.runtime.monotonic() < self._budget.patience
        if not (self._requests.switchable and in_time):
            return False
        throttled = any(isinstance(each.failure, SourceThrottledError) for each in leg.failed)
        return throttled or leg.ended is Ended.GIVEN_UP

    def _learn(self) -> None:
        """Remember what the read has shown of its series."""
        work_end = self._query.start if self._query.descending else self._query.end
        begin = self._query.end if self._query.descending else self._query.start
        seconds = seconds_between(self._after or begin, self._upto or work_end)
        density = self._given / seconds if seconds and self._given else None
        self._sources.experience.learn(self._query.series, self._seen_bytes, density)
