"""The enactor: carries out what the policy decided, on the version it was decided from, and tells of it.

Writers and the scaler share it, so that every change is conditional, recorded on the layout, and reported alike.
"""

from collections.abc import Callable
from dataclasses import dataclass

from spillway.layouts.decisions import Reason
from spillway.layouts.model import GrowthStop, Layout, Snapshot
from spillway.layouts.source import LayoutSource
from spillway.scaling.observation import Decision, Observation, Side
from spillway.scaling.report import Observer, ScalingEvent, ScalingKind

__all__ = ["Enactor", "evidence_of"]


@dataclass(frozen=True, slots=True)
class Enactor:
    """Changes layouts. `now` is the wall clock; a `dry_run` reports what would be done, and does nothing."""

    layouts: LayoutSource
    observe: Observer
    now: Callable[[], float]
    dry_run: bool = False

    def change(
        self,
        snapshot: Snapshot,
        decision: Decision,
        reason: Reason,
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

    def _set(self, snapshot: Snapshot, decision: Decision, reason: Reason) -> bool:
        changed = self.layouts.try_set_counts(
            snapshot, reason, shards=decision.shards, index_shards=decision.index_shards
        )
        if changed is None:
            self.layouts.read(snapshot.layout.series)  # keeps what the winner wrote
        return changed is not None

    def stop(self, layout: Layout, decision: Decision, evidence: str) -> None:
        """Note on the layout that growth does not help, and why. Raises StorageError."""
        keys, reason = decision.hot_sharding_keys, str(decision.stop)
        if not self.dry_run:
            stop = GrowthStop(reason=reason, at=self.now(), hot_sharding_keys=keys)
            self.layouts.note_stop(layout.series, stop)
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


def evidence_of(seen: Observation) -> str:
    """Return the figures that a decision was made from, for people."""
    return "; ".join(
        f"{name} {text}"
        for name, side in (("table", seen.table), ("index", seen.index))
        if (text := _figures(side))
    )


def _figures(side: Side) -> str:
    throttled = sum(side.throttled.values())
    figures = [f"{throttled:,.0f} throttled"] if throttled else []
    if side.demand is not None:
        figures.append(f"{side.demand:,.0f} units/s wanted")
    return ", ".join(figures)
