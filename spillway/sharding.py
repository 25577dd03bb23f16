"""Which shard an event goes to, and how many shards a rate needs."""

import math
from enum import StrEnum
from typing import Final

import xxhash

__all__ = [
    "MAX_SHARDS",
    "PARTITION_WCU",
    "ShardingMode",
    "is_power_of_two",
    "recommended_shards",
    "routing_hash",
    "shard_of",
    "shards_for",
]

MAX_SHARDS: Final = 256
PARTITION_WCU: Final = 1_000  # write units a second of one DynamoDB partition
_HEADROOM: Final = 4  # several shards can share a partition


class ShardingMode(StrEnum):
    """How a series spreads its events over its shards."""

    CALCULATED = "calculated"  # by hash: a reader knows the shard of an event
    RANDOM = "random"  # any shard count, but point reads ask every shard


def is_power_of_two(count: int) -> bool:
    """Tell whether a shard count leaves no shard empty under `hash & (count - 1)`."""
    return count >= 1 and count & (count - 1) == 0


def routing_hash(series: str, routing: str) -> int:
    """Return the 64-bit hash that decides the shard: xxh64 of `{series}:{routing}`, seed 0, UTF-8.

    `routing` is the sharding key where the event has one, else its whole sort key.
    Raises UnicodeEncodeError for lone surrogates.
    """
    return xxhash.xxh64_intdigest(f"{series}:{routing}".encode())


def shard_of(routing: int, shards: int) -> int:
    """Return the shard of a routing hash.

    Doubling `shards` moves it from s only to s or s + `shards`.
    """
    return routing & (shards - 1)


def shards_for(peak_writes_per_second: float, item_bytes: int) -> int:
    """Return the textbook floor of shards for a peak.

    Rate x write units an item / 1,000, rounded up.

    `peak_writes_per_second` counts distinct events; `item_bytes` is one stored item, billed in
    whole KB. Do not configure the floor: shards that share a partition throttle there (see
    `recommended_shards`). ValueError where either is not greater than 0.
    """
    return math.ceil(_write_units(peak_writes_per_second, item_bytes) / PARTITION_WCU)


def recommended_shards(peak_writes_per_second: float, item_bytes: int) -> int:
    """Return the shards to configure for a peak.

    Four times what the rate needs, up to a power of two.

    Arguments as for `shards_for`. On 40 partitions 16 shards carry 10,000 writes/s in 3 % of random
    placements, 32 in 71 %, 64 in 96 %.
    """
    units = _write_units(peak_writes_per_second, item_bytes)
    return 1 << (math.ceil(_HEADROOM * units / PARTITION_WCU) - 1).bit_length()


def _write_units(rate: float, item_bytes: int) -> float:
    if rate <= 0 or item_bytes <= 0:
        raise ValueError("the rate and the item's size must be greater than 0")
    return rate * math.ceil(item_bytes / 1024)
