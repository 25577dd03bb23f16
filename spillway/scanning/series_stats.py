"""Statistics of series that earlier reads observed: event size, density and recent throttles."""

import math
import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from spillway.keys import INDEX_PARTITION_KEY, PARTITION_KEY, PAYLOAD, SORT_KEY, TIME_WIDTH
from spillway.scanning.query import ReadQuery, Source
from spillway.scanning.streams import PartitionStream, StoredEvent
from spillway.timestamps import to_epoch

__all__ = ["SeriesStats", "SeriesStatsCache", "mean_bytes", "seconds_between", "stats_from_probe"]


_MAX_SERIES: Final = 10_000
_SAMPLE: Final = 16  # records whose sizes are measured
_AVOID_SECONDS: Final = 5.0  # after a throttle
_BUCKET_BYTES: Final = 13  # by which the index's partition key is longer than the table's
_NAMES: Final = sum(map(len, (PARTITION_KEY, SORT_KEY, PAYLOAD, INDEX_PARTITION_KEY)))


@dataclass(frozen=True, slots=True)
class SeriesStats:
    """What earlier reads observed of a series.

    Attributes:
        item_bytes: mean size of a stored event, by DynamoDB's count.
        per_second: events a second of event time in the range read last; None before a read.
        offsets: seconds from the start of a range to some of its events, in order; may be empty.
        events_per_offset: how many events each offset stands for.
    """

    item_bytes: float = 200.0
    per_second: float | None = None
    offsets: tuple[float, ...] = ()
    events_per_offset: int = 1

    def events_in(self, seconds: float) -> float | None:
        """Return how many events a range is expected to hold; None without statistics."""
        return None if self.per_second is None else self.per_second * seconds

    def seconds_for(self, events: float) -> float:
        """Return the seconds from its start in which a range is expected to hold `events`."""
        if not self.per_second:
            return math.inf
        gap = self.events_per_offset / self.per_second
        offsets = (max(0.0, self.offsets[0] - gap) if self.offsets else 0.0, *self.offsets)
        whole, part = divmod(events / self.events_per_offset, 1.0)
        index = min(int(whole), len(offsets) - 1)
        if index == len(offsets) - 1:
            return offsets[index] + (events / self.events_per_offset - index) * gap
        return offsets[index] + part * (offsets[index + 1] - offsets[index])


def mean_bytes(records: Sequence[StoredEvent]) -> float:
    """Return the mean size of a sample of records, as DynamoDB counts it without expiry."""
    sample = records[:: max(1, len(records) // _SAMPLE)]
    return sum(map(_bytes, sample)) / len(sample)


def _bytes(record: StoredEvent) -> int:
    text = f"{record.partition_key}{record.partition_key}{record.sort_key}{record.payload}"
    return _NAMES + _BUCKET_BYTES + len(text.encode())


class SeriesStatsCache:
    """Statistics by series. Thread-safe. The least recently learned series is dropped first."""

    def __init__(self, monotonic: Callable[[], float], max_series: int = _MAX_SERIES) -> None:
        self._monotonic = monotonic
        self._max = max_series
        self._stats: OrderedDict[str, SeriesStats] = OrderedDict()
        self._throttled: OrderedDict[tuple[str, Source], float] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, series: str) -> SeriesStats:
        """Return the statistics of a series, defaults if it has none."""
        with self._lock:
            return self._stats.get(series, SeriesStats())

    def learn(self, series: str, item_bytes: float | None, per_second: float | None) -> None:
        """Add what a read observed; None leaves a figure as it is."""
        with self._lock:
            stats = self._stats.pop(series, SeriesStats())
            if item_bytes is not None:
                stats = replace(stats, item_bytes=item_bytes)
            if per_second is not None:
                stats = replace(stats, per_second=per_second)
            self._stats[series] = stats
            if len(self._stats) > self._max:
                self._stats.popitem(last=False)

    def note_throttle(self, series: str, source: Source) -> None:
        """Remember that a source throttled reads of a series just now."""
        with self._lock:
            self._throttled[series, source] = self._monotonic()
            self._throttled.move_to_end((series, source))
            if len(self._throttled) > self._max:
                self._throttled.popitem(last=False)

    def throttled_source(self, series: str) -> Source | None:
        """Return the source that throttled last within 5 seconds; None if none did."""
        since = self._monotonic() - _AVOID_SECONDS
        with self._lock:
            recent = [
                (time, source)
                for source in (Source.TABLE, Source.INDEX)
                if (time := self._throttled.get((series, source), since)) > since
            ]
        return max(recent, default=(0.0, None))[1]


def seconds_between(one: str, other: str) -> float:
    """Return the seconds between two positions, which begin with a stored time."""
    return abs(to_epoch(one[:TIME_WIDTH]) - to_epoch(other[:TIME_WIDTH]))


def stats_from_probe(
    stream: PartitionStream, query: ReadQuery, shards: int, stats: SeriesStats
) -> SeriesStats:
    """Return statistics after the first page of one of `shards`, since hashing makes all alike."""
    records = stream.buffer
    begin, end = query.start, query.end
    if query.descending:
        begin, end = end, begin
    seconds = seconds_between(begin, end if stream.is_exhausted else stream.reached)
    if not records or not seconds:
        return replace(stats, per_second=0.0 if seconds else None)
    offsets = tuple(seconds_between(begin, record.sort_key) for record in records)
    return SeriesStats(mean_bytes(records), shards * len(records) / seconds, offsets, shards)
