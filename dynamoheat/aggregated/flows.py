"""One step's traffic on its way: what partitions are asked, what passed, what did not and why."""

from dataclasses import dataclass, field

from dynamoheat.aggregated.routes import Route
from dynamoheat.aggregated.traffic import Traffic
from dynamoheat.partitions import Partition
from dynamoheat.reasons import Throttle
from dynamoheat.resources import Resource

__all__ = ["Amounts", "Branch", "FlowRefusal", "TrafficFlow"]

Amounts = dict[Partition, float]


@dataclass(slots=True, eq=False)
class Branch:
    """A flow's entries in a global index."""

    resource: Resource
    route: Route
    units: float  # for each unit of the table
    growth: float  # bytes, for each unit of the index


@dataclass(frozen=True, slots=True, eq=False)
class FlowRefusal:
    """What was throttled for one reason, by partition."""

    throttle: Throttle
    amounts: Amounts
    by_partition: bool  # by each itself, or by what all have in common

    @property
    def units(self) -> float:
        """All of it."""
        return sum(self.amounts.values())


@dataclass(slots=True, eq=False)
class TrafficFlow:
    """What is asked by one kind of traffic in one step, in units by partition, and what became of it."""

    traffic: Traffic
    route: Route
    asked: Amounts
    retried: float  # of `asked`, what was throttled before
    extra: float  # for each unit: bytes of growth of a write, tokens of a read
    branches: tuple[Branch, ...] = ()
    passed: Amounts = field(default_factory=dict)
    refusals: list[FlowRefusal] = field(default_factory=list)

    @property
    def total(self) -> float:
        """All units that are asked."""
        return sum(self.asked.values())

    @property
    def refused(self) -> Amounts:
        """What did not pass, by partition."""
        sums: Amounts = {}
        for refusal in self.refusals:
            for partition, units in refusal.amounts.items():
                sums[partition] = sums.get(partition, 0.0) + units
        return sums
