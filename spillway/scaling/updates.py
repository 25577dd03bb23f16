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
from spillway.scaling.policy import ScalingDecision, ScalingObservation, SideObservation

__all__ = [
    "LayoutUpdater",
    "Observer",
    "Reporter",
    "ScalingEvent",
    "ScalingKind",
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
"""Told of every scaling event, in the thread that caused it; must be quick and not raise."""


def ignore(event: ScalingEvent) -> None:
    """Let a scaling event pass unseen."""
    del event


class Reporter:
    """Passes scaling events on to an observer, findings that repeat once a minute at most. Thread-safe.

    `stopped` passes once a minute for each series, and `capacity_limited` for each set of limits: whichever series
    meets these, they are the table's or the account's. Of either kind ten pass a minute at most. The next one
    that passes says how many did not. All other events pass at once.
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
    """Changes layouts. `now` is the wall clock; a `dry_run` reports what would be done, and does nothing."""

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
        """Set the counts decided, unless the layout has changed since the snapshot; tell whether they were set.

        Looks before it writes: a look is cheaper than a refused write. Raises StorageError.
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
        """Note on the layout that growth does not help, and why. Raises StorageError."""
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


def describe_evidence(seen: ScalingObservation) -> str:
    """Return the figures that a decision was made from, for people."""
    return "; ".join(
        f"{name} {text}"
        for name, side in (("table", seen.table), ("index", seen.index))
        if (text := _figures(side))
    )


def _figures(side: SideObservation) -> str:
    throttled = sum(side.throttled.values())
    figures = [f"{throttled:,.0f} throttled"] if throttled else []
    if side.demand is not None:
        figures.append(f"{side.demand:,.0f} units/s wanted")
    return ", ".join(figures)
