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
    """How old what a read sees may be."""

    NONE = auto()  # every write acknowledged before is seen
    SECONDS = auto()  # the process cache's time to live, and DynamoDB's lag
    MINUTES = auto()  # that, and the time to live of a cache before DynamoDB


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadSources:
    """Where reads find layouts and events.

    Attributes:
        call: DynamoDB.
        cached: DynamoDB by way of a cache, for reads that may lag; `call` where there is none.
        experience: what reads have shown of their series.
        index_has_payload: whether reads from the index return whole events.
        open_for: seconds after which nothing is expected to be added to a range that has ended.
    """

    call: Call
    cached: Call
    experience: SeriesStatsCache
    index_has_payload: bool
    open_for: float
    table: str
    layouts: LayoutSource
    runtime: Runtime

    def age(self, end: str, *, consistent: bool) -> Staleness:
        """Return how old what is read of times before `end` may be: only closed ranges come from a cache.

        An open one would lack its latest events, after a growth of its layout most of them.
        """
        if consistent:
            return Staleness.NONE
        closed = end <= format_epoch(self.runtime.now() - self.open_for)
        return Staleness.MINUTES if closed and self.cached is not self.call else Staleness.SECONDS

    def layout(self, series: str, age: Staleness) -> Layout | None:
        """Return the layout, None where the series has none."""
        match age:
            case Staleness.NONE:
                return self.layouts.read(series)
            case Staleness.SECONDS:
                return self.layouts.read_eventually(series)
            case Staleness.MINUTES:
                return self.layouts.read_cached(series)

    def events(self, age: Staleness) -> Call:
        """Return the way to the events."""
        return self.cached if age is Staleness.MINUTES else self.call


T = TypeVar("T")


class SourceThrottledError(StorageError):
    """A source throttled while another could be asked; `throttle` is what it answered."""

    def __init__(self, throttle: ThrottledError) -> None:
        super().__init__(throttle.code, throttle.message)
        self.throttle = throttle


class ScanRequests:
    """The requests of one read. Used by many threads; `switchable` changes between rounds only.

    Attributes:
        switchable: whether a throttled request fails at once, as SourceThrottledError, since another source may answer.
    """

    def __init__(
        self, sources: ReadSources, series: str, age: Staleness, deadline: float, spent: ReadCost
    ) -> None:
        self._sources = sources
        self._series = series
        self._age = age
        self._deadline = deadline
        self._spent = spent
        self.switchable = False

    def to(self, source: Source) -> Call:
        """Return the way to the events of a source."""
        return partial(self._send, source)

    def retrying(self, task: Callable[[], T]) -> T:
        """Run a task again while it throttles or fails on its way, until the deadline."""
        return retry_until(self._deadline, task, self._sources.runtime)

    def _send(
        self, source: Source, operation: str, request: Mapping[str, Any], /
    ) -> dict[str, Any]:
        response = self.retrying(partial(self._once, source, operation, request))
        self._spent.count(response)
        return response

    def _once(self, source: Source, operation: str, request: Mapping[str, Any]) -> dict[str, Any]:
        try:
            return self._sources.events(self._age)(operation, request)
        except ThrottledError as error:
            self._sources.experience.note_throttle(self._series, source)
            if self.switchable:
                raise SourceThrottledError(error) from error
            raise
