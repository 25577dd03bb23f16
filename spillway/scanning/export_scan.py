"""The scan of an export: blocks of shards, each in time order, every event once."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, NamedTuple, TypeVar

from spillway import keys
from spillway.dynamodb.port import StorageError
from spillway.dynamodb.retries import retry_until
from spillway.layouts.model import Layout
from spillway.scanning.costs import (
    MAX_PAGE_ITEMS,
    UNIT_BYTES,
    ReadBudget,
    ReadCost,
    units_per_started_unit,
)
from spillway.scanning.export_copies import CopyFilter, CopyLookup
from spillway.scanning.export_position import ExportMode, ExportPosition, block_width
from spillway.scanning.merge import OrderedMerge
from spillway.scanning.partitions import ScanPartition
from spillway.scanning.query import ReadQuery
from spillway.scanning.series_stats import mean_bytes
from spillway.scanning.sources import ReadSources, Staleness
from spillway.scanning.streams import PartitionStream, StoredEvent

__all__ = ["ExportBatch", "ExportError", "ExportOptions", "ExportScan"]

_MAX_BUFFERED_BYTES: Final = 8_000_000  # of items that are fetched and not yet returned
_SLACK: Final = 1.1  # over an even share of the remaining events


class ExportError(StorageError):
    """A shard could not be read within its timeout. What was returned before is good.

    Attributes:
        partition_key: the shard, as its partition key.
        cause: why: throttled, out of reach or refused.
        cursor: of an export that goes on after the last returned event.
    """

    def __init__(self, partition_key: str, cause: StorageError) -> None:
        super().__init__(cause.code, f"reading {partition_key}: {cause.message}")
        self.partition_key = partition_key
        self.cause = cause
        self.cursor: str | None = None


class ExportBatch(NamedTuple):
    """Events that one round made final.

    Attributes:
        records: the events in order.
        since: the position before them.
        then: the position after them; None at the end of the export.
    """

    records: list[StoredEvent]
    since: ExportPosition
    then: ExportPosition | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportOptions:
    """How an export reads.

    Attributes:
        mode: the order of the shards.
        pool: how many shards mode `blocks` reads at once.
        timeout: seconds for which each request is tried again.
    """

    mode: ExportMode
    pool: int
    timeout: float

    @property
    def width(self) -> int:
        """Number of shards in a block."""
        return block_width(self.mode, self.pool)


class ExportScan:
    """One pass over a range. Used once.

    Attributes:
        cost: what it has cost so far, without its one read of the layout.
        remaining: about how many events the caller still takes before it stops; None for all.
        item_bytes: mean size of the items seen last; at first of those that other reads have seen.
    """

    def __init__(
        self, sources: ReadSources, query: ReadQuery, options: ExportOptions, budget: ReadBudget
    ) -> None:
        self._sources = sources
        self._query = query
        self._options = options
        self._budget = budget
        self.item_bytes = sources.stats.get(query.series).item_bytes
        self.cost = ReadCost()
        self.remaining: int | None = None

    def batches(self, position: ExportPosition) -> Iterator[ExportBatch]:
        """Yield batches from a position on; some are empty.

        Costs one strongly consistent read of the layout.

        Raises:
            ExportError: a shard could not be read.
            StorageError: the layout could not be read.
        """
        layout = self._retry(partial(self._sources.layout, self._query.series, Staleness.NONE))
        spans = [] if layout is None else _shard_spans(layout, self._query)
        if layout is None or position.first >= len(spans):
            yield ExportBatch([], position, None)
            return
        now = self._sources.runtime.now()
        lookup = CopyLookup(self._call, self._sources.table, self._query, now)
        find = partial(self._find_copies, lookup)
        copies = CopyFilter(self._query.series, layout, find, self._run_tasks, now)
        while position.first < len(spans):
            merge = self._merge(spans[position.first : position.end], position.after)
            next_block = position._replace(first=position.end, width=self._options.width, after="")
            end = next_block if next_block.first < len(spans) else None
            for batch in self._merged_batches(merge):
                records = copies.select(batch, position)
                then = end if merge.position is None else position._replace(after=merge.position)
                yield ExportBatch(records, position, then)
                position = then or position
            position = next_block

    def bound_reached(self) -> str | None:
        """Return the bound that is reached: `deadline` or `read_units`; None if neither is."""
        if self._sources.runtime.monotonic() >= self._budget.soft_deadline:
            return "deadline"
        units = self._budget.read_units
        return "read_units" if units is not None and self.cost.read_units >= units else None

    def _merge(self, spans: Sequence["_ShardSpan"], after: str) -> OrderedMerge:
        """Return the merge of a block's shards that may hold events after a sort key."""
        partitions = [
            ScanPartition(
                keys.partition_key(self._query.series, span.shard),
                max(span.low, after),
                on_index=False,
            )
            for span in spans
            if not after or after[: keys.TIME_WIDTH] <= span.close
        ]
        partitions.sort(key=lambda partition: partition.bound)

        def open_stream(partition: ScanPartition) -> PartitionStream:
            table = self._sources.table
            return PartitionStream(self._call, table, self._query, partition, after or None)

        return OrderedMerge(iter(partitions), open_stream, descending=False)

    def _merged_batches(self, merge: OrderedMerge) -> Iterator[list[StoredEvent]]:
        """Yield what becomes final after each round of requests, at least one batch."""
        while True:
            self._fetch_round(merge)
            yield merge.take_final()
            if merge.position is None:
                return
            merge.open_next()

    def _fetch_round(self, merge: OrderedMerge) -> None:
        """Fetch the streams without which no further event is final."""
        self.cost.begin_round()
        blocking = [stream for stream in merge.streams if stream.blocks_merge]
        partly_fetched = sum(stream.is_partly_fetched for stream in merge.streams)
        open_streams = max(1, partly_fetched, len(blocking))
        self._run_tasks(
            [partial(self._fetch, stream, open_streams, len(blocking)) for stream in blocking]
        )

    def _fetch(self, stream: PartitionStream, open_streams: int, fetched_streams: int) -> None:
        buffered = len(stream.buffer)
        stream.fetch(self._limit(open_streams, fetched_streams))
        if stream.failure is not None:
            raise ExportError(stream.partition.key, stream.failure) from stream.failure
        if len(stream.buffer) > buffered:
            self.item_bytes = mean_bytes(stream.buffer)

    def _limit(self, open_streams: int, fetched_streams: int) -> int:
        """Return how many items to request of a shard.

        This is its share of the remaining events, of the buffered bytes and of the read units left,
        but not less than the cheapest Query returns at no further cost.
        """
        limit: float = min(MAX_PAGE_ITEMS, _MAX_BUFFERED_BYTES / self.item_bytes / open_streams)
        if self.remaining is not None:
            limit = min(limit, self.remaining * _SLACK / open_streams + 1)
        if self._budget.read_units is not None:
            unit = units_per_started_unit(consistent=self._query.consistent)
            units = (self._budget.read_units - self.cost.read_units) / unit / fetched_streams
            limit = min(limit, units * UNIT_BYTES / self.item_bytes)
        return math.ceil(max(limit, UNIT_BYTES / self.item_bytes, 1))

    def _find_copies(
        self, lookup: CopyLookup, shard: int, sort_keys: Sequence[str]
    ) -> dict[str, StoredEvent]:
        try:
            return lookup.find(shard, sort_keys)
        except StorageError as error:
            raise ExportError(keys.partition_key(self._query.series, shard), error) from error

    def _run_tasks(self, tasks: Sequence[Callable[[], "_T"]], /) -> list["_T"]:
        """Run tasks at the same time in mode `blocks`, one after the other in the other modes."""
        if self._options.mode is ExportMode.BLOCKS:
            return self._sources.runtime.parallel(tasks)
        return [task() for task in tasks]

    def _call(self, operation: str, request: Mapping[str, Any], /) -> dict[str, Any]:
        response = self._retry(partial(self._sources.call, operation, request))
        self.cost.count(response)
        return response

    def _retry(self, task: Callable[[], "_T"]) -> "_T":
        runtime = self._sources.runtime
        deadline = min(self._budget.deadline, runtime.monotonic() + self._options.timeout)
        return retry_until(deadline, task, runtime)


_T = TypeVar("_T")


class _ShardSpan(NamedTuple):
    """A shard, with the first and the last time of the events that it may hold."""

    shard: int
    low: str
    close: str


def _shard_spans(layout: Layout, query: ReadQuery) -> list[_ShardSpan]:
    """Return the shards that may hold events of the query's range.

    These are `0 … max(fan_out) - 1` of the epochs that meet the range.
    """
    epochs = layout.meeting(query.start, query.end)
    spans = []
    for shard in range(max((epoch.fan_out for epoch in epochs), default=0)):
        holding = [epoch for epoch in epochs if epoch.fan_out > shard]
        low = min(epoch.low for epoch in holding)
        spans.append(_ShardSpan(shard, max(query.start, low), max(e.close for e in holding)))
    return spans
