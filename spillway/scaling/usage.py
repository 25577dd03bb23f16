"""The usage table: sampled write demand of each series, summed over the fleet."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, Final, NamedTuple

from spillway.dynamodb.port import Call, Item, StorageError
from spillway.keys import USAGE_EXPIRES, USAGE_KEY, USAGE_SORT_KEY
from spillway.memo import Memo
from spillway.sharding import PARTITION_WCU

__all__ = [
    "WINDOW",
    "UsageReader",
    "UsageRecorder",
    "UsageSample",
    "UsageWindow",
    "WriteDemand",
    "add_request",
    "get_request",
    "peak_demand",
    "recent_peak",
    "rising_demand",
    "sampling_probability",
    "steady_demand",
    "window_of",
]


WINDOW: Final = 10  # seconds
_SECONDS_A_SAMPLE: Final = 0.5  # of what one partition takes: 500 events
_SAMPLES_A_SECOND: Final = 20.0  # of the whole fleet, on one item
_KEPT: Final = 2 * 86_400  # seconds, for the planner that shrinks
_RISING: Final = (1, 2, 3)  # seconds over which a rate that has just risen is looked for
_STEADY: Final = (5, 10)  # the same of a series whose samples are few
_MIN_PART: Final = 0.25  # of the second under way, for it to count
_MAX_ERROR: Final = 0.35  # standard error of a rate that is good enough to act on, relative to it


@dataclass(frozen=True, slots=True)
class UsageSample:
    """Demand of writes: units of table and index, distinct events, and the events' variance."""

    table_units: float
    index_units: float
    events: float
    variance: float = 0.0

    def extrapolated(self, probability: float) -> "UsageSample":
        """Return the sample scaled up to stand for those that were not taken."""
        weight = 1 / probability
        return UsageSample(
            self.table_units * weight,
            self.index_units * weight,
            self.events * weight,
            self.events**2 * (1 - probability) * weight**2,
        )


@dataclass(frozen=True, slots=True)
class WriteDemand:
    """Rates a second of the whole fleet, and their standard error relative to them."""

    table_units: float
    index_units: float
    events: float
    error: float = 0.0

    @property
    def lower_bound(self) -> "WriteDemand":
        """The rates less one standard error, to act on while nothing throttles."""
        share = 1 - self.error
        return WriteDemand(self.table_units * share, self.index_units * share, self.events * share)


def sampling_probability(
    events: int, events_a_second: float, partition_wcu: float = PARTITION_WCU
) -> float:
    """Return the probability of recording a write of `events`, by the series' known rate.

    At most one sample for half a second of what a partition takes, on average: two requests for
    1,000 events.
    """
    most = min(1.0, events / (_SECONDS_A_SAMPLE * partition_wcu))
    if events_a_second <= 0:
        return most
    return min(most, _SAMPLES_A_SECOND * events / events_a_second)


