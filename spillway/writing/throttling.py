"""Handling of throttled writes: find the cause, then grow the layout or report the limit."""

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
    """The outcome of probing.

    Attributes:
        stored: items that probes stored.
        unknown: items that may be stored, each with its error.
        exhausted: every probe was answered, and no answer named a reason.
        without_reason: a PutItem throttled without a reason, so the endpoint gives none.
    """

    stored: list[Item] = field(default_factory=list)
    unknown: list[tuple[Item, StorageError]] = field(default_factory=list)
    exhausted: bool = False
    without_reason: bool = False


def send_probes(call: Call, table: str, throttles: ThrottleSummary) -> ProbeResult:
    """Explain unexplained writes by the first reason that a probe gets.

    Sends at most three PutItems, to the partition keys that throttled most.
    """
    probed = ProbeResult()
    for write in _choose_probes(throttles.unexplained):
        try:
            call("PutItem", {"TableName": table, "Item": write.item})
        except ThrottledError as error:
            if error.reasons:
                throttles.explain_remaining(error.reasons)
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


def attribute_by_concentration(throttles: ThrottleSummary) -> None:
    """Blame key ranges for unexplained writes where one key throttled far above others."""
    if _has_outlier(throttles.unexplained):
        throttles.explain_remaining((_GUESSED,))


def _choose_probes(writes: Sequence[ThrottledWrite]) -> list[ThrottledWrite]:
    """Return a write for each partition key that throttled most, several for a single one."""
    by_key: dict[str, list[ThrottledWrite]] = {}
    for write in writes:
        by_key.setdefault(write.partition, []).append(write)
    ranked = sorted(by_key.values(), key=len, reverse=True)
    if len(ranked) == 1:
        return ranked[0][:_MAX_PROBES]
    return [same_key[0] for same_key in ranked[:_MAX_PROBES]]


def _has_outlier(writes: Sequence[ThrottledWrite]) -> bool:
    counts = Counter(write.partition for write in writes)
    return len(counts) > 1 and max(counts.values()) > _FAR_ABOVE * len(writes) / len(counts)


_PROBE_INTERVAL_SECONDS: Final = 0.2  # a series and process


class ThrottleHandler:
    """Finds out why events throttled, and grows their series or reports the limit.

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
        self._probes = IntervalLimiter(_PROBE_INTERVAL_SECONDS, runtime.monotonic)

    def handle(self, pending: Sequence[PreparedEvent], deadline: float) -> list[PreparedEvent]:
        """Handle all throttled series at the same time; return the events still to be written.

        Sends nothing after `deadline`.
        """
        by_series: dict[str, list[PreparedEvent]] = {}
        for event in pending:
            if isinstance(event.failure, ThrottledError) and event.sent is not None:
                by_series.setdefault(event.series, []).append(event)
        if not by_series:
            return list(pending)
        # What throttles most goes first: a process reads the fleet's rate a few times a second
        # only.
        ranked = sorted(by_series.items(), key=lambda each: -len(each[1]))
        tasks = [
            partial(self._handle_series, series, events, deadline) for series, events in ranked
        ]
        stored = set().union(*self._runtime.parallel(tasks))
        return [event for event in pending if id(event) not in stored]

    def _handle_series(self, series: str, events: list[PreparedEvent], deadline: float) -> set[int]:
        """Grow or report one series; return the ids of the events that probes stored."""
        newest = max(event.epoch_id for event in events)
        # Older epochs can't grow: what throttled under them goes to the newest one.
        throttled = [event for event in events if event.epoch_id == newest]
        throttles = ThrottleSummary.of(_throttled(event) for event in throttled)
        throttles.epoch_id = newest
        probed = self._probe(series, throttles, deadline)
        if throttles.cause is ThrottleKind.CAPACITY:
            self._grower.report_capacity_limit(series, throttles)
        elif self._grower.growth.policy is None:  # the scaler may see to it
            self._grower.refresh_layout(series)
        elif throttles.cause is ThrottleKind.KEY_RANGE:
            throttles.new_units = _count_new(throttled)
            self._grower.grow_on_throttle(series, throttles, deadline)
        return _apply_probes(throttled, probed)

    def _probe(self, series: str, throttles: ThrottleSummary, deadline: float) -> ProbeResult:
        """Probe for a cause where DynamoDB named none, at most five times a second for a series."""
        known = not throttles.unexplained or throttles.cause is not ThrottleKind.UNKNOWN
        if known or self._grower.growth.policy is None or not self._probes.may_pass(series):
            return ProbeResult()
        probed = send_probes(
            call_until(deadline, self._call, self._runtime), self._table, throttles
        )
        if probed.exhausted and probed.without_reason and self._capacity is not None:
            throttles.explain_remaining(self._capacity.reasons())
        elif probed.exhausted:
            attribute_by_concentration(throttles)
        return probed


def _apply_probes(events: Sequence[PreparedEvent], probed: ProbeResult) -> set[int]:
    """Mark events whose probe has an unknown outcome; return the ids of those stored."""
    by_item = {id(event.sent): event for event in events}
    for item, error in probed.unknown:
        by_item[id(item)].leave_unsettled(item, error)
    return {id(by_item[id(item)]) for item in probed.stored}


def _count_new(events: Sequence[PreparedEvent]) -> int:
    """Mark events as throttled; return the units of those that were not before."""
    units = sum(event.write_units for event in events if not event.throttled)
    for event in events:
        event.throttled = True
    return units


def _throttled(event: PreparedEvent) -> ThrottledWrite:
    assert event.sent is not None  # noqa: S101  only sent events throttle
    assert isinstance(event.failure, ThrottledError)  # noqa: S101
    return ThrottledWrite(event.sent, event.write_units, event.sharding_key, event.failure)
