"""Copies in an export: which of its blocks returns an event that several blocks hold."""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from math import inf
from typing import Final, NamedTuple

from spillway import keys
from spillway.dynamodb.port import Call
from spillway.layouts.model import Layout
from spillway.scanning.copies import (
    candidate_shards,
    copies_by_event,
    copy_rank,
    drop_copies,
    unexpired,
)
from spillway.scanning.costs import MAX_PAGE_ITEMS
from spillway.scanning.export_position import ExportPosition
from spillway.scanning.partitions import ScanPartition
from spillway.scanning.query import ReadQuery
from spillway.scanning.streams import StoredEvent, decode_event, range_request
from spillway.sharding import ShardingMode

__all__ = ["CopyFilter", "CopyLookup", "FindCopies", "RunTasks"]

_Copies = dict[str, StoredEvent]  # by sort key
FindCopies = Callable[[int, Sequence[str]], _Copies]
"""Returns the unexpired copies that a shard holds of the events with some ascending sort keys."""
RunTasks = Callable[[Sequence[Callable[[], _Copies]]], list[_Copies]]
"""Runs tasks, one after the other or at the same time, and returns their results in order."""

_MAX_EXPORT_SECONDS: Final = 7 * 86_400  # that an export may take, with pauses between its pages


class CopyFilter:
    """Decides which records of a block an export returns."""

    def __init__(
        self, series: str, layout: Layout, find: FindCopies, run_tasks: RunTasks, now: float
    ) -> None:
        self._series = series
        self._layout = layout
        self._find = find
        self._run_tasks = run_tasks
        self._now = now

    def select(self, batch: list[StoredEvent], block: ExportPosition) -> list[StoredEvent]:
        """Return the unexpired events of a block's batch that no other block returns, each once.

        Sends nothing unless epochs with different counts cover the batch's times. Otherwise it
        looks the events up in the other shards that may hold them. These are the shards of later
        blocks. For events that expire soon they include those of earlier blocks; for other events
        only those where a newer copy may be. In random mode an event may be in any shard, and no
        copy is newer than another.
        """
        if not batch:
            return batch
        layout = self._narrow_layout(batch[0].sort_key, batch[-1].sort_key)
        if not _may_have_copies_elsewhere(layout, block):
            return drop_copies(batch, self._series, self._layout, self._now)
        last_expiry = partial(_last_expiry, block.started_at + _MAX_EXPORT_SECONDS)
        events = []
        for copies in copies_by_event(unexpired(batch, self._now)):
            shards = candidate_shards(copies[0].sort_key, self._series, layout)
            events.append(_BlockEvent(copies, last_expiry(copies), shards))
        later = self._look_up(_later_shards(events, block))
        events = [each for each in events if last_expiry(later[each.sort_key]) < each.expires]
        earlier = self._look_up(_earlier_shards(events, block, layout.current.mode))
        selected = []
        for event in events:
            earlier_copies = earlier[event.sort_key]
            if last_expiry(earlier_copies) <= event.expires:
                copies = [*event.copies, *later[event.sort_key], *earlier_copies]
                selected.append(min(copies, key=event.rank))
        return selected

    def _narrow_layout(self, first: str, last: str) -> Layout:
        """Return the layout with only the epochs that cover events from `first` to `last`."""
        width = keys.TIME_WIDTH
        return replace(self._layout, epochs=tuple(self._layout.meeting(first[:width], last)))

    def _look_up(self, places: Iterable[tuple[int, str]]) -> defaultdict[str, list[StoredEvent]]:
        """Return the copies found at pairs of shard and sort key, by sort key."""
        by_shard = defaultdict(list)
        for shard, sort_key in places:
            by_shard[shard].append(sort_key)
        tasks = [partial(self._find, shard, each) for shard, each in sorted(by_shard.items())]
        found = defaultdict(list)
        for copies in self._run_tasks(tasks):
            for sort_key, copy in copies.items():
                found[sort_key].append(copy)
        return found


