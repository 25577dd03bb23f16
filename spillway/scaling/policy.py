"""The scaling policy: pure functions from what was observed to what to do. Writer, scaler and simulations share it.

Rates are write units a second of *distinct* events: retries are not demand. A partition takes 1,000 a second
(`Growth.partition_wcu`), and several shards may share one, so a count is taken to carry a quarter of that a shard.
"""

import math
from dataclasses import replace
from typing import Final

from spillway.scaling.growth import Growth, GrowthPolicy
from spillway.scaling.observation import Decision, Observation, Side, Stop
from spillway.sharding import PARTITION_WCU

__all__ = ["ahead_of_demand", "carried", "on_throttle", "wanted", "writes_enough"]

_SHARDS_A_PARTITION: Final = 4  # headroom for shards that land on the same partition
_MARGIN: Final = 1.25  # of rates that have just begun to be counted, most come out low
_BEYOND: Final = 1.001  # of a partition's rate: just more than one partition takes
_CONCENTRATED: Final = 0.5  # share of the throttled units that makes one key the cause


def wanted(demand: float, partition_wcu: float = PARTITION_WCU) -> int:
    """Return the shards that carry a demand in units a second: four a partition's rate, up to a power of two."""
    return _power_of_two(_SHARDS_A_PARTITION * demand / partition_wcu)


def carried(shards: int, partition_wcu: float = PARTITION_WCU) -> float:
    """Return the units a second that a count is taken to carry."""
    return max(partition_wcu, shards * partition_wcu / _SHARDS_A_PARTITION)


def writes_enough(units: float, growth: Growth) -> bool:
    """Return whether a series that writes so many units a second may be what heats a key range.

    It may not where one shard is meant to carry it, a quarter of a partition's rate. What heats its
    partition is then written by others, and more shards of its own would only make its reads dearer.
    """
    return _wanted(units, growth) > 1


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
    if side.demand <= growth.fill * carried(side.shards, growth.partition_wcu):
        return None
    needed = _wanted(side.demand / growth.fill, growth)
    return _step(side, needed, growth, any_count=any_count)


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
        side = replace(side, demand=_BEYOND * growth.partition_wcu)
    return _ahead(side, growth, any_count=seen.any_count and side is seen.table)


def _relieved(
    side: Side, seen: Observation, growth: Growth, *, any_count: bool
) -> int | Stop | None:
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
        return Stop.HOT_SHARDING_KEY
    if side.demand is not None and side.shards >= enough and seen.since_change < growth.patience:
        return None
    if side.demand is not None and side.shards >= 2 * enough:
        return Stop.TOO_FEW_PARTITIONS
    return Stop.MOST_SHARDS if grown is None else grown


def _wanted(demand: float, growth: Growth) -> int:
    return wanted(demand, growth.partition_wcu)


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
