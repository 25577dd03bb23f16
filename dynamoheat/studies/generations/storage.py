"""A table whose storage nodes admit by each partition's allocation: the designs before global admission.

    put ──▶ partition's own limit ──▶ allocated tokens ──▶ saved tokens, if all its nodes have some ──▶ refused
                                      shares; boosts       bursting

Splits for size halve the parent's allocation between its children (ATC22 section 4): the more a table
stores, the less each partition may do.
"""

from dataclasses import dataclass

from dynamoheat.buckets import TokenBucket
from dynamoheat.partitions import Partition, Partitions
from dynamoheat.studies.generations.allowances import Allowance
from dynamoheat.studies.generations.assumptions import Assumptions
from dynamoheat.studies.generations.boosts import PartitionDemand, boosts
from dynamoheat.studies.generations.division import (
    equal_shares,
    initial_partitions,
    partitions_after,
)
from dynamoheat.studies.generations.nodes import (
    Group,
    NodeFleet,
    free_reader,
    has_room_to_write,
    spend,
)
from dynamoheat.studies.generations.settings import Ask, Opening

__all__ = ["StorageTable"]


@dataclass(slots=True)
class _Side:
    """One kind of operation of a partition: its tokens, and what was asked since the last look."""

    allowance: Allowance
    consumed: float = 0.0
    throttled: float = 0.0
    since: float | None = None  # it is being throttled


@dataclass(slots=True)
class _Hosted:
    """A partition on its nodes."""

    write: _Side
    read: _Side
    group: Group

    def side(self, write: bool) -> _Side:
        return self.write if write else self.read


