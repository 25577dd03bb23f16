"""Admission of amounts: the limits of `dynamoheat.admission` in the same order, all units at once.

One share for everything (`admitted_share`) and one cap a partition describe what is admitted: each
partition serves the lesser of the two. The greatest share that keeps every limit equals, on
average, what admission of single items comes to.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

from dynamoheat.aggregated.flows import Amounts, FlowRefusal, IndexBranch, TrafficFlow
from dynamoheat.limits import ThroughputLimits
from dynamoheat.reasons import Throttle, ThrottleCause
from dynamoheat.resources import Resource

__all__ = [
    "AdmissionVerdict",
    "admit_reads",
    "admit_writes",
    "divide_flow",
    "entry_amounts",
    "greatest_share",
]

_ROUNDS: Final = 80
_CLOSE: Final = 1e-9  # of the scale


@dataclass(slots=True)
class AdmissionVerdict:
    """What is admitted: of each partition's units, the lesser of `admitted_share` and its cap."""

    partition_throttle: Throttle  # of a partition at its cap
    caps: Amounts = field(
        default_factory=dict
    )  # shares of the units that overloaded partitions serve
    admitted_share: float = 1.0
    table_throttle: Throttle | None = None  # the table's or index's, for the rest
    is_index_limited: bool = False  # an index's buffer is checked after the partitions

    def shares_at_cap(self, cap: float) -> tuple[float, float, float]:
        """Return the shares admitted, refused by a partition's cap and refused by the table."""
        if not self.is_index_limited:
            accepted = min(self.admitted_share, cap)
            return accepted, self.admitted_share - accepted, 1 - self.admitted_share
        kept = 1.0 if cap >= self.admitted_share else cap / self.admitted_share
        return kept * self.admitted_share, 1 - kept, kept * (1 - self.admitted_share)


def admit_writes(
    resource: Resource, indexes: Iterable[Resource], flows: Sequence[TrafficFlow], buffer: float
) -> AdmissionVerdict:
    """Return what is admitted of all writes to a table. All buckets must be filled over the step.

    `indexes` are all of its global indexes; each may have `buffer` units of updates pending.
    """
    offered = _summed(flow.offered_units for flow in flows)
    caps = {
        partition: max(partition.write.tokens, 0.0) / units
        for partition, units in offered.items()
        if units > max(partition.write.tokens, 0.0)
    }
    verdict = AdmissionVerdict(resource.throttle(ThrottleCause.KEY_RANGE, write=True), caps)
    passing = [_Passing(flow, caps) for flow in flows]
    _limit(verdict, resource, resource.writes, passing, write=True)
    for index in indexes:
        _hold_back(verdict, _Index(index, passing), buffer)
    return verdict


def admit_reads(resource: Resource, flows: Sequence[TrafficFlow]) -> AdmissionVerdict:
    """Return what is admitted of all reads of a table or an index.

    All buckets must be filled over the step.
    """
    wanted = _summed(
        {partition: units * flow.extra_per_unit for partition, units in flow.offered_units.items()}
        for flow in flows
    )
    caps = {
        partition: max(partition.read.tokens, 0.0) / tokens
        for partition, tokens in wanted.items()
        if tokens > max(partition.read.tokens, 0.0)
    }
    verdict = AdmissionVerdict(resource.throttle(ThrottleCause.KEY_RANGE, write=False), caps)
    passing = [_Passing(flow, caps) for flow in flows]
    _limit(verdict, resource, resource.reads, passing, write=False)
    return verdict


def divide_flow(flow: TrafficFlow, verdict: AdmissionVerdict) -> None:
    """Divide a flow's units into those admitted and those throttled, by reason."""
    if verdict.admitted_share == 1 and not verdict.caps:
        flow.admitted_units = flow.offered_units
        return
    own: Amounts = {}
    whole: Amounts = {}
    for partition, units in flow.offered_units.items():
        accepted, by_own, by_whole = verdict.shares_at_cap(verdict.caps.get(partition, 1.0))
        flow.admitted_units[partition] = units * accepted
        if by_own > 0:
            own[partition] = units * by_own
        if by_whole > 0:
            whole[partition] = units * by_whole
    if own:
        flow.refusals.append(FlowRefusal(verdict.partition_throttle, own, is_by_partition=True))
    if whole and verdict.table_throttle is not None:
        flow.refusals.append(FlowRefusal(verdict.table_throttle, whole, is_by_partition=False))


