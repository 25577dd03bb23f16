"""The shape of what a stage decides about its cache."""

from dataclasses import dataclass

__all__ = ["CacheSettings"]


@dataclass(frozen=True, kw_only=True, slots=True)
class CacheSettings:
    """A DAX cluster, and the network that it and the function that reads through it stand in."""

    nodes: int  # three survive the loss of a zone without a pause
    node_type: str
    zones: int  # availability zones with a subnet each
    item_ttl_seconds: int = 10  # of layouts: what DAX adds to the age of what a read sees
    query_ttl_seconds: int = 30  # of closed ranges of events
    cidr: str = "10.0.0.0/24"
    subnet_bits: int = 26  # 59 addresses: a node each, and a few interfaces of functions

    def __post_init__(self) -> None:
        """Refuse what only a deployment would find wrong."""
        if not 1 <= self.nodes <= 11:
            raise ValueError(f"a DAX cluster has 1 to 11 nodes, not {self.nodes}")
        if min(self.zones, self.item_ttl_seconds, self.query_ttl_seconds) < 1:
            raise ValueError("zones and TTLs of a cache are 1 or more: a TTL of 0 keeps forever")
