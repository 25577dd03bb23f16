"""Resharder: what a series whose key ranges throttle is given: shards, or else the partitions that these need.

Decides as the writers do, by the same policy, and changes the layout in the same way. What throttled before the layout's last
change is no evidence against the layout as it is: so duplicates of an alarm, late ones, and whoever comes second change nothing.
"""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

from spillway.control.capacity import CapacityManager
from spillway.layouts.model import Layout, Snapshot
from spillway.layouts.source import LayoutSource
from spillway.layouts.transitions import ChangeReason
from spillway.scaling.evidence import ThrottleSummary
from spillway.scaling.policy import (
    GrowthStopReason,
    ScalingDecision,
    ScalingObservation,
    SideObservation,
    ThrottleTarget,
    cooldown_left,
    decide_on_throttle,
    is_stopped,
    writes_enough,
)
from spillway.scaling.updates import LayoutUpdater, describe_evidence
from spillway.scaling.usage import WriteDemand
from spillway.settings import Growth

__all__ = ["Resharder", "evidence_since"]

_CONCENTRATED: Final = 0.5  # share of the throttles in one shard that no count can part


def evidence_since(layout: Layout) -> float:
    """Return the time from which throttles speak about the layout as it is."""
    return 0.0 if layout.version == 1 else layout.last_updated


@dataclass(frozen=True, slots=True)
class Resharder:
    """Relieves one series after the other. `now` is the wall clock. Methods raise StorageError."""

    layouts: LayoutSource
    enactor: LayoutUpdater
    raiser: CapacityManager
    growth: Growth
    now: Callable[[], float]

    def of_table(
        self, snapshot: Snapshot, throttled: dict[int, float], demand: WriteDemand | None
    ) -> None:
        """Relieve a series whose shards of the table throttle, by shard."""
        if throttled and (demand is None or writes_enough(demand.table_units, self.growth)):
            counts = Counter({shard: round(count) for shard, count in throttled.items()})
            self._relieve(snapshot, ThrottleSummary(table=counts), demand, ThrottleTarget.TABLE)

    def of_index(self, snapshot: Snapshot, throttles: float, demand: WriteDemand) -> None:
        """Relieve a series whose shards of the index throttle: which ones, nobody tells."""
        if throttles > 0:
            self._relieve(
                snapshot,
                ThrottleSummary(index=Counter({0: round(throttles)})),
                demand,
                ThrottleTarget.INDEX,
            )

    def _relieve(
        self,
        snapshot: Snapshot,
        pressure: ThrottleSummary,
        demand: WriteDemand | None,
        target: ThrottleTarget,
    ) -> None:
        layout, now = snapshot.layout, self.now()
        if cooldown_left(layout, self.growth.cooldown, now) > 0 or _is_one_key(
            layout, self.growth, now
        ):
            return
        seen = pressure.observation(layout, demand, now)
        decision = decide_on_throttle(seen, self.growth)
        if decision.grows:
            reason = ChangeReason(
                f"alarm: key ranges of the {target} throttle", describe_evidence(seen)
            )
            self.enactor.change(snapshot, decision, reason)
        elif decision.stop is not None:
            self._stop(layout, decision, seen, target)

    def _stop(
        self,
        layout: Layout,
        decision: ScalingDecision,
        seen: ScalingObservation,
        target: ThrottleTarget,
    ) -> None:
        side, evidence = (
            seen.table if target is ThrottleTarget.TABLE else seen.index,
            describe_evidence(seen),
        )
        if (
            decision.stop is GrowthStopReason.TOO_FEW_PARTITIONS
            and target is ThrottleTarget.TABLE
            and _one_shard(side)
        ):
            decision = replace(decision, stop=GrowthStopReason.HOT_SHARDING_KEY)
        if decision.stop is GrowthStopReason.TOO_FEW_PARTITIONS:
            done = self.raiser.warm(target, side.demand, layout.series, evidence)
            if done is not None:
                self.layouts.record_remark(layout.series, ChangeReason(done, evidence))
        if not is_stopped(layout, self.growth.stop_for, self.now()):
            self.enactor.stop(layout, decision, evidence)


def _is_one_key(layout: Layout, growth: Growth, now: float) -> bool:
    """Tell whether writers, who see sharding keys, have just found that one of them is the cause."""
    stopped = is_stopped(layout, growth.stop_for, now)
    return (
        stopped
        and layout.stop is not None
        and layout.stop.reason == GrowthStopReason.HOT_SHARDING_KEY
    )


def _one_shard(side: SideObservation) -> bool:
    """Tell whether most throttles of many shards are one shard's: more partitions would not part them either."""
    counts = sorted(side.throttled.values())
    return side.shards > 2 and counts[-1] > _CONCENTRATED * sum(counts)
