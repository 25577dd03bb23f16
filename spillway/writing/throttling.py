"""Handle throttled writes.

Find the cause, grow the layout where that helps, report where it does not.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Final

from msgspec.structs import replace

from spillway.dynamodb.port import (
    Call,
    Item,
    OutcomeUnknownError,
    StorageError,
    ThrottledError,
    ThrottlingReason,
)
from spillway.dynamodb.retries import call_until
from spillway.memo import IntervalLimiter
from spillway.runtime import Runtime
from spillway.scaling.autoscaler import WriterAutoscaler
from spillway.scaling.evidence import CapacityCheck, ThrottledWrite, ThrottleSummary
from spillway.scaling.policy import ThrottleKind
from spillway.writing.attempts import PendingEvent
from spillway.writing.conflicts import OnConflict

__all__ = ["ProbeResult", "ThrottleHandler", "attribute_by_concentration", "send_probes"]


_MAX_PROBES: Final = 3
_FAR_ABOVE: Final = 2.0  # times the share that each partition key would have if all were alike
_GUESSED: Final = ThrottlingReason("TableWriteKeyRangeThroughputExceeded", "")


@dataclass(slots=True)
class ProbeResult:
    """The outcome of probes.

    Attributes:
        stored: items that are stored now.
        unknown: items that may be stored, each with its error.
        exhausted: every probe was answered, and no answer named a reason.
        without_reason: a PutItem was throttled without a reason, so the endpoint gives none.
    """

    stored: list[Item] = field(default_factory=list)
    unknown: list[tuple[Item, StorageError]] = field(default_factory=list)
    exhausted: bool = False
    without_reason: bool = False


def send_probes(call: Call, table: str, throttles: ThrottleSummary) -> ProbeResult:
    """Explain unexplained writes by the first reason that a probe's answer names.

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
    """Blame a hot key range where one partition key throttled far above the others."""
    if _has_outlier(throttles.unexplained):
        throttles.explain_remaining((_GUESSED,))


def _choose_probes(writes: Sequence[ThrottledWrite]) -> list[ThrottledWrite]:
    """Return a write to each of the partition keys that throttled most.

    Several if there is one key.
    """
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


_PROBE_INTERVAL_SECONDS: Final = 0.2  # between probes of a series, in one process


_Probe = Callable[[str, ThrottleSummary, float], ProbeResult]


class ThrottleHandler:
    """Acts on the events that an attempt found throttled.

    `capacity` tells key ranges from capacity where the endpoint names no reasons at all.
    """

    def __init__(
        self,
        call: Call,
        table: str,
        autoscaler: WriterAutoscaler,
        runtime: Runtime,
        capacity: CapacityCheck | None = None,
    ) -> None:
        self._call = call
        self._table = table
        self._autoscaler = autoscaler
        self._runtime = runtime
        self._capacity = capacity
        self._probes = IntervalLimiter(_PROBE_INTERVAL_SECONDS, runtime.monotonic)

    def handle(
        self,
        pending: Sequence[PendingEvent],
        deadline: float,
        on_conflict: OnConflict = OnConflict.REPLACE,
    ) -> list[PendingEvent]:
        """Handle all throttled series in parallel; return the events that are pending now.

        Probes may store events, which are left out then. Sends nothing after `deadline`.
        """
        probe = self._probe if on_conflict is OnConflict.REPLACE else self._infer
        by_series: dict[str, list[PendingEvent]] = {}
        for each in pending:
            if isinstance(each.failure, ThrottledError) and each.sent is not None:
                by_series.setdefault(each.event.series, []).append(each)
        if not by_series:
            return list(pending)
        # The most throttled goes first: a process asks for the fleet's rate a few times a second.
        ranked = sorted(by_series.items(), key=lambda each: -len(each[1]))
        tasks = [
            partial(self._handle_series, series, events, deadline, probe)
            for series, events in ranked
        ]
        changes: dict[PendingEvent, PendingEvent | None] = {}
        for changed in self._runtime.parallel(tasks):
            changes |= changed
        after = (changes.get(each, each) for each in pending)
        return [each for each in after if each is not None]

    def _handle_series(
        self, series: str, events: list[PendingEvent], deadline: float, probe: _Probe
    ) -> dict[PendingEvent, PendingEvent | None]:
        """Grow or report one series; return the events that changed, None for those stored now."""
        newest = max(each.epoch_id for each in events)
        # Older epochs can't grow: what throttles under these goes to the newest one.
        throttled = [each for each in events if each.epoch_id == newest]
        throttles = ThrottleSummary.of(_throttled_write(each) for each in throttled)
        throttles.epoch_id = newest
        probed = probe(series, throttles, deadline)
        changes: dict[PendingEvent, PendingEvent | None] = {}
        if throttles.cause is ThrottleKind.CAPACITY:
            self._autoscaler.report_capacity_limit(series, throttles)
        elif self._autoscaler.growth.policy is None:  # the scaler may see to it
            self._autoscaler.refresh_layout(series)
        elif throttles.cause is ThrottleKind.KEY_RANGE:
            first_throttled = [each for each in throttled if not each.has_throttled]
            changes |= {each: replace(each, has_throttled=True) for each in first_throttled}
            throttles.new_units = sum(each.event.write_units for each in first_throttled)
            self._autoscaler.grow_on_throttle(series, throttles, deadline)
        by_item = {id(each.sent): each for each in throttled}
        for item, error in probed.unknown:
            each = by_item[id(item)]
            changes[each] = (changes.get(each) or each).leave_in_doubt(item, error)
        return changes | {by_item[id(item)]: None for item in probed.stored}

    def _probe(self, series: str, throttles: ThrottleSummary, deadline: float) -> ProbeResult:
        """Probe for a cause where DynamoDB named none, now and then."""
        is_known = not throttles.unexplained or throttles.cause is not ThrottleKind.UNKNOWN
        may_grow = self._autoscaler.growth.policy is not None
        if is_known or not may_grow or not self._probes.may_pass(series):
            return ProbeResult()
        probed = send_probes(
            call_until(deadline, self._call, self._runtime), self._table, throttles
        )
        if probed.exhausted:
            self._explain(throttles, without_reason=probed.without_reason)
        return probed

    def _infer(self, _series: str, throttles: ThrottleSummary, _deadline: float) -> ProbeResult:
        """Find a cause without probes: each write was a PutItem, whose answer named any reason."""
        if throttles.unexplained and throttles.cause is ThrottleKind.UNKNOWN:
            self._explain(throttles, without_reason=True)
        return ProbeResult()

    def _explain(self, throttles: ThrottleSummary, *, without_reason: bool) -> None:
        """Explain writes of which no answer named a reason."""
        if without_reason and self._capacity is not None:
            throttles.explain_remaining(self._capacity.reasons())
        else:
            attribute_by_concentration(throttles)


def _throttled_write(pending: PendingEvent) -> ThrottledWrite:
    assert pending.sent is not None  # noqa: S101  only sent events throttle
    assert isinstance(pending.failure, ThrottledError)  # noqa: S101
    event = pending.event
    return ThrottledWrite(pending.sent, event.write_units, event.sharding_key, pending.failure)
