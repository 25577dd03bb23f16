"""What one read may take: time, and read units."""

from dataclasses import dataclass

from spillway.errors import InvalidInputError
from spillway.runtime import Runtime

__all__ = ["Budget"]


@dataclass(frozen=True, slots=True)
class Budget:
    """Bounds of one read; times in seconds of `Runtime.monotonic`.

    Attributes:
        deadline: requests are tried again until here.
        patience: no further round of requests begins after this.
        read_units: read units it may spend; None does not bound them. Items larger than those seen before may take a
            round beyond it.
    """

    deadline: float
    patience: float
    read_units: float | None = None

    @classmethod
    def lasting(cls, timeout: float, runtime: Runtime, read_units: float | None = None) -> "Budget":
        """Return a budget that ends `timeout` seconds from now.

        New rounds begin in its first half only, so that their requests, which may need retries, have the other half.
        InvalidInputError where there are no units to spend.
        """
        if read_units is not None and not read_units > 0:
            raise InvalidInputError("invalid_query", "max_rcu", "must be greater than 0")
        began = runtime.monotonic()
        return cls(began + timeout, began + timeout / 2, read_units)
