"""Relief: what a series whose key ranges throttle is given: shards, or else the partitions that these need.

Decides as the writers do, by the same policy, and changes the layout in the same way. What throttled before the layout's last
change is no evidence against the layout as it is: so duplicates of an alarm, late ones, and whoever comes second change nothing.
"""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

from spillway.layouts.decisions import Reason
from spillway.layouts.model import Layout, Snapshot
from spillway.layouts.source import LayoutSource
from spillway.scaler.raiser import Raiser
from spillway.scaling.enactor import Enactor, evidence_of
from spillway.scaling.growth import Growth
from spillway.scaling.observation import Decision, Observation, Side, Stop, Target
from spillway.scaling.policy import on_throttle, writes_enough
from spillway.scaling.pressure import Pressure
from spillway.scaling.rest import cooldown_left, is_stopped
from spillway.scaling.usage import Demand

__all__ = ["Relief", "evidence_since"]

_CONCENTRATED: Final = 0.5  # share of the throttles in one shard that no count can part


def evidence_since(layout: Layout) -> float:
    """Return the time from which throttles speak about the layout as it is."""
    return 0.0 if layout.version == 1 else layout.last_updated


@dataclass(frozen=True, slots=True)
class Relief:
    """Relieves one series after the other. `now` is the wall clock. Methods raise StorageError."""

    layouts: LayoutSource
    enactor: Enactor
    raiser: Raiser
    growth: Growth
    now: Callable[[], float]

    def of_table(
        self, snapshot: Snapshot, throttled: dict[int, float], demand: Demand | None
    ) -> None:
        """Relieve a series whose shards of the table throttle, by shard."""
        if throttled and (demand is None or writes_enough(demand.table_units, self.growth)):
            counts = Counter({shard: round(count) for shard, count in throttled.items()})
            self._relieve(snapshot, Pressure(table=counts), demand, Target.TABLE)

    def of_index(self, snapshot: Snapshot, throttles: float, demand: Demand) -> None:
        """Relieve a series whose shards of the index throttle: which ones, nobody tells."""
        if throttles > 0:
            self._relieve(
                snapshot, Pressure(index=Counter({0: round(throttles)})), demand, Target.INDEX
            )

    def _relieve(
        self, snapshot: Snapshot, pressure: Pressure, demand: Demand | None, target: Target
    ) -> None:
        layout, now = snapshot.layout, self.now()
        if cooldown_left(layout, self.growth.cooldown, now) > 0 or _is_one_key(
            layout, self.growth, now
        ):
            return
        seen = pressure.observation(layout, demand, now)
        decision = on_throttle(seen, self.growth)
        if decision.grows:
            reason = Reason(f"alarm: key ranges of the {target} throttle", evidence_of(seen))
            self.enactor.change(snapshot, decision, reason)
        elif decision.stop is not None:
            self._stop(layout, decision, seen, target)

    def _stop(self, layout: Layout, decision: Decision, seen: Observation, target: Target) -> None:
        side, evidence = seen.table if target is Target.TABLE else seen.index, evidence_of(seen)
        if decision.stop is Stop.TOO_FEW_PARTITIONS and target is Target.TABLE and _one_shard(side):
            decision = replace(decision, stop=Stop.HOT_SHARDING_KEY)
        if decision.stop is Stop.TOO_FEW_PARTITIONS:
            done = self.raiser.warm(target, side.demand, layout.series, evidence)
            if done is not None:
                self.layouts.remark(layout.series, Reason(done, evidence))
        if not is_stopped(layout, self.growth.stop_for, self.now()):
            self.enactor.stop(layout, decision, evidence)


def _is_one_key(layout: Layout, growth: Growth, now: float) -> bool:
    """Tell whether writers, who see sharding keys, have just found that one of them is the cause."""
    stopped = is_stopped(layout, growth.stop_for, now)
    return stopped and layout.stop is not None and layout.stop.reason == Stop.HOT_SHARDING_KEY


def _one_shard(side: Side) -> bool:
    """Tell whether most throttles of many shards are one shard's: more partitions would not part them either."""
    counts = sorted(side.throttled.values())
    return side.shards > 2 and counts[-1] > _CONCENTRATED * sum(counts)
