"""One pass over a range: the layout and the first queries at once, then the merge as far as it is read."""

import math
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any, Final, TypeVar

from spillway.backoff import retry_until
from spillway.keys import partition_key
from spillway.layouts.model import Layout
from spillway.reading.copies import without_copies
from spillway.reading.fanout import Partition, partitions_of
from spillway.reading.merge import merge
from spillway.reading.query import ReadQuery, Source
from spillway.reading.sources import Sources
from spillway.reading.stream import QueryTemplate, Record, Stream

__all__ = ["Scan"]

T = TypeVar("T")

_SLACK: Final = 1.3  # over an even share of the page, so that most pages need one round
_LEAST_LIMIT: Final = 20  # items of 200 bytes that the cheapest Query returns at no further cost


class Scan:
    """A read of a range from a cursor on; used once. Raises StorageError where DynamoDB fails until its time is up.

    `wanted` is how many events the caller will take, `timeout` seconds. A range that holds little of what is asked
    for is left off at half of that time, so that its requests, which may need retries, still have the other half.

    Attributes:
        left_off: where to go on after a range that took too long; None where it was read to its end.
    """

    def __init__(
        self, sources: Sources, query: ReadQuery, after: str | None, wanted: int, timeout: float
    ) -> None:
        self._sources = sources
        self._query = query.narrowed(after)
        self._template = QueryTemplate(sources.table, query, after)
        self._age = sources.age(self._query.end, consistent=query.consistent)
        self._wanted = wanted
        began = sources.runtime.monotonic()
        self._patience = began + timeout / 2
        self._deadline = began + timeout
        self.left_off: str | None = None
        self._started: dict[str, Stream] = {}
        self._width = 1

    def events(self) -> Iterator[Record]:
        """Yield the unexpired events in order, each once."""
        layout = self._start()
        if layout is None:
            return
        now = self._sources.runtime.now()
        runs = merge(
            partitions_of(layout, self._query),
            self._open,
            self._fetch,
            descending=self._query.descending,
        )
        for run in runs:
            for record in without_copies(run.records, self._query.series, layout):
                if record.expires is None or record.expires > now:
                    yield record
            if run.upto is not None and self._sources.runtime.monotonic() >= self._patience:
                self.left_off = run.upto
                return

    def _start(self) -> Layout | None:
        """Read the layout, and at the same time the first page of what the cached one names."""
        streams = [self._open(partition) for partition in self._guess()]
        self._width = max(1, len(streams))
        load = partial(self._sources.layout, self._query.series, self._age)
        fetches = [partial(stream.fetch, self._limit()) for stream in streams]
        tasks: list[Callable[[], Layout | None]] = [partial(self._retrying, load), *fetches]
        layout = self._sources.runtime.parallel(tasks)[0]
        self._started = {stream.partition.key: stream for stream in streams}
        return layout

    def _guess(self) -> list[Partition]:
        if self._query.source is Source.INDEX:
            return []
        known = self._sources.layouts.known(self._query.series)
        if known is not None:
            return list(partitions_of(known, self._query))
        if self._query.sharding_key is not None:
            return []
        # Every series has shard 0, whatever its layout.
        bound = self._query.end if self._query.descending else self._query.start
        return [Partition(partition_key(self._query.series, 0), bound, on_index=False)]

    def _open(self, partition: Partition) -> Stream:
        started = self._started.pop(partition.key, None)
        return started or Stream(self._call, self._template, partition)

    def _fetch(self, streams: list[Stream]) -> None:
        self._width = max(self._width, len(streams))
        limit = self._limit()
        self._sources.runtime.parallel([partial(stream.fetch, limit) for stream in streams])

    def _limit(self) -> int:
        """Return how many items to ask of each partition: its share of the page, and one to see whether more follow.

        The index keeps the last event of a page back, until all its copies are there: one more.
        """
        further = 2 if self._query.source is Source.INDEX else 1
        if self._query.sharding_key is not None:
            return 1_000  # most may belong to other keys of the shard
        if self._width == 1:
            return self._wanted + further
        return max(_LEAST_LIMIT, math.ceil(self._wanted * _SLACK / self._width) + further)

    def _call(self, operation: str, request: Mapping[str, Any], /) -> dict[str, Any]:
        return self._retrying(partial(self._sources.events(self._age), operation, request))

    def _retrying(self, task: Callable[[], T]) -> T:
        return retry_until(self._deadline, task, self._sources.runtime)
