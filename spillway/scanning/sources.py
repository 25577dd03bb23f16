"""Where reads find layouts and events, and how their requests are sent, retried and counted."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum, auto
from functools import partial
from typing import Any, TypeVar

from spillway.dynamodb.port import Call, StorageError, ThrottledError
from spillway.dynamodb.retries import retry_until
from spillway.layouts.model import Layout
from spillway.layouts.source import LayoutSource
from spillway.runtime import Runtime
from spillway.scanning.costs import ReadCost
from spillway.scanning.query import Source
from spillway.scanning.series_stats import SeriesStatsCache
from spillway.timestamps import format_epoch

__all__ = ["ReadSources", "ScanRequests", "SourceThrottledError", "Staleness"]


class Staleness(Enum):
    """How far a read may lag behind writes."""

    NONE = auto()  # every acknowledged write is seen
    SECONDS = auto()  # the process cache's time to live, and DynamoDB's lag
    MINUTES = auto()  # that, and the time to live of a cache before DynamoDB


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadSources:
    """Where reads find layouts and events.

    Attributes:
        call: DynamoDB.
        cached: DynamoDB through a cache, for reads that may lag; `call` if there is none.
        stats: what earlier reads observed of their series.
        index_has_payload: whether reads from the index return whole events.
        open_for: seconds after which nothing is expected to be added to a range that has ended.
    """

    call: Call
    cached: Call
    stats: SeriesStatsCache
    index_has_payload: bool
    open_for: float
    table: str
    layouts: LayoutSource
    runtime: Runtime

    def staleness(self, end: str, *, consistent: bool) -> Staleness:
        """Return how far a read of times before `end` may lag.

        Only closed ranges come from a cache. An open one would lack its latest events, and most
        events after a growth of its layout.
        """
        if consistent:
            return Staleness.NONE
        closed = end <= format_epoch(self.runtime.now() - self.open_for)
        return Staleness.MINUTES if closed and self.cached is not self.call else Staleness.SECONDS

    def layout(self, series: str, staleness: Staleness) -> Layout | None:
        """Return the layout of a series; None if it has none."""
        match staleness:
            case Staleness.NONE:
                return self.layouts.read(series)
            case Staleness.SECONDS:
                return self.layouts.read_eventually(series)
            case Staleness.MINUTES:
                return self.layouts.read_cached(series)

    def events(self, staleness: Staleness) -> Call:
        """Return the port that reads events."""
        return self.cached if staleness is Staleness.MINUTES else self.call


T = TypeVar("T")


class SourceThrottledError(StorageError):
    """A source throttled while the other may be read instead; `throttle` is its answer."""

    def __init__(self, throttle: ThrottledError) -> None:
        super().__init__(throttle.code, throttle.message)
        self.throttle = throttle


class ScanRequests:
    """Sends the requests of one read. Thread-safe; `may_switch` changes between rounds only.

    Attributes:
        may_switch: whether a throttled request fails at once, as SourceThrottledError, because the
            other source may be read instead.
    """

    def __init__(
        self,
        sources: ReadSources,
        series: str,
        staleness: Staleness,
        deadline: float,
        cost: ReadCost,
    ) -> None:
        self._sources = sources
        self._series = series
        self._staleness = staleness
        self._deadline = deadline
        self._cost = cost
        self.may_switch = False

    def to(self, source: Source) -> Call:
        """Return the port that reads a source."""
        return partial(self._send, source)

    def retrying(self, task: Callable[[], T]) -> T:
        """Run a task again while it throttles or fails on its way, until the deadline."""
        return retry_until(self._deadline, task, self._sources.runtime)

    def _send(
        self, source: Source, operation: str, request: Mapping[str, Any], /
    ) -> dict[str, Any]:
        response = self.retrying(partial(self._send_once, source, operation, request))
        self._cost.count(response)
        return response

    def _send_once(
        self, source: Source, operation: str, request: Mapping[str, Any]
    ) -> dict[str, Any]:
        try:
            return self._sources.events(self._staleness)(operation, request)
        except ThrottledError as error:
            self._sources.stats.note_throttle(self._series, source)
            if self.may_switch:
                raise SourceThrottledError(error) from error
            raise
