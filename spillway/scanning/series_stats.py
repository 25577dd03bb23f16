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
_SAMPLE: Final = 16  # records whose sizes are looked at
_AVOIDED_FOR: Final = 5.0  # seconds after a throttle
_BUCKET_BYTES: Final = 13  # that the index's partition key has more than the table's
_NAMES: Final = sum(map(len, (PARTITION_KEY, SORT_KEY, PAYLOAD, INDEX_PARTITION_KEY)))


@dataclass(frozen=True, slots=True)
class SeriesStats:
    """What is known of a series.

    Attributes:
        item_bytes: mean size of a stored event, by DynamoDB's count.
        per_second: events a second of event time in the range read last; None before the first read.
        offsets: seconds from the beginning of a range to events of it, a sample in order; empty where none was taken.
        each: how many events each of the sample stands for.
    """

    item_bytes: float = 200.0
    per_second: float | None = None
    offsets: tuple[float, ...] = ()
    each: int = 1

    def events_in(self, seconds: float) -> float | None:
        """Return how many events a range of so many seconds is expected to hold, None where nothing is known."""
        return None if self.per_second is None else self.per_second * seconds

    def seconds_for(self, events: float) -> float:
        """Return in how many seconds from its beginning a range is expected to hold so many events."""
        if not self.per_second:
            return math.inf
        gap = self.each / self.per_second
        passed = (max(0.0, self.offsets[0] - gap) if self.offsets else 0.0, *self.offsets)
        whole, part = divmod(events / self.each, 1.0)
        at = min(int(whole), len(passed) - 1)
        if at == len(passed) - 1:
            return passed[at] + (events / self.each - at) * gap
        return passed[at] + part * (passed[at + 1] - passed[at])


def mean_bytes(records: Sequence[StoredEvent]) -> float:
    """Return the mean size of stored events as DynamoDB counts it, but for their expiry; by a few of the records."""
    sample = records[:: max(1, len(records) // _SAMPLE)]
    return sum(map(_bytes, sample)) / len(sample)


def _bytes(record: StoredEvent) -> int:
    text = f"{record.partition_key}{record.partition_key}{record.sort_key}{record.payload}"
    return _NAMES + _BUCKET_BYTES + len(text.encode())


class SeriesStatsCache:
    """SeriesStats figures by series, the least recently used forgotten first; thread-safe, no requests."""

    def __init__(self, monotonic: Callable[[], float], max_series: int = _MAX_SERIES) -> None:
        self._monotonic = monotonic
        self._max = max_series
        self._known: OrderedDict[str, SeriesStats] = OrderedDict()
        self._throttled: OrderedDict[tuple[str, Source], float] = OrderedDict()
        self._lock = threading.Lock()

    def of(self, series: str) -> SeriesStats:
        """Return what is known of a series, defaults where nothing is."""
        with self._lock:
            return self._known.get(series, SeriesStats())

    def learn(self, series: str, item_bytes: float | None, per_second: float | None) -> None:
        """Take in what a read has shown; None where it has shown nothing."""
        with self._lock:
            known = self._known.pop(series, SeriesStats())
            if item_bytes is not None:
                known = replace(known, item_bytes=item_bytes)
            if per_second is not None:
                known = replace(known, per_second=per_second)
            self._known[series] = known
            if len(self._known) > self._max:
                self._known.popitem(last=False)

    def note_throttle(self, series: str, source: Source) -> None:
        """Remember that a source throttled reads of a series just now."""
        with self._lock:
            self._throttled[series, source] = self._monotonic()
            self._throttled.move_to_end((series, source))
            if len(self._throttled) > self._max:
                self._throttled.popitem(last=False)

    def avoided(self, series: str) -> Source | None:
        """Return the source that throttled last, within some seconds; None where none did."""
        since = self._monotonic() - _AVOIDED_FOR
        with self._lock:
            recent = [
                (at, source)
                for source in (Source.TABLE, Source.INDEX)
                if (at := self._throttled.get((series, source), since)) > since
            ]
        return max(recent, default=(0.0, None))[1]


def seconds_between(one: str, other: str) -> float:
    """Return the seconds from one position to another, whichever comes first; positions begin with a stored time."""
    return abs(to_epoch(one[:TIME_WIDTH]) - to_epoch(other[:TIME_WIDTH]))


def stats_from_probe(
    stream: PartitionStream, query: ReadQuery, shards: int, known: SeriesStats
) -> SeriesStats:
    """Return what is known of a series after the first page of one of so many shards, since hashing makes all alike."""
    records = stream.buffer
    begin, end = query.start, query.end
    if query.descending:
        begin, end = end, begin
    seconds = seconds_between(begin, end if stream.is_exhausted else stream.reached)
    if not records or not seconds:
        return replace(known, per_second=0.0 if seconds else None)
    offsets = tuple(seconds_between(begin, record.sort_key) for record in records)
    return SeriesStats(mean_bytes(records), shards * len(records) / seconds, offsets, shards)
