"""The scan of an export: shards or blocks of shards, each in time order, every event once."""

import math
import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import partial
from itertools import groupby
from math import inf
from operator import itemgetter
from typing import Any, Final, NamedTuple, TypeVar

from spillway import keys
from spillway.dynamodb.port import Item, StorageError
from spillway.dynamodb.retries import retry_until
from spillway.keys import TIME_WIDTH
from spillway.layouts.model import Layout
from spillway.scanning.copies import drop_copies, unexpired
from spillway.scanning.costs import ReadBudget, ReadCost
from spillway.scanning.cursor import decode_cursor, encode_cursor, invalid_cursor, is_position
from spillway.scanning.query import ReadQuery
from spillway.scanning.series_stats import mean_bytes
from spillway.scanning.sources import ReadSources, Staleness
from spillway.scanning.streams import StoredEvent, decode_event
from spillway.sharding import MAX_SHARDS, ShardingMode, routing_hash

__all__ = [
    "MAX_POOL",
    "CopyFilter",
    "CopyLookup",
    "ExportBatch",
    "ExportCursors",
    "ExportError",
    "ExportMode",
    "ExportOptions",
    "ExportPosition",
    "ExportScan",
    "Find",
    "Send",
    "ShardBlock",
    "ShardSpan",
    "ShardStream",
    "Together",
    "block_width",
    "range_request",
    "shard_spans",
]


MAX_POOL: Final = 8  # as many requests as a store sends at the same time
_POSITION: Final = re.compile(r"(\d{1,3}):(\d{1,3}):(\d{1,10}):(.*)", re.ASCII | re.DOTALL)
_SAME: Final = "series, start, end and mode"


class ExportMode(StrEnum):
    """In which order an export reads the shards."""

    SHARDS = "shards"  # one after the other
    BLOCKS = "blocks"  # some at the same time, then the next ones
    ROUND_ROBIN = "round_robin"  # a page of each in turn


def block_width(mode: ExportMode, pool: int) -> int:
    """Return how many shards are walked through together."""
    return {ExportMode.SHARDS: 1, ExportMode.BLOCKS: pool, ExportMode.ROUND_ROBIN: MAX_SHARDS}[mode]


class ExportPosition(NamedTuple):
    """A point of an export: blocks of lower shards are done, and this block up to and with the sort key `after`.

    `after` may be a time alone, which sorts before its events, or empty where the block has not been begun.
    `started_at` is when the export began, in epoch seconds.
    """

    first: int
    width: int
    after: str = ""
    started_at: int = 0

    @property
    def end(self) -> int:
        """The first shard behind the block."""
        return self.first + self.width


class ExportCursors:
    """ExportCursors as cursors, bound to the series and range of an export and to its mode."""

    def __init__(self, query: ReadQuery, mode: ExportMode) -> None:
        self.series = query.series
        self._query = query
        self._binding = repr(("export", query.series, query.start, query.end, mode.value))

    def encode(self, position: ExportPosition) -> str:
        """Return an opaque text of at most 930 characters."""
        first, width, after, started_at = position
        return encode_cursor(f"{first}:{width}:{started_at}:{after}", self._binding)

    def decode(self, cursor: str) -> ExportPosition:
        """Return the position of a cursor; InvalidInputError where it is none of the export's."""
        match = _POSITION.fullmatch(decode_cursor(cursor, self._binding, _SAME))
        if match is None:
            raise invalid_cursor(_SAME)
        first, width, started_at, after = match.groups()
        position = ExportPosition(int(first), int(width), after, int(started_at))
        if not self._is_possible(position):
            raise invalid_cursor(_SAME)
        return position

    def _is_possible(self, position: ExportPosition) -> bool:
        after = position.after
        is_in_range = self._query.start <= after < self._query.end and is_position(after)
        return (
            position.first <= MAX_SHARDS
            and 1 <= position.width <= MAX_SHARDS
            and (not after or is_in_range)
        )


class ExportError(StorageError):
    """A shard could not be read until the time for it was up. What was given out before is good.

    Attributes:
        partition_key: the shard, as its partition key.
        cause: why: throttled, out of reach or refused.
        cursor: of an export that goes on after the last event that was given out.
    """

    def __init__(self, partition_key: str, cause: StorageError) -> None:
        super().__init__(cause.code, f"reading {partition_key}: {cause.message}")
        self.partition_key = partition_key
        self.cause = cause
        self.cursor: str | None = None


Send = Callable[[str, dict[str, Any]], dict[str, Any]]
"""Sends a Query of the partition that is named, counted and tried again; raises ExportError."""

