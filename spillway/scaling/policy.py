"""The scaling policy: pure functions from observations to decisions.

Writers, the scaler and simulations share it.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Final

from spillway.layouts.model import Layout
from spillway.settings import Growth, GrowthPolicy
from spillway.sharding import PARTITION_WCU

__all__ = [
    "GrowthStopReason",
    "ScalingDecision",
    "ScalingObservation",
    "SideObservation",
    "ThrottleKind",
    "ThrottleTarget",
    "cooldown_left",
    "decide_ahead_of_demand",
    "decide_on_throttle",
    "is_stopped",
    "shards_needed",
    "supported_units",
    "writes_enough",
]


class ThrottleTarget(StrEnum):
    """What throttles: the table's shards or the index's."""

    TABLE = "table"
    INDEX = "index"


class ThrottleKind(StrEnum):
    """Why DynamoDB throttles, as far as it decides what helps."""

    KEY_RANGE = "key_range"  # a partition: more shards help
    CAPACITY = "capacity"  # provisioned, on-demand maximum, account: no shard helps
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class SideObservation:
    """Observation of the table's shards, or of the index's.

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
class ScalingObservation:
    """What a decision is made from.

    Attributes:
        table, index: the observation of each side.
        any_count: random mode: the table's count need not be a power of two.
        since_change: seconds since the layout last changed.
    """

    table: SideObservation
    index: SideObservation
    any_count: bool = False
    since_change: float = math.inf


class GrowthStopReason(StrEnum):
    """Why growth stops although key ranges throttle."""

    HOT_SHARDING_KEY = "hot_sharding_key"  # one key's events share one shard: no count parts them
    TOO_FEW_PARTITIONS = "too_few_partitions"  # the shards suffice on paper
    MAX_SHARDS = "max_shards"


@dataclass(frozen=True, slots=True, kw_only=True)
class ScalingDecision:
    """Counts to set, None keeping one, or why no count helps; empty where nothing is to be done."""

    shards: int | None = None
    index_shards: int | None = None
    stop: GrowthStopReason | None = None
    hot_sharding_keys: tuple[str, ...] = ()

    @property
    def grows(self) -> bool:
        """Whether a count changes."""
        return self.shards is not None or self.index_shards is not None


def cooldown_left(layout: Layout, cooldown: float, now: float) -> float:
    """Return the seconds until the layout may change again; 0 for one that never changed."""
    if layout.version == 1:
        return 0.0
    # Clocks differ: the one who changed it may be ahead.
    return min(max(0.0, cooldown - (now - layout.last_updated)), cooldown)


def is_stopped(layout: Layout, stop_seconds: float, now: float) -> bool:
    """Return whether growth of this layout was found futile in the last `stop_seconds`."""
    if layout.stop is None or layout.stop.at < layout.last_updated:
        return False
    return now - layout.stop.at < stop_seconds


_SHARDS_A_PARTITION: Final = 4  # headroom for shards that land on the same partition
_MARGIN: Final = 1.25  # most rates that have just begun to be counted come out low
_BEYOND: Final = 1.001  # of a partition's rate: just more than one partition takes
_CONCENTRATED: Final = 0.5  # share of the throttled units that makes one key the cause


def shards_needed(demand: float, partition_wcu: float = PARTITION_WCU) -> int:
    """Return the shards for a demand in units a second: four a partition, up to a power of two."""
    return _power_of_two(_SHARDS_A_PARTITION * demand / partition_wcu)


def supported_units(shards: int, partition_wcu: float = PARTITION_WCU) -> float:
    """Return the units a second that a number of shards is meant to take."""
    return max(partition_wcu, shards * partition_wcu / _SHARDS_A_PARTITION)


def writes_enough(units: float, growth: Growth) -> bool:
    """Return whether a series that writes so many units a second may be what heats a key range.

    It may not where one shard is meant to take it, a quarter of a partition's rate. Others then
    heat its partition, and more shards of its own would only make its reads dearer.
    """
    return _count_shards(units, growth) > 1


def decide_on_throttle(observation: ScalingObservation, growth: Growth) -> ScalingDecision:
    """Decide when key ranges throttle.

    Grows the side that throttles, and in the same change the other side where demand needs it.
    """
    if growth.policy is None:
        return ScalingDecision()
    table_side, index_side = observation.table, observation.index
    table = _grow_throttled_side(table_side, observation, growth, any_count=observation.any_count)
    index = _grow_throttled_side(index_side, observation, growth, any_count=False)
    if isinstance(table, int) or isinstance(index, int):
        return ScalingDecision(
            shards=table
            if isinstance(table, int)
            else _grow_other_side(table_side, growth, observation),
            index_shards=index
            if isinstance(index, int)
            else _grow_other_side(index_side, growth, observation),
        )
    hot = [
        key
        for side, stop in ((table_side, table), (index_side, index))
        if stop is GrowthStopReason.HOT_SHARDING_KEY
        for key in _hot_keys(side)
    ]
    return ScalingDecision(stop=table or index, hot_sharding_keys=tuple(dict.fromkeys(hot)))


