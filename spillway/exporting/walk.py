"""The walk over blocks of shards: requests, their limits, and what each turn gives out."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, NamedTuple, TypeVar

from spillway.backoff import retry_until
from spillway.exporting.block import Block
from spillway.exporting.copies import Copies
from spillway.exporting.failure import ExportError
from spillway.exporting.lane import Lane, spans_of
from spillway.exporting.lookup import Lookup
from spillway.exporting.position import ExportMode, Position, block_width
from spillway.reading.budget import Budget
from spillway.reading.experience import mean_bytes
from spillway.reading.query import ReadQuery
from spillway.reading.sources import Age, Sources
from spillway.reading.spent import Spent
from spillway.reading.stream import Record
from spillway.storage.port import StorageError

__all__ = ["Turn", "Walk", "Way"]

T = TypeVar("T")

_HELD_BYTES: Final = 8_000_000  # of items that are fetched and wait
_MOST_ITEMS: Final = 10_000  # more than the 1 MB of a page holds
_UNIT_BYTES: Final = 4_096  # that a started read unit pays for
_SLACK: Final = 1.1  # over an even share of what is wanted


class Turn(NamedTuple):
    """What a turn gives out, in order; where it went on from; and where to go on, None at the end of the export."""

    records: list[Record]
    since: Position
    then: Position | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Way:
    """How an export goes: its mode, how many shards `blocks` reads at once, and for how many seconds it tries a request."""

    mode: ExportMode
    pool: int
    timeout: float

    @property
    def width(self) -> int:
        """Shards of a block."""
        return block_width(self.mode, self.pool)


class Walk:
    """One walk over a range. Used once.

    Attributes:
        spent: what it has cost so far, without its one read of the layout.
        wanted: about how many events the caller still takes before it stops; None for all.
        item_bytes: mean size of the items seen last, else of those that other reads of the series have seen.
    """

    def __init__(self, sources: Sources, query: ReadQuery, way: Way, budget: Budget) -> None:
        self._sources = sources
        self._query = query
        self._way = way
        self._budget = budget
        self.item_bytes = sources.experience.of(query.series).item_bytes
        self.spent = Spent()
        self.wanted: int | None = None

    def turns(self, position: Position) -> Iterator[Turn]:
        """Yield turns from a position on. Costs one strongly consistent read of the layout; raises ExportError.

        StorageError where the layout can't be read.
        """
        layout = self._retrying(partial(self._sources.layout, self._query.series, Age.NONE))
        spans = [] if layout is None else spans_of(layout, self._query.start, self._query.end)
        if layout is None or position.first >= len(spans):
            yield Turn([], position, None)
            return
        now = self._sources.runtime.now()
        find = Lookup(self._sources.table, self._query, self._send, now).find
        copies = Copies(self._query.series, layout, find, self._together, now)
        while position.first < len(spans):
            part = spans[position.first : position.end]
            lanes = [Lane(self._sources.table, self._query, span, position.after) for span in part]
            following = position._replace(first=position.end, width=self._way.width, after="")
            last = following if following.first < len(spans) else None
            for run, upto in self._runs(Block(lanes)):
                records = copies.given(run, position)
                then = last if upto is None else position._replace(after=upto)
                yield Turn(records, position, then)
                position = then or position
            position = following

    def exceeded(self) -> str | None:
        """Return the bound that is reached: `deadline` or `read_units`; None while none is."""
        if self._sources.runtime.monotonic() >= self._budget.patience:
            return "deadline"
        units = self._budget.read_units
        return "read_units" if units is not None and self.spent.read_units >= units else None

    def _runs(self, block: Block) -> Iterator[tuple[list[Record], str | None]]:
        """Yield what a block gives out, with the sort key up to which it has then; at least once."""
        while True:
            self.spent.begin_round()
            run = block.turn(partial(self._fetch, block))
            yield run, block.upto
            if block.upto is None:
                return

    def _fetch(self, block: Block, due: list[Lane]) -> None:
        open_lanes = max(1, block.live, len(due))
        tasks = [partial(self._fetch_one, lane, open_lanes, len(due)) for lane in due]
        self._together(tasks)

    def _fetch_one(self, lane: Lane, open_lanes: int, due: int) -> None:
        held = len(lane.buffer)
        lane.fetch(self._send, self._limit(open_lanes, due))
        if len(lane.buffer) > held:
            self.item_bytes = mean_bytes(lane.buffer)

    def _limit(self, open_lanes: int, due: int) -> int:
        """Return how many items to ask of a shard: its share of what is wanted, of what may wait, and of the units left.

        Not less than the cheapest Query returns at no further cost.
        """
        most: float = min(_MOST_ITEMS, _HELD_BYTES / self.item_bytes / open_lanes)
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
