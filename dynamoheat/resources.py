"""A table or a global index as a unit of capacity: partitions, limits, metrics, and their changes.

A local index has no capacity of its own: it uses its table's resource.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from math import ceil
from random import Random

from dynamoheat.limits import ThroughputLimits
from dynamoheat.metrics import KeyInsights, Meter
from dynamoheat.parameters import ModelParameters
from dynamoheat.partitions import Partition, Partitions, Position, best_cut
from dynamoheat.reasons import Throttle, ThrottleCause
from dynamoheat.settings import ThroughputSettings

__all__ = ["Resource", "Split"]


@dataclass(frozen=True, slots=True)
class Split:
    """A split that was done. `trigger` is size, throughput or heat."""

    at: float
    trigger: str  # size, throughput or heat
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
        throughput: ThroughputSettings,
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
        self.writes = ThroughputLimits(True, throughput, provisioned, limits, now)
        self.reads = ThroughputLimits(False, throughput, provisioned, limits, now)
        self.partitions = Partitions(self._needed_partitions(stored_bytes), self, limits, now)
        self.meter = Meter(limits.metric_period_seconds, now)
        self.insights = KeyInsights(limits.metric_period_seconds, limits.max_contributors, now)
        self.splits: list[Split] = []
        self.partitions_in_debt: dict[
            Partition, None
        ] = {}  # an index's partitions with pending updates, in order
        self._window_start = now

    def throttle(self, cause: ThrottleCause, *, write: bool) -> Throttle:
        """Return the throttle that this resource causes."""
        return Throttle(cause, self.table, self.index, write, self.provisioned)

    def update(self, throughput: ThroughputSettings, *, provisioned: bool, now: float) -> None:
        """Apply new throughput at once. Partitions are added, never removed."""
        self.provisioned = provisioned
        self.writes.change(throughput, provisioned, now)
        self.reads.change(throughput, provisioned, now)
        self._grow(now)

    def advance(self, now: float) -> None:
        """Close a heat window: record rates, add partitions, and do the splits that are due."""
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
            if not partition.is_split:
                self._track_heat(partition, elapsed, now)

    def pending_updates(self, now: float) -> float:
        """Return the units of an index's updates that wait for its partitions."""
        waiting = 0.0
        for partition in list(self.partitions_in_debt):
            tokens = partition.write.fill(now)
            if tokens >= 0:
                del self.partitions_in_debt[partition]
            else:
                waiting -= tokens
        return waiting

    def utilization(self, partition: Partition) -> tuple[float, float]:
        """Return what a partition consumed since the last window, in seconds at its limits."""
        limits = self._context.limits
        return (
            partition.write_units / limits.partition_wcu,
            partition.tokens_read / limits.partition_rcu,
        )

    def consumed_per_second(self, partition: Partition, now: float) -> tuple[float, float]:
        """Return a partition's write units and read tokens a second in this heat window.

        A window that has just begun counts as one second.
        """
        elapsed = max(now - self._window_start, 1.0)
        return partition.write_units / elapsed, partition.tokens_read / elapsed

    def _needed_partitions(self, stored_bytes: float = 0.0) -> int:
        limits = self._context.limits
        warm = max(
            self.writes.warm_throughput / limits.partition_wcu,
            self.reads.warm_throughput / limits.partition_rcu,
        )
        provisioned = (
            self.writes.provisioned / limits.partition_wcu
            + self.reads.provisioned / limits.partition_rcu
        )
        by_bytes = stored_bytes / limits.partition_bytes
        return max(1, ceil(max(warm, provisioned, by_bytes) - 1e-9))

    def _grow(self, now: float) -> None:
        while len(self.partitions) < self._needed_partitions():
            widest = self.partitions.widest()
            cut = self.partitions.middle(widest)
            if cut is None:
                return
            self._split(widest, cut, 0.5, "throughput", now)

    def _split_for_size(self, partition: Partition, now: float) -> None:
        if partition.bytes < self._context.limits.partition_bytes:
            return
        found = self._find_cut(partition)
        cut, share = found or (self.partitions.middle(partition), 0.5)
        if cut is not None:
            self._split(partition, cut, share, "size", now)

    def _track_heat(self, partition: Partition, elapsed: float, now: float) -> None:
        limits = self._context.limits
        hottest = max(self.utilization(partition)) / elapsed
        partition.consumed_write += partition.write_units
        partition.write_units = partition.tokens_read = 0.0
        if hottest >= limits.split_threshold:
            if partition.hot_since is None:
                partition.hot_since = now - elapsed
        elif partition.split_at is None:
            partition.cool()
        if partition.split_at is not None:
            if now >= partition.split_at:
                self._split_for_heat(partition, now)
        elif partition.has_been_hot(limits.split_detection_seconds, now) and self._may_split():
            partition.split_at = now + self._split_seconds()

    def _may_split(self) -> bool:
        under_way = sum(partition.split_at is not None for partition in self.partitions)
        return under_way < self._context.limits.max_concurrent_splits

    def _split_for_heat(self, partition: Partition, now: float) -> None:
        found = self._find_cut(partition)
        if found is None:
            partition.cool()
            partition.is_unsplittable = True
        else:
            self._split(partition, *found, "heat", now)

    def _split_seconds(self) -> float:
        limits = self._context.limits
        return self._context.random.uniform(limits.min_split_seconds, limits.max_split_seconds)

    def _find_cut(self, partition: Partition) -> tuple[Position, float] | None:
        min_share = self._context.limits.min_split_share
        found = best_cut(
            partition.traffic_sample, min_share, between_keys=not self.divides_collections
        )
        if found is None or not partition.low < found[0] < self.partitions.end(partition):
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
                child.stay_hot(partition, self.partitions.end(child))
        if partition in self.partitions_in_debt:
            del self.partitions_in_debt[partition]
            self.partitions_in_debt.update(dict.fromkeys(_owing(children)))


def _owing(partitions: Iterable[Partition]) -> Iterable[Partition]:
    return (part for part in partitions if part.write.tokens < 0)
