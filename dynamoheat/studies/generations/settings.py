"""What every generation is asked: a table to open, and requests to admit."""

from dataclasses import dataclass

__all__ = ["Ask", "Opening"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Opening:
    """A table as it is created: throughput in units a second, and the bytes that it holds already."""

    read: float
    write: float
    stored_bytes: float = 0.0
    now: float = 0.0


@dataclass(frozen=True, slots=True)
class Ask:
    """A request for one item: its key, its capacity units, and the router that it came through."""

    key: str
    sort: str
    units: float
    router: int = 0

    @property
    def stored_bytes(self) -> float:
        """The size of the item that such a write stores."""
        return self.units * 1024
