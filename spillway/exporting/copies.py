"""Copies: an event that is stored in several shards is given out once, whatever becomes of the layout meanwhile.

The last block that holds a copy gives the event. Copies that expire within a week of the export's
beginning could be gone when their block's turn comes, so among these, and against all others, the
one that expires last decides. The payload is that of the newest unexpired copy. Which block gives
an event depends neither on the layout nor on the time of a page, both of which change meanwhile.
Without such short-lived copies a copy is only dropped while another one is still to come, so that
writes under way can add copies but hide none.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from itertools import groupby
from math import inf
from operator import itemgetter
from typing import Final, NamedTuple

from spillway import keys
from spillway.exporting.position import Position
from spillway.layouts.model import Layout
from spillway.reading.copies import unexpired, without_copies
from spillway.reading.stream import Record
from spillway.sharding import Mode, routing_hash

__all__ = ["Copies", "Find", "Together"]

_Found = dict[str, Record]
Find = Callable[[int, Sequence[str]], _Found]
"""Returns the unexpired copies that a shard holds of some events; their sort keys ascend."""
Together = Callable[[Sequence[Callable[[], _Found]]], list[_Found]]
"""Runs tasks, one after the other or at the same time; results in order."""

_sort_key = itemgetter(0)
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

    copies: list[Record]
    expires: float
    shards: list[int]

    @property
    def sort_key(self) -> str:
        return self.copies[0].sort_key

    def rank(self, copy: Record) -> int:
        """Return the place of a copy's shard among the shards."""
        shard = keys.parse_partition_key(copy.partition_key).shard
        return self.shards.index(shard) if shard in self.shards else len(self.shards)


class Copies:
    """Decides which records of a run are given out. `find` and `together` look up what other blocks hold."""

    def __init__(
        self, series: str, layout: Layout, find: Find, together: Together, now: float
    ) -> None:
        self._series = series
        self._layout = layout
        self._find = find
        self._together = together
        self._now = now

    def given(self, run: list[Record], block: Position) -> list[Record]:
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
            return list(without_copies(run, self._series, self._layout, self._now))
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

    def _shards(self, layout: Layout, record: Record) -> list[int]:
        """Return the shards that may hold an event, the newest epoch's first."""
        time, sharding_key, _ = keys.parse_sort_key(record.sort_key)
        return layout.candidates(time, routing_hash(self._series, sharding_key or record.sort_key))

    def _found(self, wanted: Iterable[tuple[int, str]]) -> defaultdict[str, list[Record]]:
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


def _may_lie_elsewhere(layout: Layout, block: Position) -> bool:
    """Tell whether an event of these epochs may have copies outside of the block as well as in it."""
    most = max((epoch.fan_out for epoch in layout.epochs), default=0)
    if block.first == 0 and most <= block.end:
        return False
    counts = {count for epoch in layout.epochs for count in (epoch.shards, *epoch.earlier_shards)}
    return len(counts) > 1 or any(epoch.mode is Mode.RANDOM for epoch in layout.epochs)


def _last_expiry(lasting_from: float, copies: list[Record]) -> float:
    """Return when the last of some copies expires: inf after `lasting_from`, -inf without any."""
    times = [inf if each.expires is None else each.expires for each in copies]
    last = max(times, default=-inf)
    return inf if last > lasting_from else last


def _later(events: list[_Event], block: Position) -> Iterable[tuple[int, str]]:
    return ((c, event.sort_key) for event in events for c in event.shards if c >= block.end)


def _earlier(events: list[_Event], block: Position, mode: Mode) -> Iterable[tuple[int, str]]:
    for event in events:
        shards = event.shards
        if event.expires == inf:  # nothing lives longer, but another copy may be newer
            best = min(map(event.rank, event.copies))
            shards = [] if mode is Mode.RANDOM else shards[:best]
        for shard in shards:
            if shard < block.first:
                yield shard, event.sort_key
