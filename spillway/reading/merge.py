"""The k-way merge: one ordered sequence out of many partitions, fetched only as far as it is read.

Each round fetches the streams that hold the merge up, all at once. What all of them have fetched past, the
*frontier*, is then final: buffered records up to it are concatenated and sorted, which Timsort does by merging
the runs. Partitions that begin behind the frontier (later time buckets) stay closed until it reaches them.
"""

from collections.abc import Callable, Iterator
from operator import itemgetter
from typing import Final, NamedTuple

from spillway.reading.fanout import Partition
from spillway.reading.stream import Record, Stream

__all__ = ["Run", "merge"]

_sort_key = itemgetter(0)
_MOST_AHEAD: Final = 64  # partitions opened at once while a range turns out sparse


class Run(NamedTuple):
    """The records that became final in one round of requests, in order; there may be none.

    All records up to `upto` have been given out, in the order of the read; None where nothing is left.
    """

    records: list[Record]
    upto: str | None


def merge(
    partitions: Iterator[Partition],
    open_stream: Callable[[Partition], Stream],
    fetch: Callable[[list[Stream]], None],
    *,
    descending: bool,
) -> Iterator[Run]:
    """Yield a run a round, together all records of the partitions in order; copies of an event are adjacent in one run.

    `partitions` come in the order of their bounds; `fetch` adds a page to each of the streams it is given.
    """
    waiting = _Waiting(partitions, open_stream)
    streams = waiting.open_next(1)
    ahead = 1
    while streams:
        fetch([stream for stream in streams if _holds_up(stream)])
        frontier = _frontier(streams, descending=descending)
        records = _final_records(streams, frontier, waiting.bound, descending=descending)
        yield Run(records, _first(frontier, waiting.bound, descending=descending))
        if records:
            ahead = 1
        streams = [stream for stream in streams if stream.buffer or not stream.exhausted]
        if not any(_holds_up(stream) for stream in streams):
            streams += waiting.open_next(ahead)
            ahead = min(_MOST_AHEAD, ahead * 2)


def _holds_up(stream: Stream) -> bool:
    return not stream.exhausted and not stream.buffer


def _final_records(
    streams: list[Stream], frontier: str | None, next_bound: str | None, *, descending: bool
) -> list[Record]:
    """Take the records that nothing still to be fetched can come before."""
    run: list[Record] = []
    for stream in streams:
        count = len(stream.buffer)
        while count and not _is_final(
            stream.buffer[count - 1].sort_key, frontier, next_bound, descending=descending
        ):
            count -= 1
        run += stream.take(count)
    run.sort(key=_sort_key, reverse=descending)
    return run


def _frontier(streams: list[Stream], *, descending: bool) -> str | None:
    return _first(
        *(stream.reached for stream in streams if not stream.exhausted), descending=descending
    )


def _first(*positions: str | None, descending: bool) -> str | None:
    """Return what comes first in the order of the read; None positions come last."""
    known = [position for position in positions if position is not None]
    return (max if descending else min)(known, default=None)


def _is_final(
    sort_key: str, frontier: str | None, next_bound: str | None, *, descending: bool
) -> bool:
    if descending:
        return (frontier is None or sort_key >= frontier) and (
            next_bound is None or sort_key > next_bound
        )
    return (frontier is None or sort_key <= frontier) and (
        next_bound is None or sort_key < next_bound
    )


class _Waiting:
    """Partitions not opened yet; those with the same bound are opened together."""

    def __init__(
        self, partitions: Iterator[Partition], open_stream: Callable[[Partition], Stream]
    ) -> None:
        self._partitions = partitions
        self._open = open_stream
        self._next = next(partitions, None)

    @property
    def bound(self) -> str | None:
        """Where the next closed partition may begin, None where none is left."""
        return None if self._next is None else self._next.bound

    def open_next(self, groups: int) -> list[Stream]:
        """Open the partitions of the next `groups` bounds."""
        opened = []
        for _ in range(groups):
            bound = self.bound
            while self._next is not None and self._next.bound == bound:
                opened.append(self._open(self._next))
                self._next = next(self._partitions, None)
        return opened
