"""Equal division: how many partitions a table had, and what each was allocated of its throughput.

The rules of the first design. ATC22 section 4 has the worked example: 3,200 WCU make four partitions of
800; raised to 3,600 they have 900 each; raised to 6,000 they split into eight of 750.
"""

from dataclasses import dataclass
from math import ceil

from dynamoheat.parameters import ModelParameters

__all__ = ["Shares", "equal_shares", "initial_partitions", "partitions_after"]


@dataclass(frozen=True, slots=True)
class Shares:
    """Units a second."""

    read: float
    write: float


def initial_partitions(
    read: float, write: float, stored_bytes: float = 0.0, limits: ModelParameters | None = None
) -> int:
    """Return the partitions of a new table: enough for its throughput and for its data, whichever is more.

    `max(ceil(RCU/3000 + WCU/1000), ceil(GB/10))`, the rule that AWS taught until 2017; at least one.
    """
    limits = limits or ModelParameters()
    by_throughput = read / limits.partition_rcu + write / limits.partition_wcu
    by_size = stored_bytes / limits.partition_bytes
    return max(1, ceil(by_throughput - 1e-9), ceil(by_size - 1e-9))


def partitions_after(
    count: int, read: float, write: float, limits: ModelParameters | None = None
) -> int:
    """Return how many partitions `count` become under new throughput: all split until it fits, none merge."""
    needed = initial_partitions(read, write, limits=limits)
    while count < needed:
        count *= 2
    return count


def equal_shares(read: float, write: float, count: int) -> Shares:
    """Return what each of `count` partitions is allocated."""
    return Shares(read / count, write / count)
