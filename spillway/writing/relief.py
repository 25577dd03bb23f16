"""Relief for throttled writes: find out why, grow where that helps, report where it does not."""

from collections.abc import Sequence
from functools import partial
from typing import Final

from spillway.backoff import call_until
from spillway.limiters import IntervalLimiter
from spillway.runtime import Runtime
from spillway.scaling.capacity import CapacityCheck
from spillway.scaling.grower import Grower
from spillway.scaling.observation import Cause
from spillway.scaling.pressure import Pressure, Throttled
from spillway.storage.port import Call, ThrottledError
from spillway.writing.prepared import PreparedEvent
from spillway.writing.probes import Probed, guess, probe

__all__ = ["Relief"]

_PROBE_EVERY: Final = 0.2  # seconds, a series and process


class Relief:
    """What a writer does about the events that an attempt left throttled.

    `capacity` tells key ranges from capacity where the endpoint names no reasons at all.
    """

    def __init__(
        self,
        call: Call,
        table: str,
        grower: Grower,
        runtime: Runtime,
        capacity: CapacityCheck | None = None,
    ) -> None:
        self._call = call
        self._table = table
        self._grower = grower
        self._runtime = runtime
        self._capacity = capacity
        self._probes = IntervalLimiter(_PROBE_EVERY, runtime.monotonic)

    def relieve(self, left: Sequence[PreparedEvent], deadline: float) -> list[PreparedEvent]:
        """Relieve every series that throttles, all at the same time; return the events that are still to be written.

        Sends nothing after `deadline`.
        """
        by_series: dict[str, list[PreparedEvent]] = {}
        for event in left:
            if isinstance(event.failure, ThrottledError) and event.sent is not None:
                by_series.setdefault(event.series, []).append(event)
        if not by_series:
            return list(left)
        # What throttles most goes first: a process asks for the fleet's rate a few times a second only.
        ranked = sorted(by_series.items(), key=lambda each: -len(each[1]))
        tasks = [partial(self._relieve, series, events, deadline) for series, events in ranked]
        stored = set().union(*self._runtime.parallel(tasks))
        return [event for event in left if id(event) not in stored]

    def _relieve(self, series: str, events: list[PreparedEvent], deadline: float) -> set[int]:
        """Relieve one series; return the ids of the events that were written by the way."""
        newest = max(event.epoch_id for event in events)
        # Older epochs can't grow: what throttles under these goes to the newest one.
        throttled = [event for event in events if event.epoch_id == newest]
        pressure = Pressure.of(_throttled(event) for event in throttled)
        pressure.epoch_id = newest
        probed = self._probe(series, pressure, deadline)
        if pressure.cause is Cause.CAPACITY:
            self._grower.report_capacity(series, pressure)
        elif self._grower.growth.policy is None:  # the scaler may see to it
            self._grower.follow(series)
        elif pressure.cause is Cause.KEY_RANGE:
            pressure.new_units = _count_new(throttled)
            self._grower.relieve(series, pressure, deadline)
        return _settle(throttled, probed)

    def _probe(self, series: str, pressure: Pressure, deadline: float) -> Probed:
        """Probe for a cause where DynamoDB named none, now and then."""
        known = not pressure.unexplained or pressure.cause is not Cause.UNKNOWN
        if known or self._grower.growth.policy is None or not self._probes.may_pass(series):
            return Probed()
        probed = probe(call_until(deadline, self._call, self._runtime), self._table, pressure)
        if probed.exhausted and probed.without_reason and self._capacity is not None:
            pressure.explain_rest(self._capacity.reasons())
        elif probed.exhausted:
            guess(pressure)
        return probed


def _settle(events: Sequence[PreparedEvent], probed: Probed) -> set[int]:
    """Note on the events what became of their probes; return the ids of those that are stored."""
    by_item = {id(event.sent): event for event in events}
    for item, error in probed.unknown:
        by_item[id(item)].leave_unsettled(item, error)
    return {id(by_item[id(item)]) for item in probed.stored}


def _count_new(events: Sequence[PreparedEvent]) -> int:
    """Return the units of events that throttle for the first time, and note on these that they have."""
    units = sum(event.write_units for event in events if not event.throttled)
    for event in events:
        event.throttled = True
    return units


def _throttled(event: PreparedEvent) -> Throttled:
    assert event.sent is not None  # noqa: S101  only sent events throttle
    assert isinstance(event.failure, ThrottledError)  # noqa: S101
    return Throttled(event.sent, event.write_units, event.sharding_key, event.failure)
