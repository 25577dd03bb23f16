"""The usage table: samples go in, the fleet's rates come out."""

import math
from collections.abc import Callable
from typing import Any, Final

from spillway.scaling.usage import (
    WINDOW,
    Demand,
    Sample,
    add_request,
    demand_of,
    get_request,
    rising_demand_of,
    sampling_probability,
    window_of,
)
from spillway.sharding import PARTITION_WCU
from spillway.storage.port import Call, StorageError

__all__ = ["UsageRecorder"]

_MOST_SERIES: Final = 10_000
_HALF_LIFE: Final = 60.0  # seconds, of a rate that was seen: a series gone quiet is sampled more
_STEADY: Final = 3  # seconds that a rate is averaged over before anything throttles


class UsageRecorder:
    """Records what this process wants to write and reads what all want. Thread-safe.

    Losing a sample loses precision, never data: failures of the usage table are counted in `failures` and pass.
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
        self._rates: dict[str, tuple[float, float]] = {}  # events a second, and when that was known
        self.failures = 0

    def record(self, series: str, events: int, measure: Callable[[], Sample]) -> Demand | None:
        """Record a write of so many distinct events by chance; return the fleet's rates where that was done.

        Costs two UpdateItems for 1,000 events on average, less for a busy series. The rates are steady ones, over
        three seconds at least, and None in the first seconds of a window.
        """
        now = self._now()
        probability = sampling_probability(events, self._rate(series, now), self._partition_wcu)
        if self._random() >= probability:
            return None
        sample = measure().taken_with(probability)
        answer = self._asked("UpdateItem", add_request(self._table, series, now, sample))
        item = answer.get("Attributes", {})
        return self._remembered(series, now, demand_of(now, {window_of(now): item}, _STEADY))

    def demand(self, series: str) -> Demand | None:
        """Return the fleet's rates of the last seconds, the highest. Costs two GetItems."""
        now = self._now()
        starts = (window_of(now), window_of(now - WINDOW))
        windows = {
            start: self._asked("GetItem", get_request(self._table, series, start)).get("Item", {})
            for start in starts
        }
        return self._remembered(series, now, rising_demand_of(now, windows))

    def _asked(self, operation: str, request: dict[str, Any]) -> dict[str, Any]:
        try:
            return self._call(operation, request)
        except StorageError:
            self.failures += 1
            return {}

    def _rate(self, series: str, now: float) -> float:
        rate, at = self._rates.get(series, (0.0, now))
        return rate * math.exp2(-max(0.0, now - at) / _HALF_LIFE)

    def _remembered(self, series: str, now: float, demand: Demand | None) -> Demand | None:
        if len(self._rates) > _MOST_SERIES:
            self._rates.clear()
        if demand is not None:
            self._rates[series] = demand.events, now
        return demand
