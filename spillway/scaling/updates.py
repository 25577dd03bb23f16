"""Apply scaling decisions to layouts, and report what was done."""

import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final

from spillway.dynamodb.port import ThrottlingReason
from spillway.layouts.model import GrowthStop, Layout, Snapshot
from spillway.layouts.source import LayoutSource
from spillway.layouts.transitions import ChangeReason
from spillway.memo import IntervalLimiter, RateLimiter
from spillway.scaling.evidence import ThrottleSummary
from spillway.scaling.policy import (
    ScalingDecision,
    ScalingObservation,
    SideObservation,
    cooldown_left,
    decide_on_throttle,
    is_stopped,
)
from spillway.scaling.usage import WriteDemand
from spillway.settings import Growth

__all__ = [
    "LayoutGrower",
    "LayoutUpdater",
    "Observer",
    "Reporter",
    "ScalingEvent",
    "ScalingKind",
    "StopReview",
    "describe_evidence",
    "ignore",
]


_REPEAT_AFTER: Final = 60.0  # seconds
_MAX_REPORTS: Final = 10.0  # of one kind in that time


class ScalingKind(StrEnum):
    """Kinds of scaling events."""

    GREW = "grew"
    LOST_RACE = "lost_race"  # another changed the layout first
    STOPPED = "stopped"  # key ranges throttle, and more shards would not help
    CAPACITY_LIMITED = (
        "capacity_limited"  # provisioned, on-demand maximum or account: never resharded
    )
    SHRANK = "shrank"
    WARMED = "warmed"  # warm throughput was raised, for more partitions
    PROVISIONED = "provisioned"  # provisioned throughput was raised
    AT_BOUND = "at_bound"  # capacity would have been raised, but for the configured bound
    READS_THROTTLED = "reads_throttled"  # no layout helps: advice for people
    LAYOUTS_THROTTLED = "layouts_throttled"  # the layout table itself


@dataclass(frozen=True, slots=True, kw_only=True)
class ScalingEvent:
    """One thing that scaling did or found.

    Attributes:
        kind: what.
        series: of which series; empty where it is about a whole table.
        shards, index_shards: counts before.
        new_shards, new_index_shards: counts after, as `shards` where nothing changed.
        reason: why, for people.
        hot_sharding_keys: sharding keys that no count can help.
        evidence: figures it was decided by, for people.
        dry_run: it was only decided, not done.
        throttling: reasons that DynamoDB gave, of `capacity_limited`.
        unreported: findings of this kind since the last report of one, which were not reported.
    """

    kind: ScalingKind
    series: str = ""
    shards: int = 0
    index_shards: int = 0
    new_shards: int = 0
    new_index_shards: int = 0
    reason: str = ""
    evidence: str = ""
    dry_run: bool = False
    hot_sharding_keys: tuple[str, ...] = ()
    throttling: tuple[ThrottlingReason, ...] = ()
    unreported: int = 0


Observer = Callable[[ScalingEvent], None]
"""Receives every scaling event in the thread that caused it; must be quick and not raise."""


def ignore(event: ScalingEvent) -> None:
    """Drop a scaling event."""
    del event


class Reporter:
    """Passes scaling events on to an observer, repeated findings once a minute. Thread-safe.

    `stopped` passes once a minute for each series, `capacity_limited` for each set of limits, which
    are the table's or the account's. Of either kind at most ten pass a minute. The next one that
    passes says how many did not. All other events pass at once.
    """

    def __init__(self, observe: Observer, monotonic: Callable[[], float]) -> None:
        self._observe = observe
        self._repeats = IntervalLimiter(_REPEAT_AFTER, monotonic)
        self._rates = {
            kind: RateLimiter(_MAX_REPORTS / _REPEAT_AFTER, _MAX_REPORTS, monotonic)
            for kind in (ScalingKind.STOPPED, ScalingKind.CAPACITY_LIMITED)
        }
        self._unreported: Counter[ScalingKind] = Counter()
        self._lock = threading.Lock()

    def report(self, event: ScalingEvent) -> None:
        """Pass an event on, or count it."""
        rate = self._rates.get(event.kind)
        if rate is None:
            self._observe(event)
            return
        passes = self._repeats.may_pass(f"{event.kind} {_subject(event)}") and rate.may_pass()
        with self._lock:
            unreported = self._unreported.pop(event.kind, 0)
            if not passes:
                self._unreported[event.kind] = unreported + 1
        if passes:
            self._observe(replace(event, unreported=unreported))


def _subject(event: ScalingEvent) -> object:
    """Return what a finding is about."""
    return event.throttling if event.kind is ScalingKind.CAPACITY_LIMITED else event.series


