"""Flows: the traffic of one step on its way to partitions, and retries that wait for the next."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import accumulate
from random import Random
from weakref import WeakKeyDictionary

from dynamoheat.aggregated.key_distribution import KeyDistribution, KeySegment
from dynamoheat.aggregated.traffic import IndexEntries, Reads, Traffic, Writes
from dynamoheat.errors import UnknownTableError
from dynamoheat.partitions import Partition, Partitions, Position
from dynamoheat.reasons import Throttle
from dynamoheat.resources import Resource
from dynamoheat.tables import Index, Table

__all__ = [
    "Amounts",
    "FlowRefusal",
    "IndexBranch",
    "KeyRoute",
    "PartitionRouter",
    "TrafficDemand",
    "TrafficFlow",
]

Amounts = dict[Partition, float]
_Routes = WeakKeyDictionary[KeyDistribution, WeakKeyDictionary[Partitions, "KeyRoute"]]


class KeyRoute:
    """The share of keys' traffic that each partition of a table or an index gets. The sum is 1."""

    __slots__ = ("__weakref__", "_segments", "_weights", "partition_count", "shares")

    def __init__(self, segments: Iterable[KeySegment], partitions: Partitions, now: float) -> None:
        self.partition_count = len(partitions)
        self._segments: dict[Partition, list[KeySegment]] = {}
        for segment in segments:
            for partition, part in segment.divide(partitions, now):
                self._segments.setdefault(partition, []).append(part)
        self._weights: dict[Partition, list[float]] = {}
        sums = {
            part: sum(segment.share for segment in found) for part, found in self._segments.items()
        }
        total = sum(sums.values())
        self.shares = {partition: share / total for partition, share in sums.items()}

    def sample(self, partition: Partition, random: Random, now: float) -> Position:
        """Return the position of one unit of a partition's traffic, at random."""
        segments = self._segments[partition]
        if len(segments) == 1:
            return segments[0].sample(random, now)
        weights = self._weights.get(partition)
        if weights is None:
            weights = list(accumulate(segment.share for segment in segments))
            self._weights[partition] = weights
        return random.choices(segments, cum_weights=weights)[0].sample(random, now)

    def successors(self, partition: Partition, units: float) -> Iterator[tuple[Partition, float]]:
        """Yield the current successors of a partition, with its units divided among them."""
        if not partition.is_split:
            yield partition, units
            return
        heirs = [heir for heir in _leaves(partition) if heir in self.shares]
        total = sum(self.shares[heir] for heir in heirs)
        for heir in heirs:
            yield heir, units * self.shares[heir] / total


class PartitionRouter:
    """Routes by keys.

    A route is recomputed only after a split, and kept as long as its keys are.
    """

    def __init__(self) -> None:
        self._routes: _Routes = WeakKeyDictionary()

    def find_route(
        self, keys: KeyDistribution, partitions: Partitions, now: float, *, sortable: bool
    ) -> KeyRoute:
        """Return the route of keys in a table or an index. O(keys) after a split, else O(1)."""
        routes = self._routes.setdefault(keys, WeakKeyDictionary())
        found = routes.get(partitions)
        if found is None or found.partition_count != len(partitions):
            found = KeyRoute(keys.segments(sortable=sortable), partitions, now)
            routes[partitions] = found
        return found


@dataclass(slots=True, eq=False)
class IndexBranch:
    """The entries that a flow writes to a global index."""

    resource: Resource
    route: KeyRoute
    units_per_table_unit: float
    bytes_per_unit: float  # growth, for each unit of the index


@dataclass(frozen=True, slots=True, eq=False)
class FlowRefusal:
    """Units throttled for one reason, by partition."""

    throttle: Throttle
    amounts: Amounts
    is_by_partition: bool  # else by a limit of the whole table

    @property
    def units(self) -> float:
        """All throttled units."""
        return sum(self.amounts.values())


@dataclass(slots=True, eq=False)
class TrafficFlow:
    """The units that one traffic offers in one step, by partition, and what becomes of them."""

    traffic: Traffic
    route: KeyRoute
    offered_units: Amounts
    retried_units: float  # of `offered_units`, throttled before
    extra_per_unit: float  # bytes of growth of a write, tokens of a read
    branches: tuple[IndexBranch, ...] = ()
    admitted_units: Amounts = field(default_factory=dict)
    refusals: list[FlowRefusal] = field(default_factory=list)

    @property
    def total_units(self) -> float:
        """All offered units."""
        return sum(self.offered_units.values())

    @property
    def refused_units(self) -> Amounts:
        """Throttled units, by partition."""
        sums: Amounts = {}
        for refusal in self.refusals:
            for partition, units in refusal.amounts.items():
                sums[partition] = sums.get(partition, 0.0) + units
        return sums


