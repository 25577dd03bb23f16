"""Copies: an event that is stored in several shards is given out once, whatever becomes of the layout meanwhile.

The last block that holds a copy gives the event, with the payload of the copy that the newest epochs prefer. Which
block is last depends on where the copies lie and not on the layout, which may change between two pages. And a copy is
only dropped while another one is still to come, so that writes under way can add copies but hide none.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial

from spillway import keys
from spillway.exporting.position import Position
from spillway.layouts.model import Layout
from spillway.reading.copies import without_copies
from spillway.reading.stream import Record
from spillway.sharding import Mode, routing_hash

__all__ = ["Copies", "Find", "Together"]

_Found = dict[str, Record]
Find = Callable[[int, Sequence[str]], _Found]
"""Returns the copies that a shard holds of the events with some sort keys, which are ascending."""
Together = Callable[[Sequence[Callable[[], _Found]]], list[_Found]]
"""Runs tasks, one after the other or at the same time; results in order."""


class Copies:
    """Decides which records of a run are given out. `find` and `together` look up what other blocks hold."""

    def __init__(self, series: str, layout: Layout, find: Find, together: Together) -> None:
        self._series = series
        self._layout = layout
        self._find = find
        self._together = together

    def given(self, run: list[Record], block: Position) -> list[Record]:
        """Return the records of a block's run that no later block holds, each once.

        Sends nothing unless epochs with different counts cover the run's times: then it looks the events up in
        the other shards that their layouts give them. In random mode these are all shards of later blocks.
        """
        if not run:
            return run
        unique = list(without_copies(run, self._series, self._layout))
        layout = self._around(unique[0].sort_key, unique[-1].sort_key)
        if not _may_lie_elsewhere(layout, block):
            return unique
        places = [(record, _shards(self._series, layout, record)) for record in unique]
        held_later = self._found(_later(places, block))
        left = [each for each in places if each[0].sort_key not in held_later]
        if layout.current.mode is Mode.RANDOM:  # no copy is better than another
            return [record for record, _ in left]
        return self._best(left, block)

    def _around(self, first: str, last: str) -> Layout:
        """Return the layout with the epochs alone that cover any of these events."""
        width = keys.TIME_WIDTH
        return replace(self._layout, epochs=tuple(self._layout.meeting(first[:width], last)))

    def _found(self, wanted: Iterable[tuple[int, str]]) -> dict[str, list[Record]]:
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

    def _best(self, places: list[tuple[Record, list[int]]], block: Position) -> list[Record]:
        """Return each event as the newest epoch's copy has it, also where that lies in an earlier block."""
        held_earlier = self._found(_better(places, block))
        given = []
        for record, shards in places:
            copies = [record, *held_earlier.get(record.sort_key, ())]
            given.append(min(copies, key=partial(_rank, shards)))
        return given


def _may_lie_elsewhere(layout: Layout, block: Position) -> bool:
    """Tell whether an event of these epochs may have copies outside of the block as well as in it."""
    most = max((epoch.fan_out for epoch in layout.epochs), default=0)
    if block.first == 0 and most <= block.end:
        return False
    counts = {count for epoch in layout.epochs for count in (epoch.shards, *epoch.earlier_shards)}
    return len(counts) > 1 or any(epoch.mode is Mode.RANDOM for epoch in layout.epochs)


def _shards(series: str, layout: Layout, record: Record) -> list[int]:
    """Return the shards that may hold an event, the newest epoch's first."""
    time, sharding_key, _ = keys.parse_sort_key(record.sort_key)
    return layout.candidates(time, routing_hash(series, sharding_key or record.sort_key))


def _later(places: list[tuple[Record, list[int]]], block: Position) -> Iterable[tuple[int, str]]:
    return ((c, record.sort_key) for record, shards in places for c in shards if c >= block.end)


def _better(places: list[tuple[Record, list[int]]], block: Position) -> Iterable[tuple[int, str]]:
    for record, shards in places:
        for shard in shards[: _rank(shards, record)]:
            if shard < block.first:
                yield shard, record.sort_key


def _rank(shards: list[int], record: Record) -> int:
    shard = keys.parse_partition_key(record.partition_key).shard
    return shards.index(shard) if shard in shards else len(shards)
