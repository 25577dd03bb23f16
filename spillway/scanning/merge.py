"""The k-way merge: one ordered sequence out of many partitions, fetched only as far as it is read.

Each round fetches the streams that hold the merge up, all at once. What all of them have fetched past, the
*frontier*, is then final: buffered records up to it are concatenated and sorted, which Timsort does by merging
the runs. Partitions that begin behind the frontier (later time buckets) stay closed until it reaches them.
"""

from collections.abc import Callable, Iterator
from operator import itemgetter
from typing import Final

from spillway.scanning.partitions import ScanPartition
from spillway.scanning.streams import PartitionStream, StoredEvent

__all__ = ["OrderedMerge"]

_sort_key = itemgetter(0)
_MAX_BOUNDS: Final = 64  # opened at once
_MAX_STREAMS: Final = 256  # open at once, but for those of one bound


class OrderedMerge:
    """The partitions of one source, in one order. `partitions` come in the order of their bounds.

    `ahead` is how many bounds to open at first.

    Attributes:
        opened: how many bounds were opened.
        streams: those open; none where all is given out. Whoever uses the merge fetches them, takes, then opens.
        upto: all records up to here were taken, in the order of the read; None where nothing is left.
    """

    def __init__(
        self,
        partitions: Iterator[ScanPartition],
        open_stream: Callable[[ScanPartition], PartitionStream],
        *,
        descending: bool,
        ahead: int = 1,
    ) -> None:
        self._waiting = _Waiting(partitions, open_stream)
        self._descending = descending
        self.opened = 0
        self.streams: list[PartitionStream] = []
        self.open(ahead)
        self.upto = self._first(*(stream.reached for stream in self.streams))

    @property
    def closed(self) -> ScanPartition | None:
        """The first partition that is not open yet, None where all are."""
        return self._waiting.following

    def take(self) -> list[StoredEvent]:
        """Remove and return the records that are final after a round, in order; copies of an event are adjacent."""
        frontier = self._first(*(each.reached for each in self.streams if not each.exhausted))
        run: list[StoredEvent] = []
        for stream in self.streams:
            run += stream.take(self._final(stream.buffer, frontier))
        run.sort(key=_sort_key, reverse=self._descending)
        self.upto = self._first(frontier, self._waiting.bound)
        self.streams = [each for each in self.streams if each.buffer or not each.exhausted]
        return run

    def open(self, bounds: int) -> None:
        """Open the partitions of the next bounds, where nothing open is left to fetch before them.

        At most 64 bounds, and none after the first with 256 partitions open: what is opened at once
        is fetched in one round, and a read looks at its deadline between rounds.
        """
        if any(each.holds_up for each in self.streams):
            return
        for number in range(min(max(1, bounds), _MAX_BOUNDS)):
            if number and len(self.streams) >= _MAX_STREAMS:
                return
            opened = self._waiting.open_next()
            self.opened += bool(opened)
            self.streams += opened

    def _final(self, buffer: list[StoredEvent], frontier: str | None) -> int:
        """Return how many buffered records nothing still to be fetched can come before."""
        bound = self._waiting.bound
        count = len(buffer)
        while count and not self._is_final(buffer[count - 1].sort_key, frontier, bound):
            count -= 1
        return count

    def _is_final(self, sort_key: str, frontier: str | None, bound: str | None) -> bool:
        if self._descending:
            return (frontier is None or sort_key >= frontier) and (
                bound is None or sort_key > bound
            )
        return (frontier is None or sort_key <= frontier) and (bound is None or sort_key < bound)

    def _first(self, *positions: str | None) -> str | None:
        """Return what comes first in the order of the read; None positions come last."""
        known = [position for position in positions if position is not None]
        return (max if self._descending else min)(known, default=None)


class _Waiting:
    """Partitions not opened yet, `following` the first; those with the same bound are opened together."""

    def __init__(
        self,
        partitions: Iterator[ScanPartition],
        open_stream: Callable[[ScanPartition], PartitionStream],
    ) -> None:
        self._partitions = partitions
        self._open = open_stream
        self.following = next(partitions, None)

    @property
    def bound(self) -> str | None:
        """Where the next closed partition may begin, None where none is left."""
        return None if self.following is None else self.following.bound

    def open_next(self) -> list[PartitionStream]:
        """Open the partitions of the next bound."""
        opened = []
        bound = self.bound
        while self.following is not None and self.following.bound == bound:
            opened.append(self._open(self.following))
            self.following = next(self._partitions, None)
        return opened
