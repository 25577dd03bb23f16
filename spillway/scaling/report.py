"""What the scaling of a series did, for logs and metrics."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from spillway.storage.port import ThrottlingReason

__all__ = ["Observer", "ScalingEvent", "ScalingKind", "ignore"]


class ScalingKind(StrEnum):
    """Kinds of scaling events."""

    GREW = "grew"
    LOST_RACE = "lost_race"  # another changed the layout first
    STOPPED = "stopped"  # key ranges throttle, and more shards would not help
    CAPACITY_LIMITED = (
        "capacity_limited"  # provisioned, on-demand maximum or account: never resharded
    )
    SHRANK = "shrank"
    WARMED = "warmed"  # warm throughput was raised, for more partitions
    PROVISIONED = "provisioned"  # provisioned throughput was raised
    AT_BOUND = "at_bound"  # capacity would have been raised, but for the configured bound
    READS_THROTTLED = "reads_throttled"  # no layout helps: advice for people
    LAYOUTS_THROTTLED = "layouts_throttled"  # the layout table itself


@dataclass(frozen=True, slots=True, kw_only=True)
class ScalingEvent:
    """One thing that scaling did or found.

    Attributes:
        kind: what.
        series: of which series; empty where it is about a whole table.
        shards, index_shards: counts before.
        new_shards, new_index_shards: counts after, as `shards` where nothing changed.
        reason: why, for people.
        hot_sharding_keys: sharding keys that no count can help.
        evidence: figures it was decided by, for people.
        dry_run: it was only decided, not done.
        throttling: reasons that DynamoDB gave, of `capacity_limited`.
    """

    kind: ScalingKind
    series: str = ""
    shards: int = 0
    index_shards: int = 0
    new_shards: int = 0
    new_index_shards: int = 0
    reason: str = ""
    evidence: str = ""
    dry_run: bool = False
    hot_sharding_keys: tuple[str, ...] = ()
    throttling: tuple[ThrottlingReason, ...] = ()


Observer = Callable[[ScalingEvent], None]
"""Told of every scaling event, in the thread that caused it; must be quick and not raise."""


def ignore(event: ScalingEvent) -> None:
    """Let a scaling event pass unseen."""
    del event
