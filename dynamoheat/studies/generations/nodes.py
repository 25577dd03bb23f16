"""Storage nodes, the replicas they host, and the bucket that keeps co-resident partitions apart.

ATC22 section 4.1.1: a partition bursts only on what its node has left. A write is done by the whole
replication group, so all its nodes must have tokens; a read is done by one, so any will do. What is
allocated to a partition is never refused for its neighbours' sake, and placement sees to it that a node's
allocations fit its capacity.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from dynamoheat.buckets import TokenBucket
from dynamoheat.studies.generations.assumptions import Assumptions, Neighbours

__all__ = [
    "Group",
    "NodeFleet",
    "StorageNode",
    "free_reader",
    "has_room_to_write",
    "reserve",
    "spend",
]


class StorageNode:
    """A storage node: tokens a second that its other tenants leave, and what is allocated on it."""

    __slots__ = ("allocated", "bucket", "capacity", "zone")

    def __init__(self, zone: int, neighbours: Neighbours, assumed: Assumptions, now: float) -> None:
        left = assumed.node_capacity - neighbours.used
        depth = left * assumed.node_bucket_seconds
        self.zone = zone
        self.capacity = assumed.node_capacity
        self.allocated = neighbours.allocated
        self.bucket = TokenBucket(left, depth, depth, now)

    @property
    def room(self) -> float:
        """Tokens a second that are allocated to nobody."""
        return self.capacity - self.allocated


Group = tuple[StorageNode, ...]
"""The nodes of one partition's replicas, one a zone, the leader's first."""


def has_room_to_write(group: Group, tokens: float, now: float) -> bool:
    """Say whether every node of the group has tokens for a burst."""
    return all(node.bucket.fill(now) >= tokens for node in group)


def free_reader(group: Group, tokens: float, now: float) -> StorageNode | None:
    """Return the group's node with the most tokens, if it has enough for a burst."""
    freest = max(group, key=lambda node: node.bucket.fill(now))
    return freest if freest.bucket.tokens >= tokens else None


def spend(nodes: Sequence[StorageNode], tokens: float, now: float) -> None:
    """Take tokens whether or not they are there: what is allocated comes first, bursts wait."""
    for node in nodes:
        node.bucket.fill(now)
        node.bucket.tokens -= tokens


@dataclass(slots=True)
class NodeFleet:
    """All nodes, zone by zone. Fills them in order; moves go to where there is most room."""

    zones: tuple[tuple[StorageNode, ...], ...]

    @classmethod
    def assumed(cls, assumed: Assumptions, now: float) -> "NodeFleet":
        """Return the fleet of the assumptions."""
        return cls(
            tuple(
                tuple(
                    StorageNode(zone, neighbours, assumed, now) for neighbours in assumed.neighbours
                )
                for zone in range(assumed.zones)
            )
        )

    def place(self, tokens: float) -> Group:
        """Allocate a new partition's tokens a second in each zone: the first node with room, else the roomiest."""
        group = tuple(
            next((node for node in zone if node.room >= tokens), max(zone, key=_room))
            for zone in self.zones
        )
        reserve(group, tokens)
        return group

    def make_room(self, group: Group, granted: float, more: float) -> tuple[Group, float]:
        """Allocate up to `more` tokens a second beside `granted`, moving replicas whose node has no room.

        Returns the group as it is then, and what of `more` there was room for on all its nodes.
        """
        if more <= 0:
            reserve(group, more)
            return group, more
        moved = tuple(self._roomier(node, granted, more) for node in group)
        for old, new in zip(group, moved, strict=True):
            old.allocated -= granted
            new.allocated += granted
        given = max(0.0, min(more, *(node.room for node in moved)))
        reserve(moved, given)
        return moved, given

    def _roomier(self, node: StorageNode, granted: float, more: float) -> StorageNode:
        if node.room >= more:
            return node
        best = max(self.zones[node.zone], key=_room)
        return best if best.room - granted > node.room else node


def reserve(group: Group, tokens: float) -> None:
    """Allocate tokens a second on every node of a group; a negative figure gives back."""
    for node in group:
        node.allocated += tokens


def _room(node: StorageNode) -> float:
    return node.room
