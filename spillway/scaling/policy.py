"""The scaling policy: pure functions from what was observed to what to do. Writer, scaler and simulations share it.

Rates are write units a second of *distinct* events: retries are not demand. A partition takes 1,000 a second, and several
shards may share one, so a count is taken to carry a quarter of that a shard (see `spillway.sharding`).
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Final

from spillway.sharding import MAX_SHARDS, PARTITION_WCU

__all__ = [
    "Cause",
    "Decision",
    "Growth",
    "GrowthPolicy",
    "Observation",
    "Side",
    "Stop",
    "Target",
    "ahead_of_demand",
    "carried",
    "on_throttle",
    "wanted",
]

_SHARDS_A_PARTITION: Final = 4  # headroom for shards that land on the same partition
_MARGIN: Final = (
    1.25  # rates of traffic that has just begun are low estimates more often than high ones
)
_CONCENTRATED: Final = 0.5  # share of the throttled units that makes one key the cause


class Target(StrEnum):
    """What throttles: the table's shards or the index's."""

    TABLE = "table"
    INDEX = "index"


class Cause(StrEnum):
    """Why DynamoDB throttles, as far as it decides what helps."""

    KEY_RANGE = "key_range"  # a partition: more shards help
    CAPACITY = "capacity"  # provisioned, on-demand maximum, account: no shard helps
    UNKNOWN = "unknown"


class GrowthPolicy(StrEnum):
    """How far one growth goes."""

    DEMAND = "demand"  # to what the rate needs
    DOUBLE = "double"
    INCREMENT = "increment"  # by one, as the AWS blog does; only where any count is allowed


@dataclass(frozen=True, slots=True, kw_only=True)
class Growth:
    """Settings of growth; times in seconds.

    Attributes:
        policy: how far one growth goes; None switches growth by writers off.
        most_shards: counts never grow beyond it.
        most_step: factor of one growth at most.
        cooldown: between two changes of a layout.
        wait_least, wait_most: bounds of the random wait before a change.
        wait_shape: 0 draws the wait evenly; above, most draws are late and few early, so that of very many writers
            about one acts before the others see what it did.
        fill: share of what a layout carries at which it grows ahead of throttling; None waits for throttling.
        stop_for: how long growth rests after it was found not to help.
        patience: how long shards that suffice on paper are given, after a change, to work off what had to wait.
        sure_after: how long that must have been found before it counts: the record of a rate lags by a second.
    """

    policy: GrowthPolicy | None = GrowthPolicy.DEMAND
    most_shards: int = MAX_SHARDS
    most_step: int = 8
    cooldown: float = 1.0
    wait_least: float = 0.0
    wait_most: float = 0.4
    wait_shape: float = 8.0
    fill: float | None = 0.7
    stop_for: float = 60.0
    sure_after: float = 1.0
    patience: float = 3.0

    def __post_init__(self) -> None:
        if not 1 <= self.most_shards <= MAX_SHARDS:
            raise ValueError(f"most_shards must be 1 to {MAX_SHARDS}, not {self.most_shards}")
        if self.most_step < 2:
            raise ValueError(f"most_step must be 2 or more, not {self.most_step}")
        if not 0 <= self.wait_least <= self.wait_most:
            raise ValueError("wait_least must be 0 to wait_most")
        if self.fill is not None and not 0 < self.fill <= 1:
            raise ValueError(f"fill must be above 0 and up to 1, not {self.fill}")

    def wait(self, random: float) -> float:
        """Return a random wait from a number in [0, 1): truncated exponential, rising (Nonnenmacher and Biersack, 1999)."""
        span = self.wait_most - self.wait_least
        if self.wait_shape == 0:
            return self.wait_least + span * random
        scaled = math.log1p(random * math.expm1(self.wait_shape)) / self.wait_shape
        return self.wait_least + span * scaled


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """What was observed of the table's shards, or of the index's.

    Attributes:
        shards: the count in force.
        demand: write units a second wanted, None where it is not known.
        throttled: units that key ranges throttled, by shard.
        key_shares: units of these by sharding key, of events that have one.
    """

    shards: int
    demand: float | None = None
    throttled: Mapping[int, float] = field(default_factory=dict)
    key_shares: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """What a decision is made from.

    Attributes:
        table, index: what was observed of either.
        any_count: random mode: the table's count need not be a power of two.
        since_change: seconds since the layout last changed.
    """

    table: Side
    index: Side
    any_count: bool = False
    since_change: float = math.inf


class Stop(StrEnum):
    """Why growth stops although key ranges throttle."""

    HOT_SHARDING_KEY = "hot_sharding_key"  # one key's events share one shard: no count parts them
    TOO_FEW_PARTITIONS = "too_few_partitions"  # the shards suffice on paper
    MOST_SHARDS = "most_shards"


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """What to do: counts to set (None keeps one), or why nothing helps; neither where nothing is to be done."""

    shards: int | None = None
    index_shards: int | None = None
    stop: Stop | None = None
    hot_sharding_keys: tuple[str, ...] = ()

    @property
    def grows(self) -> bool:
        """Whether a count changes."""
        return self.shards is not None or self.index_shards is not None


def wanted(demand: float) -> int:
    """Return the shards that carry a demand in units a second: four for each 1,000, up to a power of two."""
    return _power_of_two(_SHARDS_A_PARTITION * demand / PARTITION_WCU)


def carried(shards: int) -> float:
    """Return the units a second that a count is taken to carry."""
    return max(PARTITION_WCU, shards * PARTITION_WCU / _SHARDS_A_PARTITION)


def ahead_of_demand(seen: Observation, growth: Growth) -> Decision:
    """Decide before anything throttles: grow what is filled beyond `Growth.fill`."""
    if growth.policy is None or growth.fill is None:
        return Decision()
    return Decision(
        shards=_ahead(seen.table, growth, any_count=seen.any_count),
        index_shards=_ahead(seen.index, growth, any_count=False),
    )


def _ahead(side: Side, growth: Growth, *, any_count: bool) -> int | None:
    if side.demand is None or growth.fill is None:
        return None
    if side.demand <= growth.fill * carried(side.shards):
        return None
    return _step(side, wanted(side.demand / growth.fill), growth, any_count=any_count)


def on_throttle(seen: Observation, growth: Growth) -> Decision:
    """Decide when key ranges throttle: grow the side that does, and with it the other where demand needs that too."""
    if growth.policy is None:
        return Decision()
    table = _relieved(seen.table, seen, growth, any_count=seen.any_count)
    index = _relieved(seen.index, seen, growth, any_count=False)
    if isinstance(table, int) or isinstance(index, int):
        return Decision(
            shards=table if isinstance(table, int) else _beside(seen.table, growth, seen),
            index_shards=index if isinstance(index, int) else _beside(seen.index, growth, seen),
        )
    outcomes = ((seen.table, table), (seen.index, index))
    hot = [key for side, why in outcomes if why is Stop.HOT_SHARDING_KEY for key in _hot_keys(side)]
    return Decision(stop=table or index, hot_sharding_keys=tuple(dict.fromkeys(hot)))


def _beside(side: Side, growth: Growth, seen: Observation) -> int | None:
    """Return what a side that does not throttle grows to in the same change, None where it stays.

    An index of unknown demand gets what the table throttled at, since a write costs both.
    """
    if side.throttled:
        return None
    if side is seen.index and side.demand is None:
        side = replace(side, demand=PARTITION_WCU + 1)
    return _ahead(side, growth, any_count=seen.any_count and side is seen.table)


def _relieved(
    side: Side, seen: Observation, growth: Growth, *, any_count: bool
) -> int | Stop | None:
    """Return the count that a side grows to, or why none would help it; None where it does not throttle or must wait."""
    if not side.throttled:
        return None
    # What throttles wants more than one partition gives.
    needed = wanted(max(_MARGIN * (side.demand or 0.0), PARTITION_WCU + 1))
    grown = _step(side, max(2 * side.shards, needed), growth, any_count=any_count)
    enough = 2 if side.demand is None else wanted(side.demand)
    # One request may hold one key's events only, so what it shows counts once the shards suffice for the fleet. Chosen
    # at random, shards know no keys.
    at_its_end = side.shards > 1 and (side.shards >= enough or grown is None)
    if at_its_end and not any_count and _hot_keys(side):
        return Stop.HOT_SHARDING_KEY
    if side.demand is not None and side.shards >= enough and seen.since_change < growth.patience:
        return None
    if side.demand is not None and side.shards >= 2 * enough:
        return Stop.TOO_FEW_PARTITIONS
    return Stop.MOST_SHARDS if grown is None else grown


def _hot_keys(side: Side) -> tuple[str, ...]:
    throttled = sum(side.throttled.values())
    shares = sorted(side.key_shares.items(), key=lambda each: -each[1])
    return tuple(key for key, units in shares if units > _CONCENTRATED * throttled)


def _step(side: Side, needed: int, growth: Growth, *, any_count: bool) -> int | None:
    """Return the count after one step towards what is needed, as far as the policy goes; None where it can't."""
    if growth.policy is GrowthPolicy.INCREMENT and any_count:
        return side.shards + 1 if side.shards < growth.most_shards else None
    towards = needed if growth.policy is GrowthPolicy.DEMAND else 2 * side.shards
    return _bounded(towards, side.shards, growth)


def _bounded(needed: int, shards: int, growth: Growth) -> int | None:
    """Hold a growth to one step and the most shards; None where that leaves no growth."""
    count = min(needed, growth.most_step * shards, growth.most_shards)
    power = 1 << (count.bit_length() - 1)  # bounds may be any number; a step from an odd count, too
    return power if power > shards else None


def _power_of_two(count: float) -> int:
    return 1 << max(0, math.ceil(count) - 1).bit_length()
