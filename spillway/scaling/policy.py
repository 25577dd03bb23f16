"""The scaling policy: pure functions from what was observed to what to do, shared by writers, scaler and simulations."""

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
    "carried_units",
    "cooldown_left",
    "decide_ahead_of_demand",
    "decide_on_throttle",
    "is_stopped",
    "shards_needed",
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
class ScalingObservation:
    """What a decision is made from.

    Attributes:
        table, index: what was observed of either.
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
    """What to do: counts to set (None keeps one), or why nothing helps; neither where nothing is to be done."""

    shards: int | None = None
    index_shards: int | None = None
    stop: GrowthStopReason | None = None
    hot_sharding_keys: tuple[str, ...] = ()

    @property
    def grows(self) -> bool:
        """Whether a count changes."""
        return self.shards is not None or self.index_shards is not None


def cooldown_left(layout: Layout, cooldown: float, now: float) -> float:
    """Return seconds until the layout may change again; a layout that never changed may at once."""
    if layout.version == 1:
        return 0.0
    # Clocks differ: whoever changed it may be ahead.
    return min(max(0.0, cooldown - (now - layout.last_updated)), cooldown)


def is_stopped(layout: Layout, stop_seconds: float, now: float) -> bool:
    """Tell whether growth was found not to help this layout in the last `stop_seconds` seconds."""
    if layout.stop is None or layout.stop.at < layout.last_updated:
        return False
    return now - layout.stop.at < stop_seconds


_SHARDS_A_PARTITION: Final = 4  # headroom for shards that land on the same partition
_MARGIN: Final = 1.25  # of rates that have just begun to be counted, most come out low
_BEYOND: Final = 1.001  # of a partition's rate: just more than one partition takes
_CONCENTRATED: Final = 0.5  # share of the throttled units that makes one key the cause


def shards_needed(demand: float, partition_wcu: float = PARTITION_WCU) -> int:
    """Return the shards that carry a demand in units a second: four a partition's rate, up to a power of two."""
    return _power_of_two(_SHARDS_A_PARTITION * demand / partition_wcu)


def carried_units(shards: int, partition_wcu: float = PARTITION_WCU) -> float:
    """Return the units a second that a count is taken to carry."""
    return max(partition_wcu, shards * partition_wcu / _SHARDS_A_PARTITION)


def writes_enough(units: float, growth: Growth) -> bool:
    """Return whether a series that writes so many units a second may be what heats a key range.

    It may not where one shard is meant to carry it, a quarter of a partition's rate. What heats its
    partition is then written by others, and more shards of its own would only make its reads dearer.
    """
    return _wanted(units, growth) > 1


def decide_ahead_of_demand(seen: ScalingObservation, growth: Growth) -> ScalingDecision:
    """Decide before anything throttles: grow what is filled beyond `Growth.max_utilization`."""
    if growth.policy is None or growth.max_utilization is None:
        return ScalingDecision()
    return ScalingDecision(
        shards=_ahead(seen.table, growth, any_count=seen.any_count),
        index_shards=_ahead(seen.index, growth, any_count=False),
    )


def _ahead(side: SideObservation, growth: Growth, *, any_count: bool) -> int | None:
    if side.demand is None or growth.max_utilization is None:
        return None
    if side.demand <= growth.max_utilization * carried_units(side.shards, growth.partition_wcu):
        return None
    needed = _wanted(side.demand / growth.max_utilization, growth)
    return _step(side, needed, growth, any_count=any_count)


def decide_on_throttle(seen: ScalingObservation, growth: Growth) -> ScalingDecision:
    """Decide when key ranges throttle: grow the side that does, and with it the other where demand needs that too."""
    if growth.policy is None:
        return ScalingDecision()
    table = _relieved(seen.table, seen, growth, any_count=seen.any_count)
    index = _relieved(seen.index, seen, growth, any_count=False)
    if isinstance(table, int) or isinstance(index, int):
        return ScalingDecision(
            shards=table if isinstance(table, int) else _beside(seen.table, growth, seen),
            index_shards=index if isinstance(index, int) else _beside(seen.index, growth, seen),
        )
    outcomes = ((seen.table, table), (seen.index, index))
    hot = [
        key
        for side, why in outcomes
        if why is GrowthStopReason.HOT_SHARDING_KEY
        for key in _hot_keys(side)
    ]
    return ScalingDecision(stop=table or index, hot_sharding_keys=tuple(dict.fromkeys(hot)))


def _beside(side: SideObservation, growth: Growth, seen: ScalingObservation) -> int | None:
    """Return what a side that does not throttle grows to in the same change, None where it stays.

    An index of unknown demand gets what the table throttled at, since a write costs both.
    """
    if side.throttled:
        return None
    if side is seen.index and side.demand is None:
        side = replace(side, demand=_BEYOND * growth.partition_wcu)
    return _ahead(side, growth, any_count=seen.any_count and side is seen.table)


def _relieved(
    side: SideObservation, seen: ScalingObservation, growth: Growth, *, any_count: bool
) -> int | GrowthStopReason | None:
    """Return the count that a side grows to, or why none would help it; None where it does not throttle or must wait."""
    if not side.throttled:
        return None
    # What throttles wants more than one partition gives.
    needed = _wanted(max(_MARGIN * (side.demand or 0.0), _BEYOND * growth.partition_wcu), growth)
    grown = _step(side, max(2 * side.shards, needed), growth, any_count=any_count)
    enough = 2 if side.demand is None else _wanted(side.demand, growth)
    # One request may hold one key's events only, so what it shows counts once the shards suffice for the fleet. Chosen
    # at random, shards know no keys.
    at_its_end = side.shards > 1 and (side.shards >= enough or grown is None)
    if at_its_end and not any_count and _hot_keys(side):
        return GrowthStopReason.HOT_SHARDING_KEY
    if (
        side.demand is not None
        and side.shards >= enough
        and seen.since_change < growth.settling_seconds
    ):
        return None
    if side.demand is not None and side.shards >= 2 * enough:
        return GrowthStopReason.TOO_FEW_PARTITIONS
    return GrowthStopReason.MAX_SHARDS if grown is None else grown


def _wanted(demand: float, growth: Growth) -> int:
    return shards_needed(demand, growth.partition_wcu)


def _hot_keys(side: SideObservation) -> tuple[str, ...]:
    throttled = sum(side.throttled.values())
    shares = sorted(side.key_shares.items(), key=lambda each: -each[1])
    return tuple(key for key, units in shares if units > _CONCENTRATED * throttled)


def _step(side: SideObservation, needed: int, growth: Growth, *, any_count: bool) -> int | None:
    """Return the count after one step towards what is needed, as far as the policy goes; None where it can't."""
    if growth.policy is GrowthPolicy.INCREMENT and any_count:
        return side.shards + 1 if side.shards < growth.max_shards else None
    towards = needed if growth.policy is GrowthPolicy.DEMAND else 2 * side.shards
    return _bounded(towards, side.shards, growth)


def _bounded(needed: int, shards: int, growth: Growth) -> int | None:
    """Hold a growth to one step and the most shards; None where that leaves no growth."""
    count = min(needed, growth.max_step * shards, growth.max_shards)
    power = 1 << (count.bit_length() - 1)  # bounds may be any number; a step from an odd count, too
    return power if power > shards else None


def _power_of_two(count: float) -> int:
    return 1 << max(0, math.ceil(count) - 1).bit_length()
