"""Adaptive capacity: more for a throttled partition, out of what the rest of the table does not use.

ATC22 section 4.1.2: where a table throttles although its throughput is not exceeded, a proportional
controller raises the allocation of the throttled partitions; where the table consumes more than it has,
boosts are reduced.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from dynamoheat.studies.generations.assumptions import Assumptions

__all__ = ["PartitionDemand", "boosts"]


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionDemand:
    """What one partition was asked for in a period, units a second."""

    consumed: float
    throttled: float
    share: float
    boost: float
    throttled_for: float  # seconds since it began


def boosts(
    demands: Sequence[PartitionDemand], provisioned: float, limit: float, assumed: Assumptions
) -> list[float]:
    """Return the new boost of each partition, in order.

    No grant exceeds `limit`, and what is added never exceeds what the table left unused.
    """
    consumed = sum(demand.consumed for demand in demands)
    if consumed > provisioned:
        return [demand.boost * provisioned / consumed for demand in demands]
    steps = [_step(demand, limit, assumed) for demand in demands]
    rise = sum(step for step in steps if step > 0)
    scale = min(1.0, (provisioned - consumed) / rise) if rise > 0 else 1.0
    return [
        demand.boost + (step * scale if step > 0 else step)
        for demand, step in zip(demands, steps, strict=True)
    ]


def _step(demand: PartitionDemand, limit: float, assumed: Assumptions) -> float:
    """Return how far the controller would move a boost, towards what the partition is asked for."""
    if not demand.boost and demand.throttled_for < assumed.adaptive_delay:
        return 0.0
    wanted = min(demand.consumed + demand.throttled, limit) - demand.share
    return assumed.adaptive_gain * (max(wanted, 0.0) - demand.boost)