def decide_ahead_of_demand(observation: ScalingObservation, growth: Growth) -> ScalingDecision:
    """Decide before anything throttles: grow each side used beyond `Growth.max_utilization`."""
    if growth.policy is None or growth.max_utilization is None:
        return ScalingDecision()
    return ScalingDecision(
        shards=_grow_ahead(observation.table, growth, any_count=observation.any_count),
        index_shards=_grow_ahead(observation.index, growth, any_count=False),
    )


def _grow_throttled_side(
    side: SideObservation, observation: ScalingObservation, growth: Growth, *, any_count: bool
) -> int | GrowthStopReason | None:
    """Return the count that a side grows to, or why no count helps it.

    None where it does not throttle, or must first work off what had to wait.
    """
    if not side.throttled:
        return None
    # What throttles wants more than one partition gives.
    demand = max(_MARGIN * (side.demand or 0.0), _BEYOND * growth.partition_wcu)
    needed = max(2 * side.shards, _count_shards(demand, growth))
    grown = _step(side, needed, growth, any_count=any_count)
    sufficient = 2 if side.demand is None else _count_shards(side.demand, growth)
    # One request may hold one key's events only, so key shares count once the shards suffice for
    # the fleet. Shards chosen at random know no keys.
    at_its_end = side.shards > 1 and (side.shards >= sufficient or grown is None)
    if at_its_end and not any_count and _hot_keys(side):
        return GrowthStopReason.HOT_SHARDING_KEY
    if side.demand is not None and side.shards >= sufficient:
        if observation.since_change < growth.settling_seconds:
            return None
        if side.shards >= 2 * sufficient:
            return GrowthStopReason.TOO_FEW_PARTITIONS
    return GrowthStopReason.MAX_SHARDS if grown is None else grown


def _grow_other_side(
    side: SideObservation, growth: Growth, observation: ScalingObservation
) -> int | None:
    """Return what a side that does not throttle grows to in the same change, None where it stays.

    An index of unknown demand gets what the table throttled at, since a write costs both.
    """
    if side.throttled:
        return None
    is_table = side is observation.table
    if not is_table and side.demand is None:
        side = replace(side, demand=_BEYOND * growth.partition_wcu)
    return _grow_ahead(side, growth, any_count=observation.any_count and is_table)


def _grow_ahead(side: SideObservation, growth: Growth, *, any_count: bool) -> int | None:
    """Return what a side grows to by its demand alone, None where it stays."""
    if side.demand is None or growth.max_utilization is None:
        return None
    capacity = supported_units(side.shards, growth.partition_wcu)
    if side.demand <= growth.max_utilization * capacity:
        return None
    needed = _count_shards(side.demand / growth.max_utilization, growth)
    return _step(side, needed, growth, any_count=any_count)


def _count_shards(demand: float, growth: Growth) -> int:
    return shards_needed(demand, growth.partition_wcu)


def _hot_keys(side: SideObservation) -> tuple[str, ...]:
    throttled = sum(side.throttled.values())
    shares = sorted(side.key_shares.items(), key=lambda each: -each[1])
    return tuple(key for key, units in shares if units > _CONCENTRATED * throttled)


def _step(side: SideObservation, needed: int, growth: Growth, *, any_count: bool) -> int | None:
    """Return the count after one step of the policy towards what is needed; None without growth."""
    if growth.policy is GrowthPolicy.INCREMENT and any_count:
        return side.shards + 1 if side.shards < growth.max_shards else None
    towards = needed if growth.policy is GrowthPolicy.DEMAND else 2 * side.shards
    return _bounded(towards, side.shards, growth)


def _bounded(needed: int, shards: int, growth: Growth) -> int | None:
    """Return a growth within one step and `max_shards`; None where that leaves none."""
    count = min(needed, growth.max_step * shards, growth.max_shards)
    power = 1 << (count.bit_length() - 1)  # bounds may be any number; a step from an odd count, too
    return power if power > shards else None


def _power_of_two(count: float) -> int:
    return 1 << max(0, math.ceil(count) - 1).bit_length()
