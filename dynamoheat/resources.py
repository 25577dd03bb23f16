"""A table or a global index as capacity sees it: partitions, rates, counters, and how they change in time.

A local index has no capacity of its own: it is a `LocalIndex` that lends its table's.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from math import ceil
from random import Random

from dynamoheat.insights import KeyInsights
from dynamoheat.meters import Meter
from dynamoheat.observations import best_cut
from dynamoheat.parameters import ModelParameters
from dynamoheat.partitions import Partition, Partitions, Position
from dynamoheat.rates import Rates
from dynamoheat.reasons import Throttle, ThrottleCause
from dynamoheat.settings import ProvisionedThroughput

__all__ = ["Resource", "Split"]


@dataclass(frozen=True, slots=True)
class Split:
    """A split that happened."""

    at: float
    why: str  # size, throughput or heat
    parent: int
    children: tuple[int, int]
    cut: Position


@dataclass(slots=True, kw_only=True)
class _Context:
    limits: ModelParameters
    random: Random


class Resource:
    """A table (`index` None) or a global index."""

    def __init__(  # noqa: PLR0913  # one place makes them, by keyword
        self,
        table: str,
        index: str | None,
        throughput: ProvisionedThroughput,
        *,
        provisioned: bool,
        divides_collections: bool = True,
        stored_bytes: int = 0,
        limits: ModelParameters,
        random: Random,
        now: float,
    ) -> None:
        self.table = table
        self.index = index
        self.provisioned = provisioned
        self.divides_collections = divides_collections
        self._context = _Context(limits=limits, random=random)
        self.writes = Rates(True, throughput, provisioned, limits, now)
        self.reads = Rates(False, throughput, provisioned, limits, now)
        self.partitions = Partitions(self._wanted_partitions(stored_bytes), self, limits, now)
        self.meter = Meter(limits.metric_period_seconds, now)
        self.insights = KeyInsights(limits.metric_period_seconds, limits.contributors, now)
        self.splits: list[Split] = []
        self.indebted: dict[
            Partition, None
        ] = {}  # an index's partitions with waiting updates, in order
        self._window_start = now

    def throttle(self, cause: ThrottleCause, *, write: bool) -> Throttle:
        """Return the refusal that this resource causes."""
        return Throttle(cause, self.table, self.index, write, self.provisioned)

    def change(self, throughput: ProvisionedThroughput, *, provisioned: bool, now: float) -> None:
        """Take UpdateTable's new settings at once. Partitions are added, never removed."""
        self.provisioned = provisioned
        self.writes.change(throughput, provisioned, now)
        self.reads.change(throughput, provisioned, now)
        self._grow(now)

    def advance(self, now: float) -> None:
        """Close a heat window: learn rates, grow, and do the splits that are due."""
        elapsed = now - self._window_start
        if elapsed <= 0:
            return
        self._window_start = now
        self.meter.advance(now)
        self.writes.advance(self.meter.peak_write, now)
        self.reads.advance(self.meter.peak_read, now)
        self._grow(now)
        for partition in list(self.partitions):
            self._split_for_size(partition, now)
            if not partition.retired:
                self._watch(partition, elapsed, now)

    def behind(self, now: float) -> float:
        """Return the units of an index's updates that wait for its partitions."""
        waiting = 0.0
        for partition in list(self.indebted):
            tokens = partition.write.fill(now)
            if tokens >= 0:
                del self.indebted[partition]
            else:
                waiting -= tokens
        return waiting

    def shares_of(self, partition: Partition) -> tuple[float, float]:
        """Return what a partition consumed since the last window, as shares of its limits a second."""
        limits = self._context.limits
        return (
            partition.write_units / limits.partition_wcu,
            partition.read_tokens / limits.partition_rcu,
        )

    def per_second(self, partition: Partition, now: float) -> tuple[float, float]:
        """Return the write units and read tokens a second that a partition took in this heat window.

        A window that has just begun counts as one second long.
        """
        elapsed = max(now - self._window_start, 1.0)
        return partition.write_units / elapsed, partition.read_tokens / elapsed

    def _wanted_partitions(self, stored_bytes: float = 0.0) -> int:
        limits = self._context.limits
        warm = max(self.writes.warm / limits.partition_wcu, self.reads.warm / limits.partition_rcu)
        provisioned = (
            self.writes.provisioned / limits.partition_wcu
            + self.reads.provisioned / limits.partition_rcu
        )
        by_bytes = stored_bytes / limits.partition_bytes
        return max(1, ceil(max(warm, provisioned, by_bytes) - 1e-9))

    def _grow(self, now: float) -> None:
        while len(self.partitions) < self._wanted_partitions():
            widest = self.partitions.widest()
            cut = self.partitions.middle(widest)
            if cut is None:
                return
            self._split(widest, cut, 0.5, "throughput", now)

    def _split_for_size(self, partition: Partition, now: float) -> None:
        if partition.bytes < self._context.limits.partition_bytes:
            return
        found = self._cut(partition)
        cut, share = found or (self.partitions.middle(partition), 0.5)
        if cut is not None:
            self._split(partition, cut, share, "size", now)

    def _watch(self, partition: Partition, elapsed: float, now: float) -> None:
        limits = self._context.limits
        hottest = max(self.shares_of(partition)) / elapsed
        partition.consumed_write += partition.write_units
        partition.write_units = partition.read_tokens = 0.0
        if hottest >= limits.split_threshold:
            if partition.hot_since is None:
                partition.hot_since = now - elapsed
        elif partition.split_at is None:
            partition.cool()
        if partition.split_at is not None:
            if now >= partition.split_at:
                self._split_for_heat(partition, now)
        elif partition.has_been_hot(limits.split_detection_seconds, now) and self._may_split():
            partition.split_at = now + self._duration()

    def _may_split(self) -> bool:
        under_way = sum(partition.split_at is not None for partition in self.partitions)
        return under_way < self._context.limits.splits_at_once

    def _split_for_heat(self, partition: Partition, now: float) -> None:
        found = self._cut(partition)
        if found is None:
            partition.cool()
            partition.unsplittable = True
        else:
            self._split(partition, *found, "heat", now)

    def _duration(self) -> float:
        limits = self._context.limits
        return self._context.random.uniform(
            limits.split_minimum_seconds, limits.split_maximum_seconds
        )

    def _cut(self, partition: Partition) -> tuple[Position, float] | None:
        min_share = self._context.limits.split_min_share
        found = best_cut(partition.observed, min_share, between_keys=not self.divides_collections)
        if found is None or not partition.low < found[0] < self.partitions.high(partition):
            return None
        return found

    def _split(
        self, partition: Partition, cut: Position, share: float, why: str, now: float
    ) -> None:
        children = self.partitions.split(partition, cut, now, share)
        self.splits.append(
            Split(now, why, partition.number, (children[0].number, children[1].number), cut)
        )
        if why != "heat":
            for child in children:
                child.stay_hot(partition, self.partitions.high(child))
        if partition in self.indebted:
            del self.indebted[partition]
            self.indebted.update(dict.fromkeys(_owing(children)))


def _owing(partitions: Iterable[Partition]) -> Iterable[Partition]:
    return (part for part in partitions if part.write.tokens < 0)
