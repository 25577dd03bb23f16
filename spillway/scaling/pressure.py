"""Pressure: what throttled a series' writes, from the reasons that DynamoDB gives. Pure."""

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from spillway.keys import INDEX_PARTITION_KEY, PARTITION_KEY, parse_index_key, parse_partition_key
from spillway.layouts.model import Layout
from spillway.scaling.observation import Cause, Observation, Side
from spillway.scaling.usage import Demand
from spillway.sharding import Mode
from spillway.storage.port import Item, ThrottledError, ThrottlingReason

__all__ = ["Pressure", "Throttled"]


@dataclass(frozen=True, slots=True)
class Throttled:
    """One write that throttled."""

    item: Item
    units: int
    sharding_key: str | None
    error: ThrottledError

    @property
    def partition(self) -> str:
        """The table's partition key it was for."""
        key: str = self.item[PARTITION_KEY]["S"]
        return key

    @property
    def index_partition(self) -> str:
        """The index's partition key it was for."""
        key: str = self.item[INDEX_PARTITION_KEY]["S"]
        return key


@dataclass(slots=True)
class Pressure:
    """What throttled, added up in write units.

    Attributes:
        table: units that key ranges of the table throttled, by shard.
        index: units that key ranges of the index throttled, by index shard.
        sharding_keys: units of `table` by sharding key.
        index_sharding_keys: units of `index` by sharding key.
        capacity: reasons that are no key range: provisioned, on-demand maximum, account.
        unexplained: writes that came back without a reason.
        epoch_id: the epoch that the writes were under, None where that is not known.
        new_units: units of events that key ranges throttled for the first time: retries are not demand.
    """

    table: Counter[int] = field(default_factory=Counter)
    index: Counter[int] = field(default_factory=Counter)
    sharding_keys: Counter[str] = field(default_factory=Counter)
    capacity: set[ThrottlingReason] = field(default_factory=set)
    unexplained: list[Throttled] = field(default_factory=list)
    index_sharding_keys: Counter[str] = field(default_factory=Counter)
    epoch_id: int | None = None
    new_units: int = 0

    @property
    def cause(self) -> Cause:
        """Why the writes throttled; a key range counts first, since only there growth helps."""
        if self.table or self.index:
            return Cause.KEY_RANGE
        return Cause.CAPACITY if self.capacity else Cause.UNKNOWN

    @classmethod
    def of(cls, writes: Iterable[Throttled]) -> "Pressure":
        """Add up writes."""
        pressure = cls()
        for write in writes:
            if write.error.reasons:
                pressure.explain(write, write.error.reasons)
            else:
                pressure.unexplained.append(write)
        return pressure

    def explain(self, write: Throttled, reasons: Iterable[ThrottlingReason]) -> None:
        """Count a write under the reasons that were given for it, or found out."""
        for reason in set(reasons):
            if "KeyRange" not in reason.reason:
                self.capacity.add(reason)
                continue
            if reason.reason.startswith("Index"):
                self.index[parse_index_key(write.index_partition).index_shard] += write.units
                keys = self.index_sharding_keys
            else:
                self.table[parse_partition_key(write.partition).shard] += write.units
                keys = self.sharding_keys
            if write.sharding_key is not None:
                keys[write.sharding_key] += write.units

    def explain_rest(self, reasons: Iterable[ThrottlingReason]) -> None:
        """Count all unexplained writes under reasons that were found for some of them."""
        found = tuple(reasons)
        for write in self.unexplained:
            self.explain(write, found)
        self.unexplained.clear()

    def on_its_sides(self, demand: Demand) -> float:
        """Return the units a second that a demand wants of what throttles: the table, the index, or the more of both."""
        table = demand.table_units if self.table else 0.0
        return max(table, demand.index_units if self.index else 0.0)

    def observation(self, layout: Layout, demand: Demand | None, now: float) -> Observation:
        """Return what there is to decide from about a layout, at a wall clock."""
        current = layout.current
        return Observation(
            table=self.table_side(current.shards, demand.table_units if demand else None),
            index=self.index_side(current.index_shards, demand.index_units if demand else None),
            any_count=current.mode is Mode.RANDOM,
            since_change=math.inf if layout.version == 1 else now - layout.last_updated,
        )

    def table_side(self, shards: int, demand: float | None) -> Side:
        """Return what was observed of the table."""
        return Side(
            shards=shards, demand=demand, throttled=self.table, key_shares=self.sharding_keys
        )

    def index_side(self, index_shards: int, demand: float | None) -> Side:
        """Return what was observed of the index."""
        return Side(
            shards=index_shards,
            demand=demand,
            throttled=self.index,
            key_shares=self.index_sharding_keys,
        )
