"""Resharding by the scaler: shards for a throttling series, or capacity where shards suffice.

Decides by the writers' policy and changes the layout as they do. Throttles from before the
layout's last change do not count, so duplicate or late alarms change nothing.
"""

from collections import Counter
from dataclasses import dataclass, replace
from functools import partial
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
    writes_enough,
)
from spillway.scaling.updates import LayoutGrower, describe_evidence
from spillway.scaling.usage import WriteDemand

__all__ = ["Resharder"]

_CONCENTRATED: Final = 0.5  # share of throttles that shows one hot shard


@dataclass(frozen=True, slots=True)
class Resharder:
    """Reshards one series at a time. Methods raise StorageError."""

    layouts: LayoutSource
    grower: LayoutGrower
    capacity: CapacityManager

    def reshard_table(
        self, snapshot: Snapshot, throttled: dict[int, float], demand: WriteDemand | None
    ) -> None:
        """Reshard a series whose shards of the table throttle; `throttled` counts by shard."""
        if throttled and (demand is None or writes_enough(demand.table_units, self.grower.growth)):
            counts = Counter({shard: round(count) for shard, count in throttled.items()})
            self._reshard(snapshot, ThrottleSummary(table=counts), demand, ThrottleTarget.TABLE)

    def reshard_index(self, snapshot: Snapshot, throttles: float, demand: WriteDemand) -> None:
        """Reshard a series whose index shards throttle. Nothing tells which of them do."""
        if throttles > 0:
            self._reshard(
                snapshot,
                ThrottleSummary(index=Counter({0: round(throttles)})),
                demand,
                ThrottleTarget.INDEX,
            )

    def _reshard(
        self,
        snapshot: Snapshot,
        throttles: ThrottleSummary,
        demand: WriteDemand | None,
        target: ThrottleTarget,
    ) -> None:
        layout = snapshot.layout
        if self.grower.cooldown_seconds_left(layout) > 0 or self._is_one_key(layout):
            return
        self.grower.decide_and_apply(
            snapshot,
            throttles,
            demand,
            why=f"alarm: key ranges of the {target} throttle",
            review_stop=partial(self._raise_capacity, layout.series, target),
        )

    def _is_one_key(self, layout: Layout) -> bool:
        """Return whether writers, who see sharding keys, have just found one to be the cause."""
        return (
            layout.stop is not None
            and layout.stop.reason == GrowthStopReason.HOT_SHARDING_KEY
            and self.grower.is_stopped(layout)
        )

    def _raise_capacity(
        self,
        series: str,
        target: ThrottleTarget,
        observation: ScalingObservation,
        decision: ScalingDecision,
    ) -> ScalingDecision:
        """Return the stop to record; raise warm throughput first where partitions are short."""
        is_table = target is ThrottleTarget.TABLE
        side = observation.table if is_table else observation.index
        if decision.stop is not GrowthStopReason.TOO_FEW_PARTITIONS:
            return decision
        if is_table and _one_shard(side):
            return replace(decision, stop=GrowthStopReason.HOT_SHARDING_KEY)
        evidence = describe_evidence(observation)
        change = self.capacity.warm(target, side.demand, series, evidence)
        if change is not None:
            self.layouts.record_remark(series, ChangeReason(change, evidence))
        return decision


def _one_shard(side: SideObservation) -> bool:
    """Return whether one shard of many has most throttles: more partitions would not part them."""
    counts = sorted(side.throttled.values())
    return side.shards > 2 and counts[-1] > _CONCENTRATED * sum(counts)