class StorageTable:
    """Equal division; `bursts` and `adapts` add what the next two designs added."""

    def __init__(
        self,
        opening: Opening,
        *,
        bursts: bool,
        adapts: bool,
        assumed: Assumptions | None = None,
    ) -> None:
        self._assumed = assumed or Assumptions()
        self._limits = self._assumed.limits.in_real_time()
        self._burst_seconds = self._limits.burst_seconds if bursts else 0.0
        self._adapts = adapts
        self._read, self._write, now = opening.read, opening.write, opening.now
        count = initial_partitions(self._read, self._write, opening.stored_bytes, self._limits)
        self.fleet = NodeFleet.assumed(self._assumed, now)
        self.partitions = Partitions(count, self, self._limits, now)
        self._hosted = {part: self._host(now) for part in self.partitions}
        for partition in self.partitions:
            partition.bytes = opening.stored_bytes / count
        self._looks_at = now + self._assumed.adaptive_period

    def put(self, ask: Ask, now: float) -> bool:
        """Admit a write or refuse it whole."""
        partition = self.partitions.find(ask.key, ask.sort)
        admitted = self.take(partition, ask.units, now, write=True)
        if admitted:
            partition.bytes += ask.stored_bytes
        return admitted

    def get(self, ask: Ask, now: float) -> bool:
        """Admit a strongly consistent read or refuse it whole."""
        return self.take(self.partitions.find(ask.key, ask.sort), ask.units, now, write=False)

    def take(self, partition: Partition, units: float, now: float, *, write: bool) -> bool:
        """Admit units on a partition or refuse them whole."""
        hosted = self._hosted[partition]
        side, limit = hosted.side(write), partition.write if write else partition.read
        side.allowance.fill(now)
        admitted = _holds(limit, units, now) and self._pay(hosted, units, now, write=write)
        if admitted:
            limit.tokens -= units
            side.consumed += units
        else:
            side.throttled += units
            side.since = now if side.since is None else side.since
        return admitted

    def provision(self, read: float, write: float, now: float) -> None:
        """Take UpdateTable's new throughput: split all partitions until it fits, divide it equally."""
        self._read, self._write = read, write
        wanted = partitions_after(len(self.partitions), read, write, self._limits)
        while len(self.partitions) < wanted:
            for partition in list(self.partitions):
                self._split(partition, now)
        shares = equal_shares(read, write, len(self.partitions))
        for hosted in self._hosted.values():
            hosted.write.allowance.grant(shares.write, 0.0, now)
            hosted.read.allowance.grant(shares.read, 0.0, now)

    def advance(self, now: float) -> None:
        """Split what has grown too large, and let adaptive capacity look, once a period."""
        if now < self._looks_at:
            return
        self._looks_at += self._assumed.adaptive_period
        for partition in list(self.partitions):
            if partition.bytes >= self._limits.partition_bytes:
                self._split(partition, now)
        for write in (True, False):
            if self._adapts:
                self._adapt(write, now)
            self._forget(write)

    def granted(self, *, write: bool) -> list[float]:
        """Return what each partition may consume steadily, units a second, in order of the keys."""
        return [self._hosted[part].side(write).allowance.granted for part in self.partitions]

    def saved(self, *, write: bool) -> list[float]:
        """Return the units that each partition has saved for bursts, as of its last request."""
        return [self._hosted[part].side(write).allowance.saved.tokens for part in self.partitions]

    def group_of(self, partition: Partition) -> Group:
        """Return the nodes that a partition's replicas are on."""
        return self._hosted[partition].group

    def _host(self, now: float) -> _Hosted:
        shares = equal_shares(self._read, self._write, len(self.partitions))
        return _Hosted(
            _Side(Allowance(shares.write, self._burst_seconds, now)),
            _Side(Allowance(shares.read, self._burst_seconds, now)),
            self.fleet.place(shares.write + self._tokens(shares.read, write=False)),
        )

    def _pay(self, hosted: _Hosted, units: float, now: float, *, write: bool) -> bool:
        allowance, tokens = hosted.side(write).allowance, self._tokens(units, write=write)
        if allowance.allocated.holds(units, whole=True):
            nodes = hosted.group if write else hosted.group[:1]
            return _spent(allowance.allocated, units, nodes, tokens, now)
        if not allowance.saved.holds(units, whole=False):
            return False
        if write:
            fits = has_room_to_write(hosted.group, tokens, now)
            return fits and _spent(allowance.saved, units, hosted.group, tokens, now)
        reader = free_reader(hosted.group, tokens, now)
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
                _Side(hosted.write.allowance.halved(now), since=hosted.write.since),
                _Side(hosted.read.allowance.halved(now), since=hosted.read.since),
                hosted.group,
            )

    def _adapt(self, write: bool, now: float) -> None:
        limit = self._limits.partition_wcu if write else self._limits.partition_rcu
        provisioned = self._write if write else self._read
        demands = [self._demand(hosted.side(write), now) for hosted in self._hosted.values()]
        wanted = boosts(demands, provisioned, limit, self._assumed)
        for hosted, boost in zip(self._hosted.values(), wanted, strict=True):
            self._boost(hosted, boost, now, write=write)

    def _demand(self, side: _Side, now: float) -> PartitionDemand:
        period = self._assumed.adaptive_period
        return PartitionDemand(
            consumed=side.consumed / period,
            throttled=side.throttled / period,
            share=side.allowance.share,
            boost=side.allowance.boost,
            throttled_for=0.0 if side.since is None else now - side.since,
        )

    def _boost(self, hosted: _Hosted, boost: float, now: float, *, write: bool) -> None:
        """Change a boost, as far as nodes have room for it; replicas move to where it is."""
        allowance = hosted.side(write).allowance
        more = self._tokens(boost - allowance.boost, write=write)
        held = hosted.write.allowance.granted + self._tokens(
            hosted.read.allowance.granted, write=False
        )
        hosted.group, given = self.fleet.make_room(hosted.group, held, more)
        boost = allowance.boost + (boost - allowance.boost) * (given / more if more else 1.0)
        allowance.grant(allowance.share, boost, now)

    def _forget(self, write: bool) -> None:
        for hosted in self._hosted.values():
            side = hosted.side(write)
            if not side.throttled:
                side.since = None
            side.consumed = side.throttled = 0.0


def _holds(limit: TokenBucket, units: float, now: float) -> bool:
    limit.fill(now)
    return limit.holds(units, whole=True)


def _spent(bucket: TokenBucket, units: float, nodes: Group, tokens: float, now: float) -> bool:
    bucket.tokens -= units
    spend(nodes, tokens, now)
    return True
