"""Relief for throttled writes: find out why, grow where that helps, report where it does not."""

from collections.abc import Sequence

from spillway.runtime import Runtime
from spillway.scaling.grower import Grower
from spillway.scaling.policy import Cause
from spillway.scaling.pressure import Pressure, Throttled
from spillway.scaling.report import ScalingEvent, ScalingKind
from spillway.storage.port import Call, ThrottledError
from spillway.writing.prepared import PreparedEvent
from spillway.writing.probes import probe

__all__ = ["Relief"]

_PROBE_EVERY = 0.2  # seconds, a series and process


class Relief:
    """What a writer does about the events that an attempt left throttled."""

    def __init__(self, call: Call, table: str, grower: Grower, runtime: Runtime) -> None:
        self._call = call
        self._table = table
        self._grower = grower
        self._runtime = runtime
        self._probed_at: dict[str, float] = {}

    def relieve(self, left: Sequence[PreparedEvent], deadline: float) -> list[PreparedEvent]:
        """Relieve every series that throttles; return the events that are still to be written."""
        by_series: dict[str, list[PreparedEvent]] = {}
        for event in left:
            if isinstance(event.failure, ThrottledError) and event.sent is not None:
                by_series.setdefault(event.series, []).append(event)
        stored: set[int] = set()
        for series, events in by_series.items():
            stored |= self._relieve(series, events, deadline)
        return [event for event in left if id(event) not in stored] if stored else list(left)

    def _relieve(self, series: str, events: list[PreparedEvent], deadline: float) -> set[int]:
        by_item = {id(event.sent): event for event in events}
        pressure = Pressure.of(_throttled(event) for event in events)
        stored = self._probe(series, pressure)
        if pressure.cause is Cause.KEY_RANGE:
            self._grower.relieve(series, pressure, deadline)
        elif pressure.cause is Cause.CAPACITY:
            reasons = tuple(sorted(pressure.capacity))
            self._grower.observe(
                ScalingEvent(
                    kind=ScalingKind.CAPACITY_LIMITED,
                    series=series,
                    reason="the table's, index's or account's capacity, which no shard adds to",
                    throttling=reasons,
                )
            )
        return {id(by_item[id(item)]) for item in stored}

    def _probe(self, series: str, pressure: Pressure) -> list[dict[str, dict[str, str]]]:
        """Probe for a cause where DynamoDB named none, now and then."""
        now = self._runtime.monotonic()
        recently = now - self._probed_at.get(series, -_PROBE_EVERY) < _PROBE_EVERY
        known = not pressure.unexplained or pressure.cause is not Cause.UNKNOWN
        if known or recently or self._grower.growth.policy is None:
            return []
        self._probed_at[series] = now
        return probe(self._call, self._table, pressure)


def _throttled(event: PreparedEvent) -> Throttled:
    assert event.sent is not None  # noqa: S101  only sent events throttle
    assert isinstance(event.failure, ThrottledError)  # noqa: S101
    return Throttled(event.sent, event.write_units, event.sharding_key, event.failure)
