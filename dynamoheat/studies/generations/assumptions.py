"""What every design is given: a new table, requests, and assumptions where the paper is silent.

Each assumption is a field with its default and source, marked as in `dynamoheat.parameters`. ATC22
is the USENIX ATC 2022 paper "Amazon DynamoDB: a scalable, predictably performant, and fully managed
NoSQL database service", DG the DynamoDB developer guide. Node tokens are in write units a second; a
read unit costs as much of them as a partition's limits say.
"""

from dataclasses import dataclass, field

from dynamoheat.parameters import ModelParameters
from dynamoheat.sizes import WRITE_UNIT_BYTES

__all__ = ["DesignAssumptions", "ItemRequest", "Neighbours", "NewTable"]


@dataclass(frozen=True, slots=True)
class Neighbours:
    """Other tables' partitions on one storage node, in node tokens a second."""

    allocated_tokens: float
    used_tokens: float


@dataclass(frozen=True, slots=True, kw_only=True)
class DesignAssumptions:
    """Today's limits, and seconds and node tokens of the designs before them."""

    limits: ModelParameters = field(default_factory=ModelParameters)
    """A partition's limits, bursts and splits are today's."""

    zones: int = 3
    """Availability zones, with one replica of each partition in each. [D] ATC22, section 3."""
    node_capacity: float = 4000.0
    """Node tokens a second that one storage node has for all its partitions. [U]"""
    node_bucket_seconds: float = 1.0
    """Depth of a node's bucket. [U]"""
    neighbours: tuple[Neighbours, ...] = (
        Neighbours(3000, 1500),
        Neighbours(3000, 1500),
        Neighbours(3000, 1500),
        Neighbours(3000, 3000),
        Neighbours(1000, 500),
    )
    """The nodes of each zone, by who else is on them: three that are half idle, one whose
    neighbours use all that is theirs, one with room. [U] Placement fills them in this order."""

    adaptive_delay_seconds: float = 300.0
    """Throttling of a partition before adaptive capacity acts on it. [D] DG of 2018: "typically a
    5-minute to 30-minute interval"; the least of it."""
    adaptive_period_seconds: float = 60.0
    """How often adaptive capacity compares demand with what is granted. [U]"""
    adaptive_gain: float = 0.5
    """Share of the difference that one comparison makes good. [U] ATC22: "a proportional control
    algorithm"."""

    routers: int = 8
    """Request routers that a table's traffic comes through. [U]"""
    router_interval_seconds: float = 2.0
    """Seconds of traffic that a router asks tokens for, and waits if it got less. [U] ATC22:
    "regular intervals (in the order of few seconds)"."""
    token_lifetime_seconds: float = 4.0
    """Seconds until a router's tokens expire. [U] ATC22: "time-limited"."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NewTable:
    """A new table: provisioned units a second, and the bytes that it holds already."""

    read: float
    write: float
    stored_bytes: float = 0.0
    now: float = 0.0


@dataclass(frozen=True, slots=True)
class ItemRequest:
    """A request for one item: its key, its capacity units, and the router it comes through."""

    key: str
    sort: str
    units: float
    router: int = 0

    @property
    def stored_bytes(self) -> float:
        """The size of the item that such a write stores."""
        return self.units * WRITE_UNIT_BYTES
