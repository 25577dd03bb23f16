"""The k-way merge: one ordered sequence out of many partitions, fetched only as far as it is read.

Each round fetches the streams that block the merge, all at once. What all streams have fetched
past, the *frontier*, is then final. Buffered records up to it are concatenated and sorted; Timsort
merges the sorted parts. Partitions that begin after the frontier stay closed until it reaches them.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterator
from typing import Final

from spillway.scanning.partitions import ScanPartition
from spillway.scanning.streams import PartitionStream, StoredEvent, sort_key_of

__all__ = ["OrderedMerge"]

_MAX_BOUNDS: Final = 64  # opened at once
_MAX_STREAMS: Final = 256  # open at once, except those of one bound


class OrderedMerge:
    """Merges the partitions of one source, which come in the order of their bounds.

    In each round the caller fetches streams, calls `take_final`, then `open_next`. Streams of
    partitions with the same bound are opened together.

    Attributes:
        opened_bounds: number of bounds opened so far.
        streams: the open streams; empty once all records are taken.
        next_partition: the first partition that is still closed; None if all are open.
        position: all records up to here, in the order of the read, were taken; None at the end.
    """

    def __init__(
        self,
        partitions: Iterator[ScanPartition],
        open_stream: Callable[[ScanPartition], PartitionStream],
        *,
        descending: bool,
        initial_bounds: int = 1,
    ) -> None:
        self._partitions = partitions
        self._open_stream = open_stream
        self._descending = descending
        self.next_partition = next(partitions, None)
        self.opened_bounds = 0
        self.streams: list[PartitionStream] = []
        self.open_next(initial_bounds)
        self.position = self._first(*(stream.reached for stream in self.streams))

    def take_final(self) -> list[StoredEvent]:
        """Remove and return the final records in order. Copies of an event are adjacent."""
        frontier = self._first(*(each.reached for each in self.streams if not each.is_exhausted))
        bound = self._next_bound
        batch: list[StoredEvent] = []
        for stream in self.streams:
            batch += stream.take(self._count_final(stream.buffer, frontier, bound))
        batch.sort(key=sort_key_of, reverse=self._descending)
        self.position = self._first(frontier, bound)
        self.streams = [each for each in self.streams if each.buffer or not each.is_exhausted]
        return batch

    def open_next(self, bounds: int = 1) -> None:
        """Open the partitions of the next bounds, unless an open stream must be fetched first.

        Opens at most 64 bounds, and only one once 256 partitions are open: what is opened at once
        is fetched in one round, and a read looks at its deadline between rounds.
        """
        if any(each.blocks_merge for each in self.streams):
            return
        for number in range(min(max(1, bounds), _MAX_BOUNDS)):
            if number and len(self.streams) >= _MAX_STREAMS:
                return
            self._open_bound()

    @property
    def _next_bound(self) -> str | None:
        return None if self.next_partition is None else self.next_partition.bound

    def _open_bound(self) -> None:
        bound = self._next_bound
        if bound is None:
            return
        self.opened_bounds += 1
        while self.next_partition is not None and self.next_partition.bound == bound:
            self.streams.append(self._open_stream(self.next_partition))
            self.next_partition = next(self._partitions, None)

    def _count_final(
        self, buffer: list[StoredEvent], frontier: str | None, bound: str | None
    ) -> int:
        """Return how many of the buffered records no unfetched record can precede."""

        def is_open(record: StoredEvent) -> bool:
            return not self._is_final(record.sort_key, frontier, bound)

        if not buffer or not is_open(buffer[-1]):
            return len(buffer)
        return bisect_left(buffer, True, key=is_open)

    def _is_final(self, sort_key: str, frontier: str | None, bound: str | None) -> bool:
        if self._descending:
            return (frontier is None or sort_key >= frontier) and (
                bound is None or sort_key > bound
            )
        return (frontier is None or sort_key <= frontier) and (bound is None or sort_key < bound)

    def _first(self, *positions: str | None) -> str | None:
        """Return the first position in the order of the read. None sorts last."""
        present = [position for position in positions if position is not None]
        return (max if self._descending else min)(present, default=None)
