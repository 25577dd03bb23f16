"""The usage table: samples go in, the fleet's rates come out."""

import math
from collections.abc import Callable
from typing import Any, Final

from spillway.memo import Memo
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
from spillway.storage.port import Call, Item, StorageError

__all__ = ["UsageRecorder"]

_HALF_LIFE: Final = 60.0  # seconds, of a rate that was seen: a series gone quiet is sampled more
_STEADY: Final = 3  # seconds that a rate is averaged over before anything throttles


class UsageRecorder:
    """Records what this process wants to write and reads what all want. Thread-safe.

    Losing a sample loses precision, never data: failures of the usage table are counted in `failures`.
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
        try:
            answer = self._counted("UpdateItem", add_request(self._table, series, now, sample))
        except StorageError:
            return None
        item = answer.get("Attributes", {})
        return self._remembered(series, now, demand_of(now, {window_of(now): item}, _STEADY))

    def demand(self, series: str) -> Demand | None:
        """Return the fleet's highest rates of the last seconds, None where the samples are too few to tell.

        Costs two GetItems. Raises StorageError where neither is answered.
        """
        now = self._now()
        windows: dict[int, Item] = {}
        failure: StorageError | None = None
        for start in (window_of(now), window_of(now - WINDOW)):
            try:
                answer = self._counted("GetItem", get_request(self._table, series, start))
                windows[start] = answer.get("Item", {})
            except StorageError as error:
                failure = error
        if failure is not None and not windows:
            raise failure
        return self._remembered(series, now, rising_demand_of(now, windows))

    def _counted(self, operation: str, request: dict[str, Any]) -> dict[str, Any]:
        try:
            return self._call(operation, request)
        except StorageError:
            self.failures += 1
            raise

    def _rate(self, series: str, now: float) -> float:
        rate, at = self._rates.get(series) or (0.0, now)
        return rate * math.exp2(-max(0.0, now - at) / _HALF_LIFE)

    def _remembered(self, series: str, now: float, demand: Demand | None) -> Demand | None:
        if demand is not None:
            self._rates.put(series, (demand.events, now))
        return demand