class _BlockEvent(NamedTuple):
    """An event of a block.

    Attributes:
        copies: its unexpired copies in the block.
        expires: when the last of them expires; infinite if that is long after the export.
        shards: the shards that may hold it, the newest epoch's first.
    """

    copies: list[StoredEvent]
    expires: float
    shards: list[int]

    @property
    def sort_key(self) -> str:
        return self.copies[0].sort_key

    def rank(self, copy: StoredEvent) -> int:
        return copy_rank(copy, self.shards)


def _may_have_copies_elsewhere(layout: Layout, block: ExportPosition) -> bool:
    """Return whether an event of these epochs may have copies both in the block and outside."""
    max_fan_out = max((epoch.fan_out for epoch in layout.epochs), default=0)
    if block.first == 0 and max_fan_out <= block.end:
        return False
    counts = {count for epoch in layout.epochs for count in (epoch.shards, *epoch.earlier_shards)}
    return len(counts) > 1 or any(epoch.mode is ShardingMode.RANDOM for epoch in layout.epochs)


def _last_expiry(max_tracked: float, copies: list[StoredEvent]) -> float:
    """Return when the last copy expires: inf if after `max_tracked`, -inf if there is no copy."""
    times = [inf if each.expires is None else each.expires for each in copies]
    last = max(times, default=-inf)
    return inf if last > max_tracked else last


def _later_shards(events: list[_BlockEvent], block: ExportPosition) -> Iterable[tuple[int, str]]:
    return (
        (shard, event.sort_key) for event in events for shard in event.shards if shard >= block.end
    )


def _earlier_shards(
    events: list[_BlockEvent], block: ExportPosition, mode: ShardingMode
) -> Iterable[tuple[int, str]]:
    for event in events:
        shards = event.shards
        if event.expires == inf:  # no copy lives longer, but another may be newer
            best = min(map(event.rank, event.copies))
            shards = [] if mode is ShardingMode.RANDOM else shards[:best]
        for shard in shards:
            if shard < block.first:
                yield shard, event.sort_key


_MIN_LIMIT: Final = 20  # items of 200 bytes that the cheapest Query returns at no further cost


class CopyLookup:
    """Looks events up in another shard. Each request begins at the next event that is not decided.

    Costs at least one Query. If the shard holds little in the events' range, that is all; if it is
    dense, at most one Query for each event. A BatchGetItem would cost a unit for each event.
    """

    def __init__(self, call: Call, table: str, query: ReadQuery, now: float) -> None:
        self._call = call
        self._table = table
        self._query = query
        self._now = now

    def find(self, shard: int, sort_keys: Sequence[str]) -> dict[str, StoredEvent]:
        """Return a shard's unexpired copies by sort key; `sort_keys` must ascend."""
        requested = set(sort_keys)
        found: dict[str, StoredEvent] = {}
        index, limit = 0, max(_MIN_LIMIT, min(2 * len(sort_keys), MAX_PAGE_ITEMS))
        while index < len(sort_keys):
            records, reached = self._fetch_page(shard, sort_keys[index], sort_keys[-1], limit)
            found.update((each.sort_key, each) for each in records if each.sort_key in requested)
            if reached is None:
                break
            decided = bisect_right(sort_keys, reached) - index
            # Seek in small pages while few of the events lie in a page.
            if 4 * decided >= limit:
                limit = min(2 * limit, MAX_PAGE_ITEMS)
            else:
                limit = max(_MIN_LIMIT, limit // 2)
            index += decided
        return found

    def _fetch_page(
        self, shard: int, low: str, high: str, limit: int
    ) -> tuple[list[StoredEvent], str | None]:
        """Return a page's unexpired records, and its last sort key if more items follow."""
        key = keys.partition_key(self._query.series, shard)
        partition = ScanPartition(key, low, on_index=False)
        request = range_request(
            self._table, partition, low, high, consistent=self._query.consistent
        )
        response = self._call("Query", {**request, "Limit": limit})
        records = [decode_event(item) for item in response["Items"]]
        position = response.get("LastEvaluatedKey")
        reached = None if position is None else position[keys.SORT_KEY]["S"]
        return unexpired(records, self._now), reached
