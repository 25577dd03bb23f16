"""How much may pass? `dynamoheat.admission` for amounts: the same limits in the same order, asked for all at once.

Within a step everything is taken to come evenly and well mixed. A limit on the whole table then refuses all
keys the same share, a partition all of its keys the same share of what gets to it, and a full index again all keys.
One share `passes` (what the whole lets through) and one cap a partition describe that: of what a
partition is asked, the lesser of the two is accepted. The greatest `passes` that keeps every limit is what the event mode's
bucket by bucket admission of single items comes to on average.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from dynamoheat.aggregated.bisection import greatest_share
from dynamoheat.aggregated.flows import Amounts, Branch, FlowRefusal, TrafficFlow
from dynamoheat.rates import Rates
from dynamoheat.reasons import Throttle, ThrottleCause
from dynamoheat.resources import Resource

__all__ = ["AdmissionVerdict", "admit_reads", "admit_writes", "entries", "settle"]


@dataclass(slots=True)
class AdmissionVerdict:
    """What passes: of a partition's demand the lesser of `passes` and its cap."""

    own: Throttle  # what a partition refuses
    caps: Amounts = field(default_factory=dict)  # shares; of partitions that can't take all
    passes: float = 1.0
    whole: Throttle | None = None  # what refuses the rest
    after: bool = False  # whether that comes after the partitions, as an index's buffer does

    def shares(self, cap: float) -> tuple[float, float, float]:
        """Return what is accepted, refused by a partition with this cap, and refused by the whole."""
        if not self.after:
            accepted = min(self.passes, cap)
            return accepted, self.passes - accepted, 1 - self.passes
        kept = 1.0 if cap >= self.passes else cap / self.passes
        return kept * self.passes, 1 - kept, kept * (1 - self.passes)


def admit_writes(
    resource: Resource, indexes: Iterable[Resource], flows: Sequence[TrafficFlow], buffer: float
) -> AdmissionVerdict:
    """Return what passes of all writes to a table; its buckets and its indexes' must be poured.

    `indexes` are all of its global indexes, `buffer` the units of updates that one may have waiting.
    """
    asked = _summed(flow.asked for flow in flows)
    caps = {
        partition: max(partition.write.tokens, 0.0) / units
        for partition, units in asked.items()
        if units > max(partition.write.tokens, 0.0)
    }
    verdict = AdmissionVerdict(resource.throttle(ThrottleCause.KEY_RANGE, write=True), caps)
    passing = [_Passing(flow, caps) for flow in flows]
    _limit(verdict, resource, resource.writes, passing, write=True)
    for index in indexes:
        _hold_back(verdict, _Index(index, passing), buffer)
    return verdict


def admit_reads(resource: Resource, flows: Sequence[TrafficFlow]) -> AdmissionVerdict:
    """Return what passes of all reads of a table or an index; its buckets must be poured."""
    wanted = _summed(
        {partition: units * flow.extra for partition, units in flow.asked.items()} for flow in flows
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


def settle(flow: TrafficFlow, verdict: AdmissionVerdict) -> None:
    """Divide what a flow asked into what passed and what was throttled, by reason."""
    if verdict.passes == 1 and not verdict.caps:
        flow.passed = flow.asked
        return
    own: Amounts = {}
    whole: Amounts = {}
    for partition, units in flow.asked.items():
        accepted, by_own, by_whole = verdict.shares(verdict.caps.get(partition, 1.0))
        flow.passed[partition] = units * accepted
        if by_own > 0:
            own[partition] = units * by_own
        if by_whole > 0:
            whole[partition] = units * by_whole
    if own:
        flow.refusals.append(FlowRefusal(verdict.own, own, by_partition=True))
    if whole and verdict.whole is not None:
        flow.refusals.append(FlowRefusal(verdict.whole, whole, by_partition=False))


def entries(branch: Branch, passed: float) -> Amounts:
    """Return the units of an index's partitions when so many units pass at the table."""
    units = passed * branch.units
    return {partition: units * share for partition, share in branch.route.shares.items()}


class _Passing:
    """The units of a flow that pass, by the share that the whole lets through."""

    __slots__ = ("_capped", "_free", "flow")

    def __init__(self, flow: TrafficFlow, caps: Amounts) -> None:
        self.flow = flow
        self._capped = [
            (units, caps[partition]) for partition, units in flow.asked.items() if partition in caps
        ]
        self._free = flow.total - sum(units for units, _ in self._capped)

    def __call__(self, passes: float) -> float:
        return passes * self._free + sum(units * min(passes, cap) for units, cap in self._capped)


class _Index:
    """What a global index would have waiting, by the share that passes at its table."""

    def __init__(self, resource: Resource, passing: Sequence[_Passing]) -> None:
        self.resource = resource
        self._feeds = [
            (flow, branch)
            for flow in passing
            for branch in flow.flow.branches
            if branch.resource is resource
        ]
        self._owed = {
            partition: 0.0 for partition in resource.indebted if partition.write.tokens < 0
        }

    def waiting(self, passes: float) -> tuple[float, ThrottleCause]:
        """Return the greatest of what waits for partitions and for each limit, and which it is."""
        amounts = _summed(
            [self._owed, *(entries(branch, flow(passes)) for flow, branch in self._feeds)]
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
    rates: Rates,
    passing: Sequence[_Passing],
    *,
    write: bool,
) -> None:
    """Let through what the scarcest of a table's or an index's limits holds."""
    least = min(rates.limits, key=lambda limit: limit.bucket.tokens)
    tokens = max(least.bucket.tokens, 0.0)
    verdict.passes = greatest_share(
        lambda share: sum(flow(share) for flow in passing) - tokens, tokens + 1
    )
    if verdict.passes < 1:
        verdict.whole = resource.throttle(least.cause, write=write)


def _hold_back(verdict: AdmissionVerdict, index: _Index, buffer: float) -> None:
    """Let through what an index's buffer has room for, if that is less still."""
    if index.waiting(verdict.passes)[0] <= buffer:
        return
    passes = greatest_share(lambda share: index.waiting(share)[0] - buffer, buffer + 1)
    if passes < verdict.passes:
        verdict.passes, verdict.after = passes, True
        verdict.whole = index.resource.throttle(index.waiting(passes)[1], write=True)


def _summed(amounts: Iterable[Amounts]) -> Amounts:
    sums: Amounts = {}
    for each in amounts:
        for partition, units in each.items():
            sums[partition] = sums.get(partition, 0.0) + units
    return sums
