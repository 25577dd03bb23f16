"""The designs before global admission: storage nodes admit by each partition's allocation.

    put ─▶ partition's limit ─▶ allocated tokens ─▶ saved tokens, if its nodes have some ─▶ refused
                                shares, boosts      bursting

Equal division (ATC22 section 4): 3,200 WCU make four partitions of 800; raised to 3,600 they have
900 each; raised to 6,000 they split into eight of 750. Splits for size halve the parent's
allocation: the more a table stores, the less each partition may do.

Bursting (section 4.1.1): a partition has a second bucket, of what it left unused for up to 300
seconds. Adaptive capacity (section 4.1.2): where a table throttles although its throughput is not
exceeded, a proportional controller raises the allocation of throttled partitions.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil

from dynamoheat.limits import TokenBucket
from dynamoheat.parameters import ModelParameters
from dynamoheat.partitions import Partition, Partitions
from dynamoheat.studies.generations.assumptions import DesignAssumptions, ItemRequest, NewTable
from dynamoheat.studies.generations.nodes import (
    NodeFleet,
    ReplicationGroup,
    find_free_reader,
    has_room_to_write,
    spend,
)

__all__ = [
    "EqualShares",
    "PartitionAllowance",
    "PartitionDemand",
    "StorageTable",
    "equal_shares",
    "initial_partitions",
    "next_boosts",
    "partitions_after",
]


@dataclass(frozen=True, slots=True)
class EqualShares:
    """Units a second."""

    read: float
    write: float


def initial_partitions(
    read: float, write: float, stored_bytes: float = 0.0, limits: ModelParameters | None = None
) -> int:
    """Return how many partitions a new table has: enough for its throughput and for its data.

    `max(ceil(RCU/3000 + WCU/1000), ceil(GB/10))`, the rule that AWS taught until 2017; at least
    one.
    """
    limits = limits or ModelParameters()
    by_throughput = read / limits.partition_rcu + write / limits.partition_wcu
    by_size = stored_bytes / limits.partition_bytes
    return max(1, ceil(by_throughput - 1e-9), ceil(by_size - 1e-9))


def partitions_after(
    count: int, read: float, write: float, limits: ModelParameters | None = None
) -> int:
    """Return how many partitions `count` become: all split until the throughput fits."""
    needed = initial_partitions(read, write, limits=limits)
    while count < needed:
        count *= 2
    return count


def equal_shares(read: float, write: float, count: int) -> EqualShares:
    """Return what each of `count` partitions is allocated."""
    return EqualShares(read / count, write / count)


class PartitionAllowance:
    """One partition's tokens for reads or for writes.

    `share` is its part of the table's throughput in units a second, `boost` what adaptive capacity
    adds. `burst_seconds` 0 saves nothing. Callers `fill` before they look.
    """

    __slots__ = ("allocated", "boost", "burst_seconds", "saved", "share")

    def __init__(self, share: float, burst_seconds: float, now: float) -> None:
        self.share = share
        self.boost = 0.0
        self.burst_seconds = burst_seconds
        self.allocated = TokenBucket(share, share, share, now)
        self.saved = TokenBucket(0.0, share * burst_seconds, 0.0, now)  # filled by what overflows

    @property
    def granted_rate(self) -> float:
        """Units a second: the share and the boost."""
        return self.share + self.boost

    def fill(self, now: float) -> None:
        """Refill up to `now`; what the allocated bucket cannot hold of its share is saved."""
        bucket = self.allocated
        spilled = bucket.tokens + max(now - bucket.filled_at, 0.0) * bucket.rate - bucket.depth
        bucket.fill(now)
        if spilled > 0 and self.burst_seconds:
            kept = (
                spilled * self.share / self.granted_rate
            )  # an unused boost is the table's, not saved
            self.saved.tokens = min(self.saved.depth, self.saved.tokens + kept)

    def update(self, share: float, boost: float, now: float) -> None:
        """Change share and boost from `now` on; saved tokens above the new depth are lost."""
        self.fill(now)
        self.share, self.boost = share, boost
        self.allocated.resize(self.granted_rate, self.granted_rate, now)
        self.saved.resize(0.0, share * self.burst_seconds, now)

    def split(self, now: float) -> "PartitionAllowance":
        """Return half of everything, for each child when the partition splits for size."""
        self.fill(now)
        child = PartitionAllowance(self.share / 2, self.burst_seconds, now)
        child.update(self.share / 2, self.boost / 2, now)
        child.allocated.tokens = self.allocated.tokens / 2
        child.saved.tokens = self.saved.tokens / 2
        return child


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionDemand:
    """Units a second that one partition was asked for in a period."""

    consumed: float
    throttled: float
    share: float
    boost: float
    throttled_seconds: float  # seconds since it began


def next_boosts(
    demands: Sequence[PartitionDemand],
    provisioned: float,
    limit: float,
    assumptions: DesignAssumptions,
) -> list[float]:
    """Return the new boost of each partition, in order.

    No grant exceeds `limit`, and what is added never exceeds what the table left unused.
    """
    consumed = sum(demand.consumed for demand in demands)
    if consumed > provisioned:
        return [demand.boost * provisioned / consumed for demand in demands]
    steps = [_step(demand, limit, assumptions) for demand in demands]
    rise = sum(step for step in steps if step > 0)
    scale = min(1.0, (provisioned - consumed) / rise) if rise > 0 else 1.0
    return [
        demand.boost + (step * scale if step > 0 else step)
        for demand, step in zip(demands, steps, strict=True)
    ]


def _step(demand: PartitionDemand, limit: float, assumptions: DesignAssumptions) -> float:
    """Return how far the controller would move a boost, towards what the partition is asked for."""
    if not demand.boost and demand.throttled_seconds < assumptions.adaptive_delay_seconds:
        return 0.0
    wanted = min(demand.consumed + demand.throttled, limit) - demand.share
    return assumptions.adaptive_gain * (max(wanted, 0.0) - demand.boost)


@dataclass(slots=True)
class _Side:
    """One kind of operation of a partition: its tokens, and units since the last adaptation."""

    allowance: PartitionAllowance
    consumed: float = 0.0
    throttled: float = 0.0
    since: float | None = None  # it is being throttled


@dataclass(slots=True)
class _Hosted:
    """A partition on its nodes."""

    write: _Side
    read: _Side
    group: ReplicationGroup

    def side(self, write: bool) -> _Side:
        return self.write if write else self.read


class StorageTable:
    """Equal division; `bursts` and `adapts` add what the next two designs added."""

    def __init__(
        self,
        opening: NewTable,
        *,
        bursts: bool,
        adapts: bool,
        assumptions: DesignAssumptions | None = None,
    ) -> None:
        self._assumptions = assumptions or DesignAssumptions()
        self._limits = self._assumptions.limits.in_real_time()
        self._burst_seconds = self._limits.burst_seconds if bursts else 0.0
        self._adapts = adapts
        self._read, self._write, now = opening.read, opening.write, opening.now
        count = initial_partitions(self._read, self._write, opening.stored_bytes, self._limits)
        self.fleet = NodeFleet.from_assumptions(self._assumptions, now)
        self.partitions = Partitions(count, self, self._limits, now)
        self._hosted = {part: self._host(now) for part in self.partitions}
        for partition in self.partitions:
            partition.bytes = opening.stored_bytes / count
        self._next_adaptation = now + self._assumptions.adaptive_period_seconds

    def put(self, ask: ItemRequest, now: float) -> bool:
        """Admit a write or refuse it whole."""
        partition = self.partitions.find(ask.key, ask.sort)
        admitted = self.admit(partition, ask.units, now, write=True)
        if admitted:
            partition.bytes += ask.stored_bytes
        return admitted

    def get(self, ask: ItemRequest, now: float) -> bool:
        """Admit a strongly consistent read or refuse it whole."""
        return self.admit(self.partitions.find(ask.key, ask.sort), ask.units, now, write=False)

    def admit(self, partition: Partition, units: float, now: float, *, write: bool) -> bool:
        """Admit units on a partition or refuse them whole."""
        hosted = self._hosted[partition]
        side, limit = hosted.side(write), partition.write if write else partition.read
        side.allowance.fill(now)
        admitted = _holds(limit, units, now) and self._spend_tokens(hosted, units, now, write=write)
        if admitted:
            limit.tokens -= units
            side.consumed += units
        else:
            side.throttled += units
            side.since = now if side.since is None else side.since
        return admitted

    def provision(self, read: float, write: float, now: float) -> None:
        """Apply new throughput: split all partitions until it fits, and divide it equally."""
        self._read, self._write = read, write
        wanted = partitions_after(len(self.partitions), read, write, self._limits)
        while len(self.partitions) < wanted:
            for partition in list(self.partitions):
                self._split(partition, now)
        shares = equal_shares(read, write, len(self.partitions))
        for hosted in self._hosted.values():
            hosted.write.allowance.update(shares.write, 0.0, now)
            hosted.read.allowance.update(shares.read, 0.0, now)

    def advance(self, now: float) -> None:
        """Split partitions that are too large, and adapt boosts, once a period."""
        if now < self._next_adaptation:
            return
        self._next_adaptation += self._assumptions.adaptive_period_seconds
        for partition in list(self.partitions):
            if partition.bytes >= self._limits.partition_bytes:
                self._split(partition, now)
        for write in (True, False):
            if self._adapts:
                self._adapt(write, now)
            self._reset_counts(write)

    def granted_rates(self, *, write: bool) -> list[float]:
        """Return the allocated units a second of each partition, in order of the keys."""
        return [self._hosted[part].side(write).allowance.granted_rate for part in self.partitions]

    def saved_units(self, *, write: bool) -> list[float]:
        """Return the units that each partition has saved for bursts, as of its last request."""
        return [self._hosted[part].side(write).allowance.saved.tokens for part in self.partitions]

    def group_of(self, partition: Partition) -> ReplicationGroup:
        """Return the nodes that a partition's replicas are on."""
        return self._hosted[partition].group

    def _host(self, now: float) -> _Hosted:
        shares = equal_shares(self._read, self._write, len(self.partitions))
        return _Hosted(
            _Side(PartitionAllowance(shares.write, self._burst_seconds, now)),
            _Side(PartitionAllowance(shares.read, self._burst_seconds, now)),
            self.fleet.place(shares.write + self._tokens(shares.read, write=False)),
        )

    def _spend_tokens(self, hosted: _Hosted, units: float, now: float, *, write: bool) -> bool:
        allowance, tokens = hosted.side(write).allowance, self._tokens(units, write=write)
        if allowance.allocated.may_take(units, whole=True):
            nodes = hosted.group if write else hosted.group[:1]
            return _spent(allowance.allocated, units, nodes, tokens, now)
        if not allowance.saved.may_take(units, whole=False):
            return False
        if write:
            fits = has_room_to_write(hosted.group, tokens, now)
            return fits and _spent(allowance.saved, units, hosted.group, tokens, now)
        reader = find_free_reader(hosted.group, tokens, now)
        return reader is not None and _spent(allowance.saved, units, (reader,), tokens, now)

    def _tokens(self, units: float, *, write: bool) -> float:
        """Return the node tokens of some units."""
        return units if write else units * self._limits.partition_wcu / self._limits.partition_rcu

    def _split(self, parent: Partition, now: float) -> None:
        cut = self.partitions.middle(parent)
        if cut is None:
            return
        hosted = self._hosted.pop(parent)
        for child in self.partitions.split(parent, cut, now):
            self._hosted[child] = _Hosted(
                _Side(hosted.write.allowance.split(now), since=hosted.write.since),
                _Side(hosted.read.allowance.split(now), since=hosted.read.since),
                hosted.group,
            )

    def _adapt(self, write: bool, now: float) -> None:
        limit = self._limits.partition_wcu if write else self._limits.partition_rcu
        provisioned = self._write if write else self._read
        demands = [self._demand(hosted.side(write), now) for hosted in self._hosted.values()]
        wanted = next_boosts(demands, provisioned, limit, self._assumptions)
        for hosted, boost in zip(self._hosted.values(), wanted, strict=True):
            self._boost(hosted, boost, now, write=write)

    def _demand(self, side: _Side, now: float) -> PartitionDemand:
        period = self._assumptions.adaptive_period_seconds
        return PartitionDemand(
            consumed=side.consumed / period,
            throttled=side.throttled / period,
            share=side.allowance.share,
            boost=side.allowance.boost,
            throttled_seconds=0.0 if side.since is None else now - side.since,
        )

    def _boost(self, hosted: _Hosted, boost: float, now: float, *, write: bool) -> None:
        """Change a boost, as far as nodes have room for it. Replicas move to nodes with room."""
        allowance = hosted.side(write).allowance
        more = self._tokens(boost - allowance.boost, write=write)
        held = hosted.write.allowance.granted_rate + self._tokens(
            hosted.read.allowance.granted_rate, write=False
        )
        hosted.group, given = self.fleet.make_room(hosted.group, held, more)
        boost = allowance.boost + (boost - allowance.boost) * (given / more if more else 1.0)
        allowance.update(allowance.share, boost, now)

    def _reset_counts(self, write: bool) -> None:
        for hosted in self._hosted.values():
            side = hosted.side(write)
            if not side.throttled:
                side.since = None
            side.consumed = side.throttled = 0.0


def _holds(limit: TokenBucket, units: float, now: float) -> bool:
    limit.fill(now)
    return limit.may_take(units, whole=True)


def _spent(
    bucket: TokenBucket, units: float, nodes: ReplicationGroup, tokens: float, now: float
) -> bool:
    bucket.tokens -= units
    spend(nodes, tokens, now)
    return True