_sort_key = itemgetter(0)
_CONDITION: Final = "#p = :p AND #s BETWEEN :low AND :high"


def range_request(  # noqa: PLR0913  a Query's own parameters
    table: str, partition_key: str, low: str, high: str, *, limit: int, consistent: bool
) -> dict[str, Any]:
    """Return the Query for up to `limit` items of a shard from the sort key `low` to `high`, both included.

    Costs 0.5 RCU (1 if consistent) for each started 4 KB of what it reads, 1 MB at most; at least one such unit.
    """
    return {
        "TableName": table,
        "KeyConditionExpression": _CONDITION,
        "ExpressionAttributeNames": {"#p": keys.PARTITION_KEY, "#s": keys.SORT_KEY},
        "ExpressionAttributeValues": {
            ":p": {"S": partition_key},
            ":low": {"S": low},
            ":high": {"S": high},
        },
        "ScanIndexForward": True,
        "Limit": limit,
        "ReturnConsumedCapacity": "TOTAL",
        **({"ConsistentRead": True} if consistent else {}),
    }


class ShardSpan(NamedTuple):
    """A shard, and the least and the greatest time of the events that it may hold."""

    shard: int
    low: str
    close: str


def shard_spans(layout: Layout, start: str, end: str) -> list[ShardSpan]:
    """Return the shards that may hold events of [start, end): `0 … max(fan_out) - 1` of the epochs that meet it."""
    epochs = layout.meeting(start, end)
    spans = []
    for shard in range(max((epoch.fan_out for epoch in epochs), default=0)):
        holding = [epoch for epoch in epochs if epoch.fan_out > shard]
        low = min(epoch.low for epoch in holding)
        spans.append(ShardSpan(shard, max(start, low), max(epoch.close for epoch in holding)))
    return spans


class ShardStream:
    """One shard's part of an export. Used by one thread at a time.

    Attributes:
        partition_key: the shard's.
        buffer: records fetched and not yet taken, in order.
        reached: the sort key up to which everything has been fetched; at first a time before all events.
        opened: whether anything has been fetched.
        exhausted: nothing is left to fetch.
    """

    __slots__ = (
        "_position",
        "_request",
        "buffer",
        "exhausted",
        "opened",
        "partition_key",
        "reached",
    )

    def __init__(self, table: str, query: ReadQuery, span: ShardSpan, after: str) -> None:
        """Begin where the shard's events may begin, and after a sort key, where that comes later."""
        self.partition_key = keys.partition_key(query.series, span.shard)
        self.reached = max(span.low, after)
        low = max(span.low, f"{after}\0")  # \0: the next possible sort key
        self._request = range_request(
            table, self.partition_key, low, query.end, limit=1, consistent=query.consistent
        )
        self._position: Item | None = None
        self.buffer: list[StoredEvent] = []
        self.opened = False
        self.exhausted = bool(after) and after[:TIME_WIDTH] > span.close

    @property
    def is_dry(self) -> bool:
        """Whether nothing after `reached` can be given out before more is fetched."""
        return not self.exhausted and not self.buffer

    def fetch(self, send: Send, limit: int) -> None:
        """Fetch one page of up to `limit` items, 1 MB at most: one request."""
        request = {**self._request, "Limit": limit}
        if self._position is not None:
            request["ExclusiveStartKey"] = self._position
        response = send(self.partition_key, request)
        self.buffer += [decode_event(item) for item in response["Items"]]
        self.opened = True
        self._position = response.get("LastEvaluatedKey")
        self.exhausted = self._position is None
        if self._position is not None:
            self.reached = self._position[keys.SORT_KEY]["S"]

    def take(self, upto: str | None) -> list[StoredEvent]:
        """Remove and return the records up to a sort key, all where it is None."""
        if upto is None or (self.buffer and self.buffer[-1].sort_key <= upto):
            taken, self.buffer = self.buffer, []
            return taken
        count = bisect_right(self.buffer, upto, key=_sort_key)
        taken, self.buffer = self.buffer[:count], self.buffer[count:]
        return taken


_LEAST: Final = 20  # items of 200 bytes that the cheapest Query returns at no further cost
_MOST: Final = 10_000  # more than 1 MB holds


