"""Storage nodes, the replicas they host, and the buckets that isolate partitions on one node.

ATC22 section 4.1.1: a partition bursts only on what its node has left. A write needs tokens of all
nodes of its replication group, a read of any one. What is allocated to a partition is never refused
for its neighbours' sake: placement sees to it that allocations fit a node's capacity.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from dynamoheat.limits import TokenBucket
from dynamoheat.studies.generations.assumptions import DesignAssumptions, Neighbours

__all__ = [
    "NodeFleet",
    "ReplicationGroup",
    "StorageNode",
    "find_free_reader",
    "has_room_to_write",
    "reserve",
    "spend",
]


class StorageNode:
    """A storage node: tokens a second that its other tenants leave, and what is allocated on it."""

    __slots__ = ("allocated_rate", "bucket", "capacity", "zone")

    def __init__(
        self, zone: int, neighbours: Neighbours, assumptions: DesignAssumptions, now: float
    ) -> None:
        left = assumptions.node_capacity - neighbours.used_tokens
        depth = left * assumptions.node_bucket_seconds
        self.zone = zone
        self.capacity = assumptions.node_capacity
        self.allocated_rate = neighbours.allocated_tokens
        self.bucket = TokenBucket(left, depth, depth, now)

    @property
    def free_rate(self) -> float:
        """Tokens a second that are not allocated."""
        return self.capacity - self.allocated_rate


ReplicationGroup = tuple[StorageNode, ...]
"""The nodes of one partition's replicas, one a zone, the leader's first."""


def has_room_to_write(group: ReplicationGroup, tokens: float, now: float) -> bool:
    """Return whether every node of the group has tokens for a burst."""
    return all(node.bucket.fill(now) >= tokens for node in group)


def find_free_reader(group: ReplicationGroup, tokens: float, now: float) -> StorageNode | None:
    """Return the group's node with the most tokens, if it has enough for a burst."""
    freest = max(group, key=lambda node: node.bucket.fill(now))
    return freest if freest.bucket.tokens >= tokens else None


def spend(nodes: Sequence[StorageNode], tokens: float, now: float) -> None:
    """Take tokens, by debt if need be: allocated throughput is served first, bursts wait."""
    for node in nodes:
        node.bucket.fill(now)
        node.bucket.tokens -= tokens


@dataclass(slots=True)
class NodeFleet:
    """All nodes, zone by zone. Fills them in order; moves go to where there is most room."""

    zones: tuple[tuple[StorageNode, ...], ...]

    @classmethod
    def from_assumptions(cls, assumptions: DesignAssumptions, now: float) -> "NodeFleet":
        """Return the fleet of the assumptions."""
        return cls(
            tuple(
                tuple(
                    StorageNode(zone, neighbours, assumptions, now)
                    for neighbours in assumptions.neighbours
                )
                for zone in range(assumptions.zones)
            )
        )

    def place(self, tokens: float) -> ReplicationGroup:
        """Allocate a new partition's tokens a second on one node of each zone.

        It is the first node with room, or else the one with the most room.
        """
        group = tuple(
            next((node for node in zone if node.free_rate >= tokens), max(zone, key=_room))
            for zone in self.zones
        )
        reserve(group, tokens)
        return group

    def make_room(
        self, group: ReplicationGroup, granted: float, more: float
    ) -> tuple[ReplicationGroup, float]:
        """Allocate up to `more` tokens a second, moving replicas whose node has no room.

        The partition has `granted` already. Return the group after moves, and what of `more` all
        its nodes had room for.
        """
        if more <= 0:
            reserve(group, more)
            return group, more
        moved = tuple(self._roomier(node, granted, more) for node in group)
        for old, new in zip(group, moved, strict=True):
            old.allocated_rate -= granted
            new.allocated_rate += granted
        given = max(0.0, min(more, *(node.free_rate for node in moved)))
        reserve(moved, given)
        return moved, given

    def _roomier(self, node: StorageNode, granted: float, more: float) -> StorageNode:
        if node.free_rate >= more:
            return node
        best = max(self.zones[node.zone], key=_room)
        return best if best.free_rate - granted > node.free_rate else node


def reserve(group: ReplicationGroup, tokens: float) -> None:
    """Allocate tokens a second on every node of a group; a negative figure gives back."""
    for node in group:
        node.allocated_rate += tokens


def _room(node: StorageNode) -> float:
    return node.free_rate
