"""The outcome of one step: units admitted, throttled and retried, by traffic and by partition."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from dynamoheat.aggregated.flows import Amounts, TrafficFlow
from dynamoheat.aggregated.traffic import Reads, Traffic, Writes
from dynamoheat.reasons import ThrottleReason
from dynamoheat.resources import Resource

__all__ = ["PartitionLoads", "StepOutcome", "StepTally"]


@dataclass(slots=True)
class StepTally:
    """Units of a step. `offered` is the sum of `accepted` and all that is `throttled`."""

    offered: float = 0.0
    accepted: float = 0.0
    retried: float = 0.0
    """Units of `offered` that had been throttled before."""
    throttled: dict[ThrottleReason, float] = field(default_factory=dict)

    @property
    def total_throttled(self) -> float:
        """All throttled units."""
        return sum(self.throttled.values())

    def add(self, other: "StepTally") -> None:
        """Add another tally's units."""
        self.offered += other.offered
        self.accepted += other.accepted
        self.retried += other.retried
        for reason, units in other.throttled.items():
            self.throttled[reason] = self.throttled.get(reason, 0.0) + units


@dataclass(slots=True)
class PartitionLoads:
    """Units of a step by partition number."""

    written: dict[int, float] = field(default_factory=dict)
    read: dict[int, float] = field(default_factory=dict)
    throttled: dict[int, float] = field(default_factory=dict)
    """Units offered to the partition and not admitted, whatever the reason."""


@dataclass(slots=True)
class StepOutcome:
    """The outcome of a step. Units are of the whole step, not a second."""

    at: float
    """Time at which the step began."""
    seconds: float
    """Length of the step."""
    by_traffic: dict[Traffic, StepTally] = field(default_factory=dict)
    _loads: dict[tuple[str, str | None], PartitionLoads] = field(default_factory=dict)

    @property
    def writes(self) -> StepTally:
        """The sum of all writes, in units of the tables."""
        return _sum(
            tally for traffic, tally in self.by_traffic.items() if isinstance(traffic, Writes)
        )

    @property
    def reads(self) -> StepTally:
        """The sum of all reads of tables and indexes."""
        return _sum(
            tally for traffic, tally in self.by_traffic.items() if isinstance(traffic, Reads)
        )

    @property
    def throttled(self) -> Mapping[ThrottleReason, float]:
        """Throttled units by reason."""
        return _sum(self.by_traffic.values()).throttled

    def loads(self, table: str, index: str | None = None) -> PartitionLoads:
        """Return what each partition of a table or a global index consumed and refused."""
        return self._loads.get((table, index)) or PartitionLoads()

    def count(self, flow: TrafficFlow) -> None:
        """Add a flow's outcome."""
        throttled: dict[ThrottleReason, float] = {}
        for refusal in flow.refusals:
            reason = refusal.throttle.reason
            throttled[reason] = throttled.get(reason, 0.0) + refusal.units
        passed = sum(flow.admitted_units.values())
        tally = self.by_traffic.setdefault(flow.traffic, StepTally())
        tally.add(StepTally(flow.total_units, passed, flow.retried_units, throttled))

    def count_consumed(self, resource: Resource, amounts: Amounts, *, write: bool) -> None:
        """Add units that partitions consumed."""
        loads = self._loads_of(resource)
        _add(loads.written if write else loads.read, amounts)

    def count_throttled(self, resource: Resource, amounts: Amounts) -> None:
        """Add units that partitions refused."""
        _add(self._loads_of(resource).throttled, amounts)

    def _loads_of(self, resource: Resource) -> PartitionLoads:
        return self._loads.setdefault((resource.table, resource.index), PartitionLoads())


def _add(sums: dict[int, float], amounts: Amounts) -> None:
    for partition, units in amounts.items():
        sums[partition.number] = sums.get(partition.number, 0.0) + units


def _sum(tallies: Iterable[StepTally]) -> StepTally:
    total = StepTally()
    for tally in tallies:
        total.add(tally)
    return total
