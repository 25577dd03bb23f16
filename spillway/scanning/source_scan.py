"""A read of one source, round by round, within a budget; and why it ended."""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import Enum, auto
from functools import partial
from typing import Final

from spillway.dynamodb.retries import DeadlinePassedError
from spillway.errors import InvalidInputError
from spillway.runtime import Runtime
from spillway.scanning.costs import UNIT_BYTES, ReadBudget, ReadCost, units_per_started_unit
from spillway.scanning.limits import (
    fit_limits,
    limit_for,
    limit_with_filter,
    stream_shares,
)
from spillway.scanning.merge import OrderedMerge
from spillway.scanning.pages import MAX_MISSING, Missing
from spillway.scanning.query import ReadQuery, Source
from spillway.scanning.sources import SourceThrottledError
from spillway.scanning.streams import PartitionStream, StoredEvent

__all__ = [
    "ScanContext",
    "ScanEnd",
    "SourceScan",
    "end_reason",
    "missing_partitions",
    "raise_failure",
]


class ScanEnd(Enum):
    """Why a source scan ended."""

    COMPLETE = auto()  # everything was read
    DEADLINE = auto()  # the soft deadline of its budget passed
    READ_UNITS = auto()  # the read units of its budget do not suffice for another round
    FAILED = auto()  # requests to a partition failed
    ABANDONED = auto()  # it took as many requests as the other source would have


@dataclass(frozen=True, slots=True)
class ScanContext:
    """What a source scan reads, and within which bounds.

    Attributes:
        query: the read, narrowed to what lies after the position.
        after: the position; None at the beginning of the range.
        budget: of the whole read.
        cost: of the whole read so far.
        runtime: clock and threads.
    """

    query: ReadQuery
    after: str | None
    budget: ReadBudget
    cost: ReadCost
    runtime: Runtime


class SourceScan:
    """A read of one source after a position. Used once.

    Attributes:
        merge: its open partitions.
        item_bytes: the expected size of items.
        end: why it ended; None before.
        min_read_units: under a budget, the read units without which no round makes progress.
    """

    def __init__(
        self,
        context: ScanContext,
        source: Source,
        merge: OrderedMerge,
        *,
        item_bytes: float,
        max_requests: float,
    ) -> None:
        self._context = context
        self._source = source
        self._max_requests = context.cost.requests + max_requests
        self.merge = merge
        self.item_bytes = item_bytes
        self.end: ScanEnd | None = None
        self.min_read_units = 0.0
        self._taken = 0

    @property
    def position(self) -> str | None:
        """The position up to which everything was returned; None at the end."""
        position, after = self.merge.position, self._context.after
        if position is None or after is None:
            return position
        return min(position, after) if self._context.query.descending else max(position, after)

    @property
    def failed_streams(self) -> list[PartitionStream]:
        """The streams whose last request failed."""
        return [stream for stream in self.merge.streams if stream.failure is not None]

    def batches(self, remaining: Callable[[], int]) -> Iterator[list[StoredEvent]]:
        """Yield the records that each round made final; some batches are empty.

        `remaining` returns how many more events the read takes.
        """
        while self.merge.streams:
            fetches = self._fit_budget(self._plan_fetches(remaining()))
            if fetches is None:
                self.end = ScanEnd.READ_UNITS
                return
            if fetches:
                self._fetch(fetches)
            batch = self.merge.take_final()
            self._taken += len(batch)
            yield batch
            self.end = self._find_end()
            if self.end is not None:
                return
            self.merge.open_next(self._bounds_needed(remaining()))
        self.end = ScanEnd.COMPLETE

    def _bounds_needed(self, remaining: int) -> int:
        """Return how many bounds to open next: those expected to hold the remaining events.

        The result is at most as many as were opened before. So each round opens twice as many while
        the range is sparse, and few are opened in vain where it is dense.
        """
        opened = self.merge.opened_bounds
        return min(opened, math.ceil(remaining * opened / max(1, self._taken)))

    def _find_end(self) -> ScanEnd | None:
        if self.position is None:
            return ScanEnd.COMPLETE
        if self.failed_streams:
            return ScanEnd.FAILED
        if self._context.runtime.monotonic() >= self._context.budget.soft_deadline:
            return ScanEnd.DEADLINE
        if self._context.cost.requests >= self._max_requests:
            return ScanEnd.ABANDONED
        return None

    def _plan_fetches(self, remaining: int) -> list["_Fetch"]:
        """Return the streams to fetch next, each with its limit."""
        descending = self._context.query.descending
        shares = stream_shares(self.merge.streams, remaining, descending=descending)
        unit_items = max(1.0, UNIT_BYTES / self.item_bytes)
        return [
            (stream, self._limit(stream, share, len(shares), unit_items))
            for stream, share in shares
        ]

    def _limit(
        self, stream: PartitionStream, expected: float, streams: int, unit_items: float
    ) -> int:
        if self._context.query.sharding_key is not None:
            matched, filtered_out = stream.match_count, stream.filtered_out_count
            return limit_with_filter(expected, matched, filtered_out, unit_items)
        # The index holds the last event of a page back until all its copies are fetched.
        held_back = 1 if self._source is Source.INDEX else 0
        is_refill = stream.match_count > 0
        return limit_for(expected, streams, unit_items, is_refill=is_refill) + held_back

    def _fit_budget(self, fetches: list["_Fetch"]) -> list["_Fetch"] | None:
        """Return the fetches that the budget allows; None if it does not suffice for progress.

        These are all, with lower limits if need be, or else only those of the streams furthest
        behind.
        """
        budget, cost = self._context.budget, self._context.cost
        if budget.read_units is None or not fetches:
            return fetches
        units_left = budget.read_units - cost.read_units
        first = max if self._context.query.descending else min
        furthest_behind = first(stream.reached for stream, _ in fetches)
        behind = [each for each in fetches if each[0].reached == furthest_behind]
        unit = units_per_started_unit(consistent=self._context.query.consistent)
        self.min_read_units = unit * len(behind)
        for some in (fetches, behind):
            limits = fit_limits([limit for _, limit in some], units_left, self.item_bytes, unit)
            if limits is not None:
                return [(stream, limit) for (stream, _), limit in zip(some, limits, strict=True)]
        return None

    def _fetch(self, fetches: list["_Fetch"]) -> None:
        self._context.cost.begin_round()
        tasks = [partial(stream.fetch, limit) for stream, limit in fetches]
        self._context.runtime.parallel(tasks)