def entry_amounts(branch: IndexBranch, passed: float) -> Amounts:
    """Return the units of an index's partitions when `passed` units are admitted at the table."""
    units = passed * branch.units_per_table_unit
    return {partition: units * share for partition, share in branch.route.shares.items()}


class _Passing:
    """The admitted units of a flow as a function of the share that is admitted."""

    __slots__ = ("_capped", "_free", "flow")

    def __init__(self, flow: TrafficFlow, caps: Amounts) -> None:
        self.flow = flow
        self._capped = [
            (units, caps[partition])
            for partition, units in flow.offered_units.items()
            if partition in caps
        ]
        self._free = flow.total_units - sum(units for units, _ in self._capped)

    def __call__(self, passes: float) -> float:
        return passes * self._free + sum(units * min(passes, cap) for units, cap in self._capped)


class _Index:
    """The pending units of a global index as a function of the share admitted at its table."""

    def __init__(self, resource: Resource, passing: Sequence[_Passing]) -> None:
        self.resource = resource
        self._sources = [
            (flow, branch)
            for flow in passing
            for branch in flow.flow.branches
            if branch.resource is resource
        ]
        self._debts = {
            partition: 0.0
            for partition in resource.partitions_in_debt
            if partition.write.tokens < 0
        }

    def waiting_units(self, passes: float) -> tuple[float, ThrottleCause]:
        """Return the most units that wait for partitions or for one limit, and its cause."""
        amounts = _summed(
            [self._debts, *(entry_amounts(branch, flow(passes)) for flow, branch in self._sources)]
        )
        total = sum(amounts.values())
        found, cause = 0.0, ThrottleCause.KEY_RANGE
        for partition, units in amounts.items():
            found += max(units - partition.write.tokens, 0.0)
        for limit in self.resource.writes.limits:
            if total - limit.bucket.tokens > found:
                found, cause = total - limit.bucket.tokens, limit.cause
        return found, cause


def _limit(
    verdict: AdmissionVerdict,
    resource: Resource,
    rates: ThroughputLimits,
    passing: Sequence[_Passing],
    *,
    write: bool,
) -> None:
    """Reduce the admitted share to what the scarcest limit of a table or an index holds."""
    least = min(rates.limits, key=lambda limit: limit.bucket.tokens)
    tokens = max(least.bucket.tokens, 0.0)
    verdict.admitted_share = greatest_share(
        lambda share: sum(flow(share) for flow in passing) - tokens, tokens + 1
    )
    if verdict.admitted_share < 1:
        verdict.table_throttle = resource.throttle(least.cause, write=write)


def _hold_back(verdict: AdmissionVerdict, index: _Index, buffer: float) -> None:
    """Reduce the admitted share to what an index's buffer has room for."""
    if index.waiting_units(verdict.admitted_share)[0] <= buffer:
        return
    passes = greatest_share(lambda share: index.waiting_units(share)[0] - buffer, buffer + 1)
    if passes < verdict.admitted_share:
        verdict.admitted_share, verdict.is_index_limited = passes, True
        verdict.table_throttle = index.resource.throttle(index.waiting_units(passes)[1], write=True)


def _summed(amounts: Iterable[Amounts]) -> Amounts:
    sums: Amounts = {}
    for each in amounts:
        for partition, units in each.items():
            sums[partition] = sums.get(partition, 0.0) + units
    return sums


def greatest_share(excess: Callable[[float], float], scale: float) -> float:
    """Return the greatest share from 0 to 1 at which `excess` is not above zero, by bisection.

    Return 0 if there is none. `excess` must be continuous and never fall. `scale` is its order of
    magnitude, and a billionth of it the precision. Steps alternate between linear interpolation,
    which is exact without a kink, and halving: some twenty calls at most with a hundred kinks.
    """
    close = _CLOSE * scale
    low, high = 0.0, 1.0
    at_high = excess(high)
    if at_high <= close:
        return high
    at_low = excess(low)
    if at_low > 0:
        return low
    for turn in range(_ROUNDS):
        line = at_low / (at_low - at_high)
        middle = low + (high - low) * (0.5 if turn % 2 else line)
        found = excess(middle)
        if abs(found) <= close:
            return middle
        if found < 0:
            low, at_low = middle, found
        else:
            high, at_high = middle, found
    return low
