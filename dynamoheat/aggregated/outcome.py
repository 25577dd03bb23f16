"""What became of one step's traffic."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from dynamoheat.aggregated.flows import Amounts, TrafficFlow
from dynamoheat.aggregated.traffic import Reads, Traffic, Writes
from dynamoheat.reasons import ThrottleReason
from dynamoheat.resources import Resource

__all__ = ["Loads", "StepOutcome", "StepTally"]


@dataclass(slots=True)
class StepTally:
    """Units of a step: `offered` is `accepted` and all that is `throttled` together."""

    offered: float = 0.0
    accepted: float = 0.0
    retried: float = 0.0
    """What of `offered` had been throttled before."""
    throttled: dict[ThrottleReason, float] = field(default_factory=dict)

    @property
    def refused(self) -> float:
        """All that was throttled."""
        return sum(self.throttled.values())

    def add(self, other: "StepTally") -> None:
        """Count another one's units too."""
        self.offered += other.offered
        self.accepted += other.accepted
        self.retried += other.retried
        for reason, units in other.throttled.items():
            self.throttled[reason] = self.throttled.get(reason, 0.0) + units


@dataclass(slots=True)
class Loads:
    """Units of a step by the number of a partition."""

    written: dict[int, float] = field(default_factory=dict)
    read: dict[int, float] = field(default_factory=dict)
    throttled: dict[int, float] = field(default_factory=dict)
    """What was asked of the partition and not accepted, whatever the reason."""


@dataclass(slots=True)
class StepOutcome:
    """What a step came to. Units are of the whole step, not a second."""

    at: float
    """When the step began."""
    seconds: float
    """How long it was."""
    by_traffic: dict[Traffic, StepTally] = field(default_factory=dict)
    _loads: dict[tuple[str, str | None], Loads] = field(default_factory=dict)

    @property
    def writes(self) -> StepTally:
        """All writes, in units of the tables."""
        return _sum(
            tally for traffic, tally in self.by_traffic.items() if isinstance(traffic, Writes)
        )

    @property
    def reads(self) -> StepTally:
        """All reads, of tables and indexes."""
        return _sum(
            tally for traffic, tally in self.by_traffic.items() if isinstance(traffic, Reads)
        )

    @property
    def throttled(self) -> Mapping[ThrottleReason, float]:
        """All that was throttled, by reason."""
        return _sum(self.by_traffic.values()).throttled

    def loads(self, table: str, index: str | None = None) -> Loads:
        """Return what each partition of a table or a global index consumed and refused."""
        return self._loads.get((table, index)) or Loads()

    def count(self, flow: TrafficFlow) -> None:
        """Add what became of a flow."""
        throttled: dict[ThrottleReason, float] = {}
        for refusal in flow.refusals:
            reason = refusal.throttle.reason
            throttled[reason] = throttled.get(reason, 0.0) + refusal.units
        passed = sum(flow.passed.values())
        tally = self.by_traffic.setdefault(flow.traffic, StepTally())
        tally.add(StepTally(flow.total, passed, flow.retried, throttled))

    def count_consumed(self, resource: Resource, amounts: Amounts, *, write: bool) -> None:
        """Add what partitions consumed."""
        loads = self._of(resource)
        _add(loads.written if write else loads.read, amounts)

    def count_throttled(self, resource: Resource, amounts: Amounts) -> None:
        """Add what partitions were asked and did not serve."""
        _add(self._of(resource).throttled, amounts)

    def _of(self, resource: Resource) -> Loads:
        return self._loads.setdefault((resource.table, resource.index), Loads())


def _add(sums: dict[int, float], amounts: Amounts) -> None:
    for partition, units in amounts.items():
        sums[partition.number] = sums.get(partition.number, 0.0) + units


def _sum(tallies: Iterable[StepTally]) -> StepTally:
    total = StepTally()
    for tally in tallies:
        total.add(tally)
    return total