_Fetch = tuple[PartitionStream, int]  # a stream, and the limit of its next page

_NOT_SENT: Final = DeadlinePassedError().code


def end_reason(scan: SourceScan) -> str:
    """Return why a scan ended early: `read_units`, the code of a storage error, or `deadline`."""
    if scan.end is ScanEnd.READ_UNITS:
        return "read_units"
    codes = (_error_code(each) for each in scan.failed_streams)
    return next((code for code in codes if code is not None), "deadline")


def missing_partitions(scan: SourceScan) -> tuple[tuple[Missing, ...], int]:
    """Return up to `MAX_MISSING` partitions that a scan did not finish, and how many these are.

    These are the partitions that failed, else the open ones that are not read to their end, else
    the first closed one. Those with errors come first.
    """
    streams = scan.failed_streams or [each for each in scan.merge.streams if not each.is_exhausted]
    closed = scan.merge.next_partition
    if not streams and closed is not None:
        return (Missing(closed.key, closed.bound, None),), 1
    streams.sort(key=lambda each: _error_code(each) is None)
    missing = (Missing(s.partition.key, s.reached, _error_code(s)) for s in streams[:MAX_MISSING])
    return tuple(missing), len(streams)


def raise_failure(scan: SourceScan) -> None:
    """Raise the error that kept a scan from any progress, if there is one."""
    for failure in (stream.failure for stream in scan.failed_streams):
        if isinstance(failure, SourceThrottledError):
            raise failure.throttle
        if failure is not None:
            raise failure
    if scan.end is ScanEnd.READ_UNITS:
        units = scan.min_read_units
        reason = f"must be {units:g} at least: one round of requests to all partitions"
        raise InvalidInputError("invalid_query", "max_rcu", reason)


def _error_code(stream: PartitionStream) -> str | None:
    """Return the code of the error that a stream ended with, None if no request was sent."""
    code = None if stream.failure is None else stream.failure.code
    return None if code == _NOT_SENT else code
