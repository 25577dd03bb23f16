"""Handle throttled writes: find the cause, grow the layout where that helps, report where it does not."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Final

from spillway.dynamodb.port import (
    Call,
    Item,
    OutcomeUnknownError,
    StorageError,
    ThrottledError,
    ThrottlingReason,
)
from spillway.dynamodb.retries import call_until
from spillway.limiters import IntervalLimiter
from spillway.runtime import Runtime
from spillway.scaling.autoscaler import WriterAutoscaler
from spillway.scaling.evidence import CapacityCheck, ThrottledWrite, ThrottleSummary
from spillway.scaling.policy import ThrottleKind
from spillway.writing.preparation import PreparedEvent

__all__ = ["ProbeResult", "ThrottleHandler", "attribute_by_concentration", "send_probes"]


_MAX_PROBES: Final = 3
_FAR_ABOVE: Final = 2.0  # times the share that each partition key would have if all were alike
_GUESSED: Final = ThrottlingReason("TableWriteKeyRangeThroughputExceeded", "")


@dataclass(slots=True)
class ProbeResult:
    """What came of probing.

    Attributes:
        stored: items that are stored now.
        unknown: items that may be, and what went wrong.
        exhausted: every probe was answered, and none of the answers named a reason.
        without_reason: a PutItem was throttled all the same, so the endpoint gives no reasons.
    """

    stored: list[Item] = field(default_factory=list)
    unknown: list[tuple[Item, StorageError]] = field(default_factory=list)
    exhausted: bool = False
    without_reason: bool = False


def send_probes(call: Call, table: str, pressure: ThrottleSummary) -> ProbeResult:
    """Explain the unexplained writes of a pressure by the first reason that a probe is given, if one is.

    Sends at most three PutItems, to the partition keys that throttled most.
    """
    probed = ProbeResult()
    for write in _chosen(pressure.unexplained):
        try:
            call("PutItem", {"TableName": table, "Item": write.item})
        except ThrottledError as error:
            if error.reasons:
                pressure.explain_rest(error.reasons)
                break
            probed.without_reason = True
        except OutcomeUnknownError as error:
            probed.unknown.append((write.item, error))
            break
        except StorageError:
            break
        else:
            probed.stored.append(write.item)
    else:
        probed.exhausted = True
    return probed


def attribute_by_concentration(pressure: ThrottleSummary) -> None:
    """Take a partition key that throttled far above the others for the cause of what is unexplained, if there is one."""
    if _one_stands_out(pressure.unexplained):
        pressure.explain_rest((_GUESSED,))


def _chosen(writes: Sequence[ThrottledWrite]) -> list[ThrottledWrite]:
    """Return a write to each of the partition keys that throttled most; of a single one, several writes."""
    by_key: dict[str, list[ThrottledWrite]] = {}
    for write in writes:
        by_key.setdefault(write.partition, []).append(write)
    ranked = sorted(by_key.values(), key=len, reverse=True)
    if len(ranked) == 1:
        return ranked[0][:_MAX_PROBES]
    return [same_key[0] for same_key in ranked[:_MAX_PROBES]]


def _one_stands_out(writes: Sequence[ThrottledWrite]) -> bool:
    counts = Counter(write.partition for write in writes)
    return len(counts) > 1 and max(counts.values()) > _FAR_ABOVE * len(writes) / len(counts)


_PROBE_EVERY: Final = 0.2  # seconds, a series and process


class ThrottleHandler:
    """What a writer does about the events that an attempt left throttled.

    `capacity` tells key ranges from capacity where the endpoint names no reasons at all.
    """

    def __init__(
        self,
        call: Call,
        table: str,
        grower: WriterAutoscaler,
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
        pressure = ThrottleSummary.of(_throttled(event) for event in throttled)
        pressure.epoch_id = newest
        probed = self._probe(series, pressure, deadline)
        if pressure.cause is ThrottleKind.CAPACITY:
            self._grower.report_capacity(series, pressure)
        elif self._grower.growth.policy is None:  # the scaler may see to it
            self._grower.follow(series)
        elif pressure.cause is ThrottleKind.KEY_RANGE:
            pressure.new_units = _count_new(throttled)
            self._grower.relieve(series, pressure, deadline)
        return _settle(throttled, probed)

    def _probe(self, series: str, pressure: ThrottleSummary, deadline: float) -> ProbeResult:
        """Probe for a cause where DynamoDB named none, now and then."""
        known = not pressure.unexplained or pressure.cause is not ThrottleKind.UNKNOWN
        if known or self._grower.growth.policy is None or not self._probes.may_pass(series):
            return ProbeResult()
        probed = send_probes(call_until(deadline, self._call, self._runtime), self._table, pressure)
        if probed.exhausted and probed.without_reason and self._capacity is not None:
            pressure.explain_rest(self._capacity.reasons())
        elif probed.exhausted:
            attribute_by_concentration(pressure)
        return probed


def _settle(events: Sequence[PreparedEvent], probed: ProbeResult) -> set[int]:
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


def _throttled(event: PreparedEvent) -> ThrottledWrite:
    assert event.sent is not None  # noqa: S101  only sent events throttle
    assert isinstance(event.failure, ThrottledError)  # noqa: S101
    return ThrottledWrite(event.sent, event.write_units, event.sharding_key, event.failure)