def window_of(now: float) -> int:
    """Return the start of the window that a time falls into, in epoch seconds."""
    return int(now // WINDOW) * WINDOW


def add_request(table: str, series: str, now: float, sample: UsageSample) -> dict[str, Any]:
    """Return the UpdateItem that adds a sample to its second and answers with the window."""
    window = window_of(now)
    second = int(now) - window
    return {
        "TableName": table,
        "Key": _key(series, window),
        "UpdateExpression": "SET #x = :x ADD #t :t, #i :i, #e :e, #v :v",
        "ExpressionAttributeNames": {
            "#x": USAGE_EXPIRES,
            "#t": f"t{second}",
            "#i": f"i{second}",
            "#e": f"e{second}",
            "#v": f"v{second}",
        },
        "ExpressionAttributeValues": {
            ":x": {"N": str(window + _KEPT)},
            ":t": {"N": _number(sample.table_units)},
            ":i": {"N": _number(sample.index_units)},
            ":e": {"N": _number(sample.events)},
            ":v": {"N": _number(sample.variance)},
        },
        "ReturnValues": "ALL_NEW",
    }


def get_request(table: str, series: str, window: int) -> dict[str, Any]:
    """Return the GetItem of one window."""
    return {"TableName": table, "Key": _key(series, window)}


def _key(series: str, window: int) -> Item:
    return {USAGE_KEY: {"S": series}, USAGE_SORT_KEY: {"N": str(window)}}


def _number(value: float) -> str:
    return f"{value:.3f}"


def steady_demand(now: float, windows: Mapping[int, Item], min_seconds: int) -> WriteDemand | None:
    """Return the fleet's steady rates at a time, None where samples are too few.

    Averages over the shortest time up to now, of `min_seconds` at least, whose sum can be trusted.
    The second under way counts once half of it has passed.
    """
    end = now if now % 1 >= 0.5 else float(int(now))
    last = math.ceil(end) - 1
    begin = min(windows, default=last + 1)
    spans = range(last - min_seconds + 1, begin - 1, -1)
    rates = (_rates(windows, first, end) for first in spans)
    return next((rate for rate in rates if rate is not None), None)


def rising_demand(now: float, windows: Mapping[int, Item]) -> WriteDemand | None:
    """Return the highest trusted rates of the last one to three seconds, None without any.

    For traffic that has just begun, which an average over the silence before it would hide. Only
    where none of these can be trusted, up to ten seconds are averaged.
    """
    ends = [float(int(now))] if now % 1 < _MIN_PART else [now, float(int(now))]
    for spans in (_RISING, _STEADY):
        rates = [
            _rates(windows, math.ceil(end) - seconds, end) for end in ends for seconds in spans
        ]
        trusted = [rate for rate in rates if rate is not None]
        if trusted:
            return max(trusted, key=lambda rate: rate.events)
    return None


def _rates(windows: Mapping[int, Item], first: int, end: float) -> WriteDemand | None:
    """Return the rates from the second `first` to `end`, None where their sum can't be trusted."""
    total = _sum(windows, first, math.ceil(end) - 1)
    if total.events <= 0 or total.variance**0.5 > _MAX_ERROR * total.events:
        return None
    span = end - first
    rates = (total.table_units / span, total.index_units / span, total.events / span)
    return WriteDemand(*rates, total.variance**0.5 / total.events)


def _sum(windows: Mapping[int, Item], first: int, last: int) -> UsageSample:
    """Add up the seconds from `first` to `last`, both included."""
    totals = dict.fromkeys("tiev", 0.0)
    for second in range(first, last + 1):
        window = window_of(second)
        item = windows.get(window, {})
        for name in totals:
            value = item.get(f"{name}{second - window}")
            if value is not None:
                totals[name] += float(value["N"])
    return UsageSample(totals["t"], totals["i"], totals["e"], totals["v"])


_HALF_LIFE: Final = 60.0  # seconds, of a known rate: a quiet series is sampled more
_STEADY_SECONDS: Final = 3  # seconds that a rate is averaged over before anything throttles


class UsageRecorder:
    """Records the write demand of this process and reads the fleet's. Thread-safe.

    Losing a sample loses precision, never data: failures of the usage table are counted in
    `failures`.
    """

    def __init__(
        self,
        call: Call,
        table: str,
        now: Callable[[], float],
        random: Callable[[], float],
        partition_wcu: float = PARTITION_WCU,
    ) -> None:
        self._call = call
        self._table = table
        self._now = now
        self._random = random
        self._partition_wcu = partition_wcu
        self._rates: Memo[tuple[float, float]] = Memo()  # events a second, and when that was known
        self.failures = 0

    def record(
        self, series: str, events: int, measure: Callable[[], UsageSample]
    ) -> WriteDemand | None:
        """Record a write of `events` distinct events by chance; return the fleet's rates if it did.

        Costs two UpdateItems for 1,000 events on average, less for a busy series. The rates are
        steady ones, over three seconds at least, and None in the first seconds of a window.
        """
        now = self._now()
        probability = sampling_probability(events, self._rate(series, now), self._partition_wcu)
        if self._random() >= probability:
            return None
        sample = measure().extrapolated(probability)
        try:
            answer = self._call_and_count(
                "UpdateItem", add_request(self._table, series, now, sample)
            )
        except StorageError:
            return None
        item = answer.get("Attributes", {})
        return self._remember(
            series, now, steady_demand(now, {window_of(now): item}, _STEADY_SECONDS)
        )

    def demand(self, series: str) -> WriteDemand | None:
        """Return the fleet's highest rates of the last seconds, None where samples are too few.

        Costs two GetItems. Raises StorageError where neither is answered.
        """
        now = self._now()
        windows: dict[int, Item] = {}
        failure: StorageError | None = None
        for start in (window_of(now), window_of(now - WINDOW)):
            try:
                answer = self._call_and_count("GetItem", get_request(self._table, series, start))
                windows[start] = answer.get("Item", {})
            except StorageError as error:
                failure = error
        if failure is not None and not windows:
            raise failure
        return self._remember(series, now, rising_demand(now, windows))

    def _call_and_count(self, operation: str, request: dict[str, Any]) -> dict[str, Any]:
        try:
            return self._call(operation, request)
        except StorageError:
            self.failures += 1
            raise

    def _rate(self, series: str, now: float) -> float:
        rate, at = self._rates.get(series) or (0.0, now)
        return rate * math.exp2(-max(0.0, now - at) / _HALF_LIFE)

    def _remember(self, series: str, now: float, demand: WriteDemand | None) -> WriteDemand | None:
        if demand is not None:
            self._rates.put(series, (demand.events, now))
        return demand


_MAX_WINDOW_ERROR: Final = 0.1  # standard error of a sum that is taken as it is, relative to it
_MAX_RECENT_ERROR: Final = 0.35  # of a rate that throttling bears out
_MIN_SECONDS: Final = 2.0  # of a window under way, for its rate to count
_LONGEST: Final = 3_600  # seconds that a rate is averaged over at most


@dataclass(frozen=True, slots=True)
class UsageWindow:
    """What was recorded in the `WINDOW` seconds from `start` (epoch seconds): sums, not rates."""

    start: int
    usage: UsageSample


class UsageReader:
    """Reads windows from the usage table."""

    def __init__(self, call: Call, table: str) -> None:
        self._call = call
        self._table = table

    def windows(self, series: str, since: float, until: float) -> list[UsageWindow]:
        """Return the recorded windows that began in [since, until), oldest first.

        Costs half a read unit for each 4 KB and a Query for each MB: of a series that is busy all
        day, 3 MB, so about 400 read units and 4 Queries a day. Raises StorageError.
        """
        return [_decode(item) for item in self._items(series, since, until)]

    def recent(self, series: str, since: float, now: float) -> WriteDemand | None:
        """Return the fleet's highest rates since a time, None where samples are too few.

        Costs one Query: half a read unit for each 4 KB, about 2 for five minutes. Raises
        StorageError.
        """
        items = self._items(series, window_of(since), now)
        rising = rising_demand(now, {int(each[USAGE_SORT_KEY]["N"]): each for each in items})
        peak = recent_peak([_decode(each) for each in items], now)
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


def _decode(item: Item) -> UsageWindow:
    totals = (
        sum(
            float(item[name]["N"])
            for second in range(WINDOW)
            if (name := f"{kind}{second}") in item
        )
        for kind in "tiev"
    )
    return UsageWindow(int(item[USAGE_SORT_KEY]["N"]), UsageSample(*totals))


def peak_demand(windows: Sequence[UsageWindow]) -> WriteDemand:
    """Return the fleet's highest rates in windows that are in order; 0 without windows.

    A window whose samples are too few to be trusted counts together with those before it, up to an
    hour, so that the sample which stands for many events that came far apart is no peak.
    """
    sums = _Sums.of(windows)
    table = index = events = 0.0
    for last in range(len(windows)):
        first, seconds = _span(windows, sums, last)
        table = max(table, (sums.table_units[last + 1] - sums.table_units[first]) / seconds)
        index = max(index, (sums.index_units[last + 1] - sums.index_units[first]) / seconds)
        events = max(events, (sums.events[last + 1] - sums.events[first]) / seconds)
    return WriteDemand(table, index, events)


def recent_peak(windows: Sequence[UsageWindow], now: float) -> WriteDemand | None:
    """Return the highest trusted rates of single windows, else the mean of all, else None."""
    rates = [_rate((each,), each.start, now) for each in windows]
    known = [rate for rate in rates if rate is not None]
    if known or not windows:
        return max(known, key=lambda rate: rate.events, default=None)
    return _rate(windows, windows[0].start, now)


def _rate(windows: Sequence[UsageWindow], begin: float, now: float) -> WriteDemand | None:
    """Return the rates of windows up to now, None where they can't be trusted."""
    seconds = min(windows[-1].start + WINDOW, now) - begin
    events = sum(each.usage.events for each in windows)
    error = sum(each.usage.variance for each in windows) ** 0.5
    if seconds < _MIN_SECONDS or events <= 0 or error > _MAX_RECENT_ERROR * events:
        return None
    table = sum(each.usage.table_units for each in windows)
    index = sum(each.usage.index_units for each in windows)
    return WriteDemand(table / seconds, index / seconds, events / seconds, error / events)


class _Sums(NamedTuple):
    """Sums before each window, so that the sum of any span is a difference."""

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
    """Return the first window of the shortest time whose sum can be trusted, and that time.

    Tries times that grow by a third.
    """
    end = windows[last].start + WINDOW
    events, variance = sums.events[last + 1], sums.variance[last + 1]
    first = tried = last
    while first >= 0 and end - windows[first].start <= _LONGEST:
        error = _MAX_WINDOW_ERROR * (events - sums.events[first])
        if variance - sums.variance[first] <= error * error:
            return first, end - windows[first].start
        tried, first = first, first - max(1, (last - first + 1) // 3)
    return tried, _LONGEST