@dataclass(frozen=True, slots=True)
class LayoutUpdater:
    """Changes layouts. `now` is the wall clock; a `dry_run` only reports."""

    layouts: LayoutSource
    observe: Observer
    now: Callable[[], float]
    dry_run: bool = False

    def change(
        self,
        snapshot: Snapshot,
        decision: ScalingDecision,
        reason: ChangeReason,
        kind: ScalingKind = ScalingKind.GREW,
    ) -> bool:
        """Set the counts decided unless the layout has changed since; return whether they were set.

        Reads before it writes: a read is cheaper than a refused write. Raises StorageError.
        """
        series, before = snapshot.layout.series, snapshot.layout.current
        if not self.dry_run:
            latest = self.layouts.read(series)
            if latest is None or latest.version != snapshot.layout.version:
                return False
        changed = self.dry_run or self._set(snapshot, decision, reason)
        self.observe(
            ScalingEvent(
                kind=kind if changed else ScalingKind.LOST_RACE,
                series=series,
                shards=before.shards,
                index_shards=before.index_shards,
                new_shards=decision.shards or before.shards,
                new_index_shards=decision.index_shards or before.index_shards,
                reason=reason.why,
                evidence=reason.evidence,
                dry_run=self.dry_run,
            )
        )
        return changed and not self.dry_run

    def _set(self, snapshot: Snapshot, decision: ScalingDecision, reason: ChangeReason) -> bool:
        changed = self.layouts.try_set_counts(
            snapshot, reason, shards=decision.shards, index_shards=decision.index_shards
        )
        if changed is None:
            self.layouts.read(snapshot.layout.series)  # keeps what the winner wrote
        return changed is not None

    def stop(self, layout: Layout, decision: ScalingDecision, evidence: str) -> None:
        """Record on the layout that growth does not help, and why. Raises StorageError."""
        keys, reason = decision.hot_sharding_keys, str(decision.stop)
        if not self.dry_run:
            stop = GrowthStop(reason=reason, at=self.now(), hot_sharding_keys=keys)
            self.layouts.record_stop(layout.series, stop)
        self.observe(
            ScalingEvent(
                kind=ScalingKind.STOPPED,
                series=layout.series,
                shards=layout.current.shards,
                index_shards=layout.current.index_shards,
                reason=reason,
                evidence=evidence,
                hot_sharding_keys=keys,
                dry_run=self.dry_run,
            )
        )


StopReview = Callable[[ScalingObservation, ScalingDecision], ScalingDecision | None]
"""Returns the stop to record on the layout, or None to record none."""


@dataclass(frozen=True, slots=True)
class LayoutGrower:
    """Decides on throttling of one layout and applies the decision, for writers and the scaler.

    What differs between the two stays with them: a writer waits out the cooldown and a random time,
    the scaler skips a layout that is cooling down and raises capacity before it records a stop.
    """

    updater: LayoutUpdater
    growth: Growth

    def cooldown_seconds_left(self, layout: Layout) -> float:
        """Return the seconds until the layout may change again."""
        return cooldown_left(layout, self.growth.cooldown_seconds, self.updater.now())

    def is_stopped(self, layout: Layout) -> bool:
        """Return whether growth of this layout was found futile a short time ago."""
        return is_stopped(layout, self.growth.stop_seconds, self.updater.now())

    def decide_and_apply(
        self,
        snapshot: Snapshot,
        throttles: ThrottleSummary,
        demand: WriteDemand | None,
        *,
        why: str,
        review_stop: StopReview,
    ) -> ScalingDecision:
        """Grow the layout, or record that growth does not help; return the decision applied.

        `why` is the reason of the change, for people. A stop is recorded only after `review_stop`
        has agreed, and not while an earlier one is in force. Where nothing is to be done the
        returned decision is empty. Costs one GetItem and one UpdateItem where something changes.
        Raises StorageError.
        """
        layout = snapshot.layout
        observation = throttles.observation(layout, demand, self.updater.now())
        decision = decide_on_throttle(observation, self.growth)
        evidence = describe_evidence(observation)
        if decision.grows:
            self.updater.change(snapshot, decision, ChangeReason(why, evidence))
            return decision
        stop = None if decision.stop is None else review_stop(observation, decision)
        if stop is None or self.is_stopped(layout):
            return ScalingDecision()
        self.updater.stop(layout, stop, evidence)
        return stop


def describe_evidence(observation: ScalingObservation) -> str:
    """Return the figures that a decision was made from, for people."""
    return "; ".join(
        f"{name} {text}"
        for name, side in (("table", observation.table), ("index", observation.index))
        if (text := _figures(side))
    )


def _figures(side: SideObservation) -> str:
    throttled = sum(side.throttled.values())
    figures = [f"{throttled:,.0f} throttled"] if throttled else []
    if side.demand is not None:
        figures.append(f"{side.demand:,.0f} units/s wanted")
    return ", ".join(figures)
