"""What the scaling policy decides from, and what it decides."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

__all__ = ["Cause", "Decision", "Observation", "Side", "Stop", "Target"]


class Target(StrEnum):
    """What throttles: the table's shards or the index's."""

    TABLE = "table"
    INDEX = "index"


class Cause(StrEnum):
    """Why DynamoDB throttles, as far as it decides what helps."""

    KEY_RANGE = "key_range"  # a partition: more shards help
    CAPACITY = "capacity"  # provisioned, on-demand maximum, account: no shard helps
    UNKNOWN = "unknown"


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
