"""Evidence of throttling: its reasons added up, or CloudWatch figures where none is given."""

import math
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from spillway.dynamodb.port import Item, StorageError, ThrottledError, ThrottlingReason
from spillway.keys import INDEX_PARTITION_KEY, PARTITION_KEY, parse_index_key, parse_partition_key
from spillway.layouts.model import Layout
from spillway.memo import Memo
from spillway.scaling.policy import (
    ScalingObservation,
    SideObservation,
    ThrottleKind,
    ThrottleTarget,
)
from spillway.scaling.usage import WriteDemand
from spillway.sharding import ShardingMode

__all__ = [
    "CapacityCheck",
    "CapacityMetrics",
    "CapacityUse",
    "Crowding",
    "ThrottleSummary",
    "ThrottledRates",
    "ThrottledWrite",
    "infer_reasons",
]


@dataclass(frozen=True, slots=True)
class ThrottledWrite:
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
class ThrottleSummary:
    """What throttled, added up in write units.

    Attributes:
        table: units that key ranges of the table throttled, by shard.
        index: units that key ranges of the index throttled, by index shard.
        sharding_keys: units of `table` by sharding key.
        index_sharding_keys: units of `index` by sharding key.
        capacity: reasons that are no key range: provisioned, on-demand maximum, account.
        unexplained: writes that came back without a reason.
        epoch_id: the epoch that the writes were under, None where that is not known.
        new_units: units of events that key ranges throttled for the first time: retries are not
        demand.
    """

    table: Counter[int] = field(default_factory=Counter)
    index: Counter[int] = field(default_factory=Counter)
    sharding_keys: Counter[str] = field(default_factory=Counter)
    capacity: set[ThrottlingReason] = field(default_factory=set)
    unexplained: list[ThrottledWrite] = field(default_factory=list)
    index_sharding_keys: Counter[str] = field(default_factory=Counter)
    epoch_id: int | None = None
    new_units: int = 0

    @property
    def cause(self) -> ThrottleKind:
        """Why the writes throttled; a key range counts first, since only there growth helps."""
        if self.table or self.index:
            return ThrottleKind.KEY_RANGE
        return ThrottleKind.CAPACITY if self.capacity else ThrottleKind.UNKNOWN

    @classmethod
    def of(cls, writes: Iterable[ThrottledWrite]) -> "ThrottleSummary":
        """Add up writes."""
        throttles = cls()
        for write in writes:
            if write.error.reasons:
                throttles.explain(write, write.error.reasons)
            else:
                throttles.unexplained.append(write)
        return throttles

    def explain(self, write: ThrottledWrite, reasons: Iterable[ThrottlingReason]) -> None:
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

    def explain_remaining(self, reasons: Iterable[ThrottlingReason]) -> None:
        """Count all unexplained writes under reasons that were found for some of them."""
        found = tuple(reasons)
        for write in self.unexplained:
            self.explain(write, found)
        self.unexplained.clear()

    def demand_on_throttled(self, demand: WriteDemand) -> float:
        """Return the demanded units a second of what throttles: table, index, or the higher one."""
        table = demand.table_units if self.table else 0.0
        return max(table, demand.index_units if self.index else 0.0)

    def observation(
        self, layout: Layout, demand: WriteDemand | None, now: float
    ) -> ScalingObservation:
        """Return the observation of a layout at a wall clock time."""
        current = layout.current
        return ScalingObservation(
            table=self.table_side(current.shards, demand.table_units if demand else None),
            index=self.index_side(current.index_shards, demand.index_units if demand else None),
            any_count=current.mode is ShardingMode.RANDOM,
            since_change=math.inf if layout.version == 1 else now - layout.last_updated,
        )

    def table_side(self, shards: int, demand: float | None) -> SideObservation:
        """Return the observation of the table."""
        return SideObservation(
            shards=shards, demand=demand, throttled=self.table, key_shares=self.sharding_keys
        )

    def index_side(self, index_shards: int, demand: float | None) -> SideObservation:
        """Return the observation of the index."""
        return SideObservation(
            shards=index_shards,
            demand=demand,
            throttled=self.index,
            key_shares=self.index_sharding_keys,
        )


