"""How one read sends its requests: tried again until its deadline, counted, throttles remembered."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, TypeVar

from spillway.backoff import retry_until
from spillway.reading.query import Source
from spillway.reading.sources import Age, Sources
from spillway.reading.spent import Spent
from spillway.storage.port import Call, StorageError, ThrottledError

__all__ = ["Requests", "SourceThrottledError"]

T = TypeVar("T")


class SourceThrottledError(StorageError):
    """A source throttled while another could be asked; `throttle` is what it answered."""

    def __init__(self, throttle: ThrottledError) -> None:
        super().__init__(throttle.code, throttle.message)
        self.throttle = throttle


class Requests:
    """The requests of one read. Used by many threads; `switchable` changes between rounds only.

    Attributes:
        switchable: whether a throttled request fails at once, as SourceThrottledError, since another source may answer.
    """

    def __init__(
        self, sources: Sources, series: str, age: Age, deadline: float, spent: Spent
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
