"""One ordered pass over a range: read the layout, choose a source, scan it, and switch if needed.

The first queries may be sent together with the read of the layout.
"""

from collections.abc import Callable, Iterator
from functools import partial
from math import inf
from typing import Final

from spillway.dynamodb.port import StorageError
from spillway.keys import partition_key
from spillway.layouts.model import Layout
from spillway.scanning.copies import drop_copies
from spillway.scanning.costs import UNIT_BYTES, ReadBudget, ReadCost
from spillway.scanning.limits import limit_for
from spillway.scanning.merge import OrderedMerge
from spillway.scanning.pages import Missing
from spillway.scanning.partitions import ScanPartition, partitions_of
from spillway.scanning.planner import ReadPlan, plan_read
from spillway.scanning.query import ReadQuery, Source
from spillway.scanning.series_stats import mean_bytes, seconds_between, stats_from_probe
from spillway.scanning.source_scan import (
    ScanContext,
    ScanEnd,
    SourceScan,
    end_reason,
    missing_partitions,
    raise_failure,
)
from spillway.scanning.sources import ReadSources, ScanRequests, SourceThrottledError
from spillway.scanning.streams import PartitionStream, StoredEvent

__all__ = ["Scan"]

_WHOLE_RANGE_EVENTS: Final = 20_000  # requested at once by a read of a whole range
_OTHER: Final = {Source.TABLE: Source.INDEX, Source.INDEX: Source.TABLE}