_NEAR: Final = 0.8  # share of the provisioned capacity; consumption is known as a mean over minutes
_READ_SECONDS: Final = 60.0  # between reads: the metrics have a new figure a minute
_SIDES: Final = {ThrottleTarget.TABLE: "Table", ThrottleTarget.INDEX: "Index"}


@dataclass(frozen=True, slots=True)
class CapacityUse:
    """Write units a second that were consumed lately, and that are provisioned; None on demand."""

    consumed: float
    provisioned: float | None


CapacityMetrics = Callable[[], Mapping[ThrottleTarget, CapacityUse]]
"""Returns the use of table and index capacity. Raises StorageError."""


def infer_reasons(uses: Mapping[ThrottleTarget, CapacityUse]) -> tuple[ThrottlingReason, ...]:
    """Return the reasons that DynamoDB would name for throttled writes, inferred from capacity.

    Where neither the table nor the index comes near its provisioned capacity, key ranges of
    both are what is left. The policy grows the side that is short for the rate. On demand, nothing
    else can be inferred.
    """
    short = [target for target, use in uses.items() if _is_used_up(use)]
    limit = "Provisioned" if short else "KeyRange"
    return tuple(
        ThrottlingReason(f"{_SIDES[target]}Write{limit}ThroughputExceeded", "")
        for target in short or ThrottleTarget
    )


def _is_used_up(use: CapacityUse) -> bool:
    return use.provisioned is not None and use.consumed >= _NEAR * use.provisioned


class CapacityCheck:
    """Reads the metrics once a minute at most. Thread-safe: at worst two threads read at once."""

    def __init__(self, metrics: CapacityMetrics, monotonic: Callable[[], float]) -> None:
        self._metrics = metrics
        self._monotonic = monotonic
        self._known: tuple[float, tuple[ThrottlingReason, ...]] | None = None

    def reasons(self) -> tuple[ThrottlingReason, ...]:
        """Return the reasons inferred from the latest figures, none where these are missing."""
        now = self._monotonic()
        if self._known is None or now - self._known[0] >= _READ_SECONDS:
            self._known = now, self._read()
        return self._known[1]

    def _read(self) -> tuple[ThrottlingReason, ...]:
        try:
            return infer_reasons(self._metrics())
        except StorageError:
            return ()


_SPAN: Final = 1.0  # seconds that a rate is averaged over
_MAX_PAUSE: Final = 5.0  # seconds without a throttled write after which crowding is over
_MIN_DURATION: Final = 10.0  # seconds: a hot neighbour is relieved long before


class ThrottledRates:
    """Units a second of each series that key ranges throttled in this process. Thread-safe.

    Exponentially weighted sums over about a second, so that one request that comes at once counts
    in full.
    """

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self._sums: Memo[tuple[float, float]] = Memo()  # the sum, and when it was that

    def __len__(self) -> int:
        return len(self._sums)

    def add(self, series: str, units: float) -> float:
        """Count units that throttled for the first time; return the series' rate with them."""
        now = self._monotonic()

        def add_decayed(before: tuple[float, float] | None) -> tuple[float, float]:
            total, at = before or (0.0, now)
            return total * math.exp(-max(0.0, now - at) / _SPAN) + units, now

        return self._sums.update(series, add_decayed)[0] / _SPAN


class Crowding:
    """Detects lasting throttling of series that write too little to be the cause. Thread-safe.

    Where a hot neighbour is the cause, that ends once the neighbour has grown. Where it lasts, the
    table is short of partitions, or one of them holds too many busy keys.
    """

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self._since = self._last = -math.inf
        self._lock = threading.Lock()

    def is_lasting(self) -> bool:
        """Count one such throttle; return whether they have gone on for ten seconds."""
        with self._lock:
            now = self._monotonic()
            if now - self._last > _MAX_PAUSE:
                self._since = now
            self._last = now
            return now - self._since >= _MIN_DURATION
