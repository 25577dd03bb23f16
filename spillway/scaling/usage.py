"""The usage record: what writers of a series want a second, added up across the fleet. Pure.

One item a series and window of ten seconds, with four numbers a second: the table's units, the index's, the distinct
events, and the variance of these. Writers add samples: a write of n events is recorded with probability p and weight 1/p, so sums are
unbiased, slow writers of a busy series count too, and the item takes a bounded number of updates however busy
the series is. A recorded x adds x^2 (1 - p) / p^2 to the variance (Horvitz and Thompson), which tells when a sum can be trusted.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from spillway.keys import USAGE_EXPIRES, USAGE_KEY, USAGE_SORT_KEY
from spillway.sharding import PARTITION_WCU
from spillway.storage.port import Item

__all__ = [
    "WINDOW",
    "Demand",
    "Sample",
    "add_request",
    "demand_of",
    "get_request",
    "rising_demand_of",
    "sampling_probability",
    "window_of",
]

WINDOW: Final = 10  # seconds
_SECONDS_A_SAMPLE: Final = 0.5  # of what one partition takes: 500 events
_SAMPLES_A_SECOND: Final = 20.0  # of the whole fleet, on one item
_KEPT: Final = 2 * 86_400  # seconds, for the planner that shrinks
_RISING: Final = (1, 2, 3)  # seconds over which a rate that has just risen is looked for
_STEADY: Final = (5, 10)  # the same of a series whose samples are few
_LEAST_PART: Final = 0.25  # of the second under way, for it to count
_MOST_ERROR: Final = 0.35  # standard error of a rate that is good enough to act on, relative to it


@dataclass(frozen=True, slots=True)
class Sample:
    """What writes want: write units of the table and of the index, distinct events, and the variance of the events."""

    table_units: float
    index_units: float
    events: float
    variance: float = 0.0

    def taken_with(self, probability: float) -> "Sample":
        """Return the sample as it counts when it stands for those that were not taken."""
        weight = 1 / probability
        return Sample(
            self.table_units * weight,
            self.index_units * weight,
            self.events * weight,
            self.events**2 * (1 - probability) * weight**2,
        )


@dataclass(frozen=True, slots=True)
class Demand:
    """Rates a second of the whole fleet, and their standard error relative to them."""

    table_units: float
    index_units: float
    events: float
    error: float = 0.0

    @property
    def surely(self) -> "Demand":
        """The rates less one standard error: what to act on while nothing throttles."""
        share = 1 - self.error
        return Demand(self.table_units * share, self.index_units * share, self.events * share)


def sampling_probability(
    events: int, events_a_second: float, partition_wcu: float = PARTITION_WCU
) -> float:
    """Return the probability with which a write of so many events is recorded, by the rate that is known of the series.

    At most one sample for half a second of what a partition takes, on average: two requests for 1,000 events.
    """
    most = min(1.0, events / (_SECONDS_A_SAMPLE * partition_wcu))
    if events_a_second <= 0:
        return most
    return min(most, _SAMPLES_A_SECOND * events / events_a_second)


def window_of(now: float) -> int:
    """Return the start of the window that a time falls into, in epoch seconds."""
    return int(now // WINDOW) * WINDOW


def add_request(table: str, series: str, now: float, sample: Sample) -> dict[str, Any]:
    """Return the UpdateItem that adds a sample to the second it was taken in, and answers with the whole window."""
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


def demand_of(now: float, windows: Mapping[int, Item], least_seconds: int) -> Demand | None:
    """Return the fleet's steady rates at a time, from the windows that are known; None where samples are too few.

    Averages over the shortest time up to now, of `least_seconds` at least, whose sum can be trusted. The second
    under way counts once half of it has passed.
    """
    end = now if now % 1 >= 0.5 else float(int(now))
    last = math.ceil(end) - 1
    begin = min(windows, default=last + 1)
    spans = range(last - least_seconds + 1, begin - 1, -1)
    rates = (_rates(windows, first, end) for first in spans)
    return next((rate for rate in rates if rate is not None), None)


def rising_demand_of(now: float, windows: Mapping[int, Item]) -> Demand | None:
    """Return the highest rates of the last one to three seconds that can be trusted, None where samples are too few.

    For traffic that has just begun, which an average over the silence before it would hide. Only where none of
    these can be trusted, up to ten seconds are averaged.
    """
    ends = [float(int(now))] if now % 1 < _LEAST_PART else [now, float(int(now))]
    for spans in (_RISING, _STEADY):
        rates = [
            _rates(windows, math.ceil(end) - seconds, end) for end in ends for seconds in spans
        ]
        trusted = [rate for rate in rates if rate is not None]
        if trusted:
            return max(trusted, key=lambda rate: rate.events)
    return None


def _rates(windows: Mapping[int, Item], first: int, end: float) -> Demand | None:
    """Return the rates from the second `first` to `end`, None where their sum can't be trusted."""
    total = _sum(windows, first, math.ceil(end) - 1)
    if total.events <= 0 or total.variance**0.5 > _MOST_ERROR * total.events:
        return None
    span = end - first
    rates = (total.table_units / span, total.index_units / span, total.events / span)
    return Demand(*rates, total.variance**0.5 / total.events)


def _sum(windows: Mapping[int, Item], first: int, last: int) -> Sample:
    """Add up the seconds from `first` to `last`, both included."""
    totals = dict.fromkeys("tiev", 0.0)
    for second in range(first, last + 1):
        window = window_of(second)
        item = windows.get(window, {})
        for name in totals:
            value = item.get(f"{name}{second - window}")
            if value is not None:
                totals[name] += float(value["N"])
    return Sample(totals["t"], totals["i"], totals["e"], totals["v"])
