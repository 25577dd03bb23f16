"""What the paper leaves open about DynamoDB's earlier designs: each a named field with default and source.

Marks as in `dynamoheat.parameters`; ATC22 is the USENIX ATC 2022 paper "Amazon DynamoDB: a scalable,
predictably performant, and fully managed NoSQL database service", DG the DynamoDB developer guide.
Node tokens are in write units a second; a read unit costs as much of them as a partition's limits say.
"""

from dataclasses import dataclass, field

from dynamoheat.parameters import ModelParameters

__all__ = ["Assumptions", "Neighbours"]


@dataclass(frozen=True, slots=True)
class Neighbours:
    """Other tables' partitions on one storage node, in node tokens a second."""

    allocated: float
    used: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Assumptions:
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
    """The nodes of each zone, by who else is on them: three that are half idle, one whose neighbours use
    all that is theirs, one with room. [U] Placement fills them in this order."""

    adaptive_delay: float = 300.0
    """Throttling of a partition before adaptive capacity acts on it. [D] DG of 2018: "typically a 5-minute
    to 30-minute interval"; the least of it."""
    adaptive_period: float = 60.0
    """How often adaptive capacity compares demand with what is granted. [U]"""
    adaptive_gain: float = 0.5
    """Share of the difference that one comparison makes good. [U] ATC22: "a proportional control
    algorithm"."""

    routers: int = 8
    """Request routers that a table's traffic comes through. [U]"""
    router_interval: float = 2.0
    """Seconds of traffic that a router asks tokens for, and waits if it got less. [U] ATC22: "regular
    intervals (in the order of few seconds)"."""
    token_lifetime: float = 4.0
    """Seconds until a router's tokens expire. [U] ATC22: "time-limited"."""