class Scan:
    """A read of a range from a position on. Used once.

    Attributes:
        cost: what it has cost so far, on top of the cost that it was given.
        plan: where it reads; None before it begins, and for a series without a layout.
        stopped_at: the position up to which everything was returned, if the scan stopped before the
            end of its range; else None.
        missing: the partitions that it then did not finish; see `Page`.
        missing_count: how many partitions these are in all.
        reason: why it stopped: `deadline`, `read_units`, or the code of a storage error.
        failure: that storage error.
    """

    def __init__(  # noqa: PLR0913  a read's whole situation
        self,
        sources: ReadSources,
        query: ReadQuery,
        *,
        after: str | None,
        requested: int | None,
        budget: ReadBudget,
        explain: bool = False,
        cost: ReadCost | None = None,
    ) -> None:
        """Prepare a scan; nothing is sent yet.

        Args:
            sources: where to find layouts and events.
            query: the range and order.
            after: the position to go on after; None for the whole range.
            requested: how many events the caller will take, None for all. Limits depend on it.
            budget: time and read units.
            explain: whether to read one shard before the others, so that the estimates rest on what
                it shows. Ignored if read units are bounded.
            cost: the cost to add to.
        """
        self._sources = sources
        self._query = query
        self._after = after
        self._requested = requested
        self._budget = budget
        self._explain = explain
        self.cost = ReadCost() if cost is None else cost
        self._staleness = sources.staleness(query.narrowed(after).end, consistent=query.consistent)
        self._requests = ScanRequests(
            sources, query.series, self._staleness, budget.deadline, self.cost
        )
        self._stats = sources.stats.get(query.series)
        self._seen_bytes: float | None = None
        self._returned = 0
        self._position = after
        self._started: dict[str, PartitionStream] = {}
        self.plan: ReadPlan | None = None
        self.stopped_at: str | None = None
        self.missing: tuple[Missing, ...] = ()
        self.missing_count = 0
        self.reason: str | None = None
        self.failure: StorageError | None = None

    def batches(self) -> Iterator[list[StoredEvent]]:
        """Yield the unexpired events in order, each once, after each round; some are empty.

        Raises:
            StorageError: DynamoDB failed until the deadline, and the read has made no progress.
            InvalidInputError: the budget's read units do not suffice for one round.
        """
        context = self._context()
        layout = self._load_layout(context)
        if layout is None:
            return
        if self._explain and self._budget.read_units is None:
            self._probe(layout, context)
        self.plan = self._make_plan(layout, context.query)
        try:
            yield from self._scan_sources(layout, context, self.plan)
        finally:
            self._learn()

    def _context(self) -> ScanContext:
        """Return the context of a source scan from the current position on."""
        query, runtime = self._query.narrowed(self._position), self._sources.runtime
        return ScanContext(query, self._position, self._budget, self.cost, runtime)

    def _load_layout(self, context: ScanContext) -> Layout | None:
        """Read the layout, and at the same time fetch what the cached layout names."""
        streams = [self._open(context, each) for each in self._early_partitions(context.query)]
        limit = self._first_limit(len(streams))
        load = partial(self._sources.layout, self._query.series, self._staleness)
        tasks: list[Callable[[], Layout | None]] = [partial(self._requests.retrying, load)]
        tasks += [partial(stream.fetch, limit) for stream in streams]
        if streams:
            self.cost.begin_round()
        layout = self._sources.runtime.parallel(tasks)[0]
        self._started = {stream.partition.key: stream for stream in streams}
        return layout

    def _early_partitions(self, query: ReadQuery) -> list[ScanPartition]:
        """Return the partitions to query before the layout is read.

        There are none if the plan may choose other ones.
        """
        if not query.consistent or self._explain or self._budget.read_units is not None:
            return []
        layout = self._sources.layouts.cached_layout(query.series)
        if layout is not None:
            return list(partitions_of(layout, query, Source.TABLE))
        if query.sharding_key is not None:
            return []
        # Every series has shard 0, whatever its layout.
        bound = query.end if query.descending else query.start
        return [ScanPartition(partition_key(query.series, 0), bound, on_index=False)]

    def _probe(self, layout: Layout, context: ScanContext) -> None:
        """Read one of the table's shards and estimate by it, since hashing makes all alike.

        The merge goes on with what the probe has fetched.
        """
        shards = list(partitions_of(layout, context.query, Source.TABLE))
        if not shards:
            return
        stream = self._open(context, shards[0])
        self._requests.may_switch = True  # a probe that throttles is not worth a wait
        self.cost.begin_round()
        stream.fetch(self._first_limit(len(shards)))
        if stream.failure is None:
            self._stats = stats_from_probe(stream, context.query, len(shards), self._stats)
            self._started[stream.partition.key] = stream

    def _first_limit(self, partitions: int) -> int:
        unit_items = max(1.0, UNIT_BYTES / self._stats.item_bytes)
        if self._query.sharding_key is not None:
            return int(unit_items)
        return limit_for(self._remaining() / max(1, partitions), partitions, unit_items)

    def _remaining(self) -> int:
        if self._requested is None:
            return _WHOLE_RANGE_EVENTS
        return max(1, self._requested - self._returned)

    def _make_plan(self, layout: Layout, query: ReadQuery) -> ReadPlan:
        plan = plan_read(
            layout,
            query,
            self._remaining(),
            self._stats,
            index_usable=self._sources.index_has_payload,
            throttled=self._sources.stats.throttled_source(query.series),
        )
        # What a probe has read of the table is a part of the table's estimate.
        return plan.after(self.cost) if plan.source is Source.INDEX else plan

    def _scan_sources(
        self, layout: Layout, context: ScanContext, plan: ReadPlan
    ) -> Iterator[list[StoredEvent]]:
        source = plan.source
        self._requests.may_switch = plan.may_switch
        scan = self._source_scan(layout, context, plan, source, plan.max_requests)
        start = scan.position
        while True:
            yield from self._returned_batches(scan, layout)
            if not self._should_switch(scan):
                break
            source, context = _OTHER[source], self._context()
            self._requests.may_switch = scan.end is ScanEnd.ABANDONED
            self._started.clear()
            scan = self._source_scan(layout, context, plan, source)
        if scan.end is not ScanEnd.COMPLETE:
            if scan.position == start and not self._returned:
                raise_failure(scan)
            self.stopped_at, self.reason = scan.position, end_reason(scan)
            self.missing, self.missing_count = missing_partitions(scan)
            failures = (each.failure for each in scan.failed_streams)
            self.failure = next((e for e in failures if e and e.code == self.reason), None)

    def _source_scan(
        self,
        layout: Layout,
        context: ScanContext,
        plan: ReadPlan,
        source: Source,
        max_requests: float = inf,
    ) -> SourceScan:
        merge = OrderedMerge(
            partitions_of(layout, context.query, source),
            partial(self._open, context),
            descending=context.query.descending,
            initial_bounds=plan.initial_bounds,
        )
        size = self._stats.item_bytes
        return SourceScan(context, source, merge, item_bytes=size, max_requests=max_requests)

    def _open(self, context: ScanContext, partition: ScanPartition) -> PartitionStream:
        started = self._started.pop(partition.key, None)
        if started is not None:
            return started
        source = Source.INDEX if partition.on_index else Source.TABLE
        call, table = self._requests.to(source), self._sources.table
        return PartitionStream(call, table, context.query, partition, context.after)

    def _returned_batches(self, scan: SourceScan, layout: Layout) -> Iterator[list[StoredEvent]]:
        """Yield a source scan's batches without copies and expired events, and count them."""
        now = self._sources.runtime.now()
        for batch in scan.batches(self._remaining):
            events = drop_copies(batch, self._query.series, layout, now)
            self._returned += len(events)
            self._position = scan.position
            if events:
                scan.item_bytes = self._seen_bytes = mean_bytes(events)
            yield events

    def _should_switch(self, scan: SourceScan) -> bool:
        """Return whether to go on with the other source; never after the soft deadline."""
        is_in_time = self._sources.runtime.monotonic() < self._budget.soft_deadline
        if not (self._requests.may_switch and is_in_time):
            return False
        if scan.end is ScanEnd.ABANDONED:
            return True
        return any(isinstance(e.failure, SourceThrottledError) for e in scan.failed_streams)

    def _learn(self) -> None:
        """Remember the size and density of the events read."""
        start, end = self._query.start, self._query.end
        if self._query.descending:
            start, end = end, start
        seconds = seconds_between(self._after or start, self._position or end)
        density = self._returned / seconds if seconds and self._returned else None
        self._sources.stats.learn(self._query.series, self._seen_bytes, density)