class CopyLookup:
    """Looks events up in other shards by walking along both, each request beginning at the next event looked for.

    Costs at least one Query a shard. Where the other shard holds little in that range, that is all; where it is
    dense, at most one Query for each event looked for. A BatchGetItem would cost a unit for every single one.
    """

    def __init__(self, table: str, query: ReadQuery, send: Send, now: float) -> None:
        self._table = table
        self._query = query
        self._send = send
        self._now = now

    def find(self, shard: int, wanted: Sequence[str]) -> dict[str, StoredEvent]:
        """Return the unexpired copies that a shard holds, by their sort keys; `wanted` is ascending."""
        looked_for = set(wanted)
        found: dict[str, StoredEvent] = {}
        at, limit = 0, max(_LEAST, min(2 * len(wanted), _MOST))
        while at < len(wanted):
            records, reached = self._page(shard, wanted[at], wanted[-1], limit)
            found.update((each.sort_key, each) for each in records if each.sort_key in looked_for)
            if reached is None:
                break
            settled = bisect_right(wanted, reached) - at
            limit = min(2 * limit, _MOST) if 4 * settled >= limit else max(_LEAST, limit // 2)
            at += settled
        return found

    def _page(
        self, shard: int, low: str, high: str, limit: int
    ) -> tuple[list[StoredEvent], str | None]:
        key = keys.partition_key(self._query.series, shard)
        consistent = self._query.consistent
        response = self._send(
            key, range_request(self._table, key, low, high, limit=limit, consistent=consistent)
        )
        records = [decode_event(item) for item in response["Items"]]
        position = response.get("LastEvaluatedKey")
        reached = None if position is None else position[keys.SORT_KEY]["S"]
        return unexpired(records, self._now), reached


class ShardBlock:
    """Some shards, from the same point on.

    What all of them have been fetched past, the *frontier*, is given out; what lies behind it waits for the next turn, at
    most a page a shard. A shard that holds nothing before some time is first asked when the frontier comes to it.

    Attributes:
        upto: everything up to this sort key has been given out; None where nothing is left.
    """

    def __init__(self, lanes: list[ShardStream]) -> None:
        self._lanes = lanes
        self.upto = self._frontier()

    @property
    def live(self) -> int:
        """Shards of which more is to come and has been asked for."""
        return sum(lane.opened and not lane.exhausted for lane in self._lanes)

    def due(self) -> list[ShardStream]:
        """Return the shards that must be fetched before anything more can be given out."""
        upto = self.upto
        return [
            lane for lane in self._lanes if lane.is_dry and (upto is None or lane.reached <= upto)
        ]

    def turn(self, fetch: Callable[[list[ShardStream]], None]) -> list[StoredEvent]:
        """Fetch what is due, and return what lies up to the new frontier, in order; copies of an event are adjacent."""
        fetch(self.due())
        self.upto = self._frontier()
        run: list[StoredEvent] = []
        for lane in self._lanes:
            run += lane.take(self.upto)
        run.sort(key=_sort_key)  # merges the runs
        self._lanes = [lane for lane in self._lanes if lane.buffer or not lane.exhausted]
        return run

    def _frontier(self) -> str | None:
        return min((lane.reached for lane in self._lanes if not lane.exhausted), default=None)


_Found = dict[str, StoredEvent]
Find = Callable[[int, Sequence[str]], _Found]
"""Returns the unexpired copies that a shard holds of some events; their sort keys ascend."""
Together = Callable[[Sequence[Callable[[], _Found]]], list[_Found]]
"""Runs tasks, one after the other or at the same time; results in order."""
_MAX_EXPORT_SECONDS: Final = (
    7 * 86_400
)  # that an export may take, pauses between its pages included


class _Event(NamedTuple):
    """An event of a block.

    Attributes:
        copies: its unexpired copies in the block.
        expires: when the last of them expires; infinite where that is long after the export.
        shards: the shards that may hold it, the newest epoch's first.
    """

    copies: list[StoredEvent]
    expires: float
    shards: list[int]

    @property
    def sort_key(self) -> str:
        return self.copies[0].sort_key

    def rank(self, copy: StoredEvent) -> int:
        """Return the place of a copy's shard among the shards."""
        shard = keys.parse_partition_key(copy.partition_key).shard
        return self.shards.index(shard) if shard in self.shards else len(self.shards)


class CopyFilter:
    """Decides which records of a run are given out. `find` and `together` look up what other blocks hold."""

    def __init__(
        self, series: str, layout: Layout, find: Find, together: Together, now: float
    ) -> None:
        self._series = series
        self._layout = layout
        self._find = find
        self._together = together
        self._now = now

    def given(self, run: list[StoredEvent], block: ExportPosition) -> list[StoredEvent]:
        """Return the unexpired events of a block's run that no other block gives, each once.

        Sends nothing unless epochs with different counts cover the run's times: then it looks the
        events up in the other shards that their layouts give them. These are the shards of later
        blocks; for events that expire soon those of earlier blocks as well, for others only where
        the newest copy may lie there. In random mode an event may lie in any shard, and no copy is
        newer than another.
        """
        if not run:
            return run
        layout = self._around(run[0].sort_key, run[-1].sort_key)
        if not _may_lie_elsewhere(layout, block):
            return list(drop_copies(run, self._series, self._layout, self._now))
        last_expiry = partial(_last_expiry, block.started_at + _MAX_EXPORT_SECONDS)
        events = []
        for _, group in groupby(unexpired(run, self._now), key=_sort_key):
            copies = list(group)
            events.append(_Event(copies, last_expiry(copies), self._shards(layout, copies[0])))
        later = self._found(_later(events, block))
        events = [each for each in events if last_expiry(later[each.sort_key]) < each.expires]
        earlier = self._found(_earlier(events, block, layout.current.mode))
        given = []
        for event in events:
            passed = earlier[event.sort_key]
            if last_expiry(passed) <= event.expires:
                copies = [*event.copies, *later[event.sort_key], *passed]
                given.append(min(copies, key=event.rank))
        return given

    def _around(self, first: str, last: str) -> Layout:
        """Return the layout with the epochs alone that cover any of these events."""
        width = keys.TIME_WIDTH
        return replace(self._layout, epochs=tuple(self._layout.meeting(first[:width], last)))

    def _shards(self, layout: Layout, record: StoredEvent) -> list[int]:
        """Return the shards that may hold an event, the newest epoch's first."""
        time, sharding_key, _ = keys.parse_sort_key(record.sort_key)
        return layout.candidates(time, routing_hash(self._series, sharding_key or record.sort_key))

    def _found(self, wanted: Iterable[tuple[int, str]]) -> defaultdict[str, list[StoredEvent]]:
        """Look sort keys up, each in the shard that it comes with."""
        by_shard = defaultdict(list)
        for shard, sort_key in wanted:
            by_shard[shard].append(sort_key)
        tasks = [partial(self._find, shard, each) for shard, each in sorted(by_shard.items())]
        found = defaultdict(list)
        for records in self._together(tasks):
            for sort_key, record in records.items():
                found[sort_key].append(record)
        return found


def _may_lie_elsewhere(layout: Layout, block: ExportPosition) -> bool:
    """Tell whether an event of these epochs may have copies outside of the block as well as in it."""
    most = max((epoch.fan_out for epoch in layout.epochs), default=0)
    if block.first == 0 and most <= block.end:
        return False
    counts = {count for epoch in layout.epochs for count in (epoch.shards, *epoch.earlier_shards)}
    return len(counts) > 1 or any(epoch.mode is ShardingMode.RANDOM for epoch in layout.epochs)


def _last_expiry(lasting_from: float, copies: list[StoredEvent]) -> float:
    """Return when the last of some copies expires: inf after `lasting_from`, -inf without any."""
    times = [inf if each.expires is None else each.expires for each in copies]
    last = max(times, default=-inf)
    return inf if last > lasting_from else last


def _later(events: list[_Event], block: ExportPosition) -> Iterable[tuple[int, str]]:
    return ((c, event.sort_key) for event in events for c in event.shards if c >= block.end)


def _earlier(
    events: list[_Event], block: ExportPosition, mode: ShardingMode
) -> Iterable[tuple[int, str]]:
    for event in events:
        shards = event.shards
        if event.expires == inf:  # nothing lives longer, but another copy may be newer
            best = min(map(event.rank, event.copies))
            shards = [] if mode is ShardingMode.RANDOM else shards[:best]
        for shard in shards:
            if shard < block.first:
                yield shard, event.sort_key


T = TypeVar("T")

_HELD_BYTES: Final = 8_000_000  # of items that are fetched and wait
_MAX_ITEMS: Final = 10_000  # more than the 1 MB of a page holds
_UNIT_BYTES: Final = 4_096  # that a started read unit pays for
_SLACK: Final = 1.1  # over an even share of what is wanted


class ExportBatch(NamedTuple):
    """What a turn gives out, in order; where it went on from; and where to go on, None at the end of the export."""

    records: list[StoredEvent]
    since: ExportPosition
    then: ExportPosition | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportOptions:
    """How an export goes: its mode, how many shards `blocks` reads at once, and for how many seconds it tries a request."""

    mode: ExportMode
    pool: int
    timeout: float

    @property
    def width(self) -> int:
        """Shards of a block."""
        return block_width(self.mode, self.pool)


class ExportScan:
    """One walk over a range. Used once.

    Attributes:
        spent: what it has cost so far, without its one read of the layout.
        wanted: about how many events the caller still takes before it stops; None for all.
        item_bytes: mean size of the items seen last, else of those that other reads of the series have seen.
    """

    def __init__(
        self, sources: ReadSources, query: ReadQuery, way: ExportOptions, budget: ReadBudget
    ) -> None:
        self._sources = sources
        self._query = query
        self._way = way
        self._budget = budget
        self.item_bytes = sources.experience.of(query.series).item_bytes
        self.spent = ReadCost()
        self.wanted: int | None = None

    def turns(self, position: ExportPosition) -> Iterator[ExportBatch]:
        """Yield turns from a position on. Costs one strongly consistent read of the layout; raises ExportError.

        StorageError where the layout can't be read.
        """
        layout = self._retrying(partial(self._sources.layout, self._query.series, Staleness.NONE))
        spans = [] if layout is None else shard_spans(layout, self._query.start, self._query.end)
        if layout is None or position.first >= len(spans):
            yield ExportBatch([], position, None)
            return
        now = self._sources.runtime.now()
        find = CopyLookup(self._sources.table, self._query, self._send, now).find
        copies = CopyFilter(self._query.series, layout, find, self._together, now)
        while position.first < len(spans):
            part = spans[position.first : position.end]
            lanes = [
                ShardStream(self._sources.table, self._query, span, position.after) for span in part
            ]
            following = position._replace(first=position.end, width=self._way.width, after="")
            last = following if following.first < len(spans) else None
            for run, upto in self._runs(ShardBlock(lanes)):
                records = copies.given(run, position)
                then = last if upto is None else position._replace(after=upto)
                yield ExportBatch(records, position, then)
                position = then or position
            position = following

    def exceeded(self) -> str | None:
        """Return the bound that is reached: `deadline` or `read_units`; None while none is."""
        if self._sources.runtime.monotonic() >= self._budget.patience:
            return "deadline"
        units = self._budget.read_units
        return "read_units" if units is not None and self.spent.read_units >= units else None

    def _runs(self, block: ShardBlock) -> Iterator[tuple[list[StoredEvent], str | None]]:
        """Yield what a block gives out, with the sort key up to which it has then; at least once."""
        while True:
            self.spent.begin_round()
            run = block.turn(partial(self._fetch, block))
            yield run, block.upto
            if block.upto is None:
                return

    def _fetch(self, block: ShardBlock, due: list[ShardStream]) -> None:
        open_lanes = max(1, block.live, len(due))
        tasks = [partial(self._fetch_one, lane, open_lanes, len(due)) for lane in due]
        self._together(tasks)

    def _fetch_one(self, lane: ShardStream, open_lanes: int, due: int) -> None:
        held = len(lane.buffer)
        lane.fetch(self._send, self._limit(open_lanes, due))
        if len(lane.buffer) > held:
            self.item_bytes = mean_bytes(lane.buffer)

    def _limit(self, open_lanes: int, due: int) -> int:
        """Return how many items to ask of a shard: its share of what is wanted, of what may wait, and of the units left.

        Not less than the cheapest Query returns at no further cost.
        """
        most: float = min(_MAX_ITEMS, _HELD_BYTES / self.item_bytes / open_lanes)
        if self.wanted is not None:
            most = min(most, self.wanted * _SLACK / open_lanes + 1)
        if self._budget.read_units is not None:
            unit = 1.0 if self._query.consistent else 0.5
            left = (self._budget.read_units - self.spent.read_units) / unit / due
            most = min(most, left * _UNIT_BYTES / self.item_bytes)
        return math.ceil(max(most, _UNIT_BYTES / self.item_bytes, 1))

    def _together(self, tasks: Sequence[Callable[[], T]], /) -> list[T]:
        """Run requests at the same time in `blocks`, else one after the other: that is what the others are for."""
        if self._way.mode is ExportMode.BLOCKS:
            return self._sources.runtime.parallel(tasks)
        return [task() for task in tasks]

    def _send(self, partition_key: str, request: Mapping[str, Any]) -> dict[str, Any]:
        try:
            response = self._retrying(partial(self._sources.call, "Query", request))
        except StorageError as error:
            raise ExportError(partition_key, error) from error
        self.spent.count(response)
        return response

    def _retrying(self, task: Callable[[], T]) -> T:
        runtime = self._sources.runtime
        deadline = min(self._budget.deadline, runtime.monotonic() + self._way.timeout)
        return retry_until(deadline, task, runtime)