class TrafficDemand:
    """Routes traffic to partitions, and keeps throttled units that are retried in the next step."""

    def __init__(self) -> None:
        self._router = PartitionRouter()
        self._waiting: dict[Traffic, Amounts] = {}

    def pending_and_new(self, new: Iterable[Traffic]) -> Iterable[Traffic]:
        """Return the traffic that has pending retries or new units, each once."""
        return {**dict.fromkeys(self._waiting), **dict.fromkeys(new)}

    def waiting_units(self, traffic: Traffic) -> float:
        """Return the units of a traffic that wait for another try."""
        return sum(self._waiting.get(traffic, {}).values())

    def route_writes(self, traffic: Writes, table: Table, units: float, now: float) -> TrafficFlow:
        """Return the flow of a table's new and retried writes.

        UnknownTableError if an index does not exist; ValueError if it is a local one.
        """
        branches = tuple(
            self._index_branch(traffic, name, entries, table, now)
            for name, entries in traffic.indexes.items()
        )
        route = self._route(traffic.keys, table, now)
        offered, retried = self._offered_units(traffic, route, units)
        return TrafficFlow(traffic, route, offered, retried, traffic.bytes_per_unit, branches)

    def route_reads(self, traffic: Reads, table: Table, units: float, now: float) -> TrafficFlow:
        """Return the flow of new and retried reads of a table or an index."""
        of = table if traffic.index is None else _index(table, traffic.index)
        route = self._route(traffic.keys, of, now)
        offered, retried = self._offered_units(traffic, route, units)
        return TrafficFlow(
            traffic, route, offered, retried, table.tokens_for_read(1.0, traffic.consistency)
        )

    def keep_refused(self, flow: TrafficFlow) -> None:
        """Keep a flow's throttled units for the next step, if they are retried."""
        refused = flow.refused_units if flow.traffic.is_retried else {}
        if refused:
            self._waiting[flow.traffic] = refused
        else:
            self._waiting.pop(flow.traffic, None)

    def forget(self, table: str, index: str | None = None) -> None:
        """Drop pending retries of a table, or only those that use one of its indexes."""
        self._waiting = {
            traffic: amounts
            for traffic, amounts in self._waiting.items()
            if traffic.table != table or (index is not None and not _uses_index(traffic, index))
        }

    def _route(self, keys: KeyDistribution, of: Table | Index, now: float) -> KeyRoute:
        sortable = of.sort_name is not None
        return self._router.find_route(keys, of.resource.partitions, now, sortable=sortable)

    def _offered_units(
        self, traffic: Traffic, route: KeyRoute, units: float
    ) -> tuple[Amounts, float]:
        offered = {partition: units * share for partition, share in route.shares.items()}
        waiting = self._waiting.get(traffic, {})
        for partition, old in waiting.items():
            for heir, part in route.successors(partition, old):
                offered[heir] += part
        return offered, sum(waiting.values())

    def _index_branch(
        self, traffic: Writes, name: str, entries: IndexEntries, table: Table, now: float
    ) -> IndexBranch:
        index = _index(table, name)
        if index.is_local:
            raise ValueError("a local index has no entries of its own: add their units to the rate")
        route = self._route(entries.keys, index, now)
        units, growth = traffic.entry_units(entries), traffic.entry_bytes_per_unit(entries)
        return IndexBranch(index.resource, route, units, growth)


def _index(table: Table, name: str) -> Index:
    found = table.indexes.get(name)
    if found is None:
        raise UnknownTableError(f"{table.name}/index/{name}")
    return found


def _uses_index(traffic: Traffic, index: str) -> bool:
    if isinstance(traffic, Writes):
        return index in traffic.indexes
    return isinstance(traffic, Reads) and traffic.index == index


def _leaves(partition: Partition) -> Iterator[Partition]:
    if not partition.is_split:
        yield partition
    for child in partition.children:
        yield from _leaves(child)
