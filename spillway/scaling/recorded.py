"""Recorded usage: the usage table's windows of a series, read back for who plans ahead."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, Final, NamedTuple

from spillway.keys import USAGE_KEY, USAGE_SORT_KEY
from spillway.scaling.usage import WINDOW, Demand, Sample, rising_demand_of, window_of
from spillway.storage.port import Call, Item

__all__ = ["RecordedUsage", "UsageWindow", "peak_of", "recent_peak"]

_MOST_ERROR: Final = 0.1  # standard error of a sum that is taken as it is, relative to it
_MOST_RECENT_ERROR: Final = 0.35  # of a rate that throttling bears out
_LEAST_SECONDS: Final = 2.0  # of a window under way, for its rate to count
_LONGEST: Final = 3_600  # seconds that a rate is averaged over at most


@dataclass(frozen=True, slots=True)
class UsageWindow:
    """What was recorded in the `WINDOW` seconds from `start` (epoch seconds): sums, not rates."""

    start: int
    usage: Sample


class RecordedUsage:
    """Reads windows from the usage table."""

    def __init__(self, call: Call, table: str) -> None:
        self._call = call
        self._table = table

    def windows(self, series: str, since: float, until: float) -> list[UsageWindow]:
        """Return the recorded windows that began in [since, until), oldest first; none in which nobody took a sample.

        Costs half a read unit for each 4 KB and a Query for each MB: of a series that is busy all day, 3 MB, so about
        400 read units and 4 Queries a day. Raises StorageError.
        """
        return [_decoded(item) for item in self._items(series, since, until)]

    def recent(self, series: str, since: float, now: float) -> Demand | None:
        """Return the fleet's highest rates since a time, None where the samples are too few to tell.

        Costs one Query: half a read unit for each 4 KB, about 2 for five minutes. Raises StorageError.
        """
        items = self._items(series, window_of(since), now)
        rising = rising_demand_of(now, {int(each[USAGE_SORT_KEY]["N"]): each for each in items})
        peak = recent_peak([_decoded(each) for each in items], now)
        known = [demand for demand in (rising, peak) if demand is not None]
        return max(known, key=lambda demand: demand.events, default=None)

    def _items(self, series: str, since: float, until: float) -> list[Item]:
        low, high = math.ceil(since), math.ceil(until) - 1
        if low > high:
            return []
        request = _request(self._table, series, low, high)
        found: list[Item] = []
        while True:
            answer = self._call("Query", request)
            found += answer["Items"]
            if "LastEvaluatedKey" not in answer:
                return found
            request = {**request, "ExclusiveStartKey": answer["LastEvaluatedKey"]}


def _request(table: str, series: str, low: int, high: int) -> dict[str, Any]:
    return {
        "TableName": table,
        "KeyConditionExpression": "#p = :p AND #s BETWEEN :low AND :high",
        "ExpressionAttributeNames": {"#p": USAGE_KEY, "#s": USAGE_SORT_KEY},
        "ExpressionAttributeValues": {
            ":p": {"S": series},
            ":low": {"N": str(low)},
            ":high": {"N": str(high)},
        },
    }


def _decoded(item: Item) -> UsageWindow:
    totals = (
        sum(
            float(item[name]["N"])
            for second in range(WINDOW)
            if (name := f"{kind}{second}") in item
        )
        for kind in "tiev"
    )
    return UsageWindow(int(item[USAGE_SORT_KEY]["N"]), Sample(*totals))


def peak_of(windows: Sequence[UsageWindow]) -> Demand:
    """Return the highest rates a second of the fleet in windows that are in order; 0 where there are none.

    A window whose samples are too few to be trusted counts together with those before it, up to an hour, so that
    the sample which stands for many events that came far apart is no peak.
    """
    sums = _Sums.of(windows)
    table = index = events = 0.0
    for last in range(len(windows)):
        first, seconds = _span(windows, sums, last)
        table = max(table, (sums.table_units[last + 1] - sums.table_units[first]) / seconds)
        index = max(index, (sums.index_units[last + 1] - sums.index_units[first]) / seconds)
        events = max(events, (sums.events[last + 1] - sums.events[first]) / seconds)
    return Demand(table, index, events)


def recent_peak(windows: Sequence[UsageWindow], now: float) -> Demand | None:
    """Return the highest rates of single windows that can be trusted, else the mean of all, else None."""
    rates = [_rate((each,), each.start, now) for each in windows]
    known = [rate for rate in rates if rate is not None]
    if known or not windows:
        return max(known, key=lambda rate: rate.events, default=None)
    return _rate(windows, windows[0].start, now)


def _rate(windows: Sequence[UsageWindow], begin: float, now: float) -> Demand | None:
    """Return the rates of windows, of those under way up to now; None where they can't be trusted."""
    seconds = min(windows[-1].start + WINDOW, now) - begin
    events = sum(each.usage.events for each in windows)
    error = sum(each.usage.variance for each in windows) ** 0.5
    if seconds < _LEAST_SECONDS or events <= 0 or error > _MOST_RECENT_ERROR * events:
        return None
    table = sum(each.usage.table_units for each in windows)
    index = sum(each.usage.index_units for each in windows)
    return Demand(table / seconds, index / seconds, events / seconds, error / events)


class _Sums(NamedTuple):
    """Sums of what lies before each window, so that any span's is a difference."""

    table_units: list[float]
    index_units: list[float]
    events: list[float]
    variance: list[float]

    @classmethod
    def of(cls, windows: Sequence[UsageWindow]) -> "_Sums":
        usages = [each.usage for each in windows]
        return cls(
            list(accumulate((usage.table_units for usage in usages), initial=0.0)),
            list(accumulate((usage.index_units for usage in usages), initial=0.0)),
            list(accumulate((usage.events for usage in usages), initial=0.0)),
            list(accumulate((usage.variance for usage in usages), initial=0.0)),
        )


def _span(windows: Sequence[UsageWindow], sums: _Sums, last: int) -> tuple[int, int]:
    """Return the first window of the shortest time up to the last one whose sum can be trusted, and that time.

    Tries times that grow by a third.
    """
    end = windows[last].start + WINDOW
    events, variance = sums.events[last + 1], sums.variance[last + 1]
    first = tried = last
    while first >= 0 and end - windows[first].start <= _LONGEST:
        error = _MOST_ERROR * (events - sums.events[first])
        if variance - sums.variance[first] <= error * error:
            return first, end - windows[first].start
        tried, first = first, first - max(1, (last - first + 1) // 3)
    return tried, _LONGEST
