"""Settings of growth: how far one goes, and when."""

import math
from dataclasses import dataclass
from enum import StrEnum

from spillway.sharding import MAX_SHARDS, PARTITION_WCU

__all__ = ["Growth", "GrowthPolicy"]


class GrowthPolicy(StrEnum):
    """How far one growth goes."""

    DEMAND = "demand"  # to what the rate needs
    DOUBLE = "double"
    INCREMENT = "increment"  # by one, as the AWS blog does; only where any count is allowed


@dataclass(frozen=True, slots=True, kw_only=True)
class Growth:
    """Settings of growth; times in seconds.

    Attributes:
        policy: how far one growth goes; None switches growth by writers off.
        most_shards: counts never grow beyond it.
        most_step: factor of one growth at most.
        cooldown: between two changes of a layout.
        wait_least, wait_most: bounds of the random wait before a change.
        wait_shape: 0 draws the wait evenly; above, most draws are late and few early, so that of very many writers
            about one acts before the others see what it did.
        fill: share of what a layout carries at which it grows ahead of throttling; None waits for throttling.
        stop_for: how long growth rests after it was found not to help.
        partition_wcu: write units a second of one partition: DynamoDB's own, unless a local cloud is scaled down.
        patience: how long shards that suffice on paper are given, after a change, to work off what had to wait.
        sure_after: how long that must have been found before it counts: the record of a rate lags by a second.
    """

    policy: GrowthPolicy | None = GrowthPolicy.DEMAND
    most_shards: int = MAX_SHARDS
    most_step: int = 8
    cooldown: float = 1.0
    wait_least: float = 0.0
    wait_most: float = 0.4
    wait_shape: float = 8.0
    fill: float | None = 0.7
    stop_for: float = 60.0
    sure_after: float = 1.0
    patience: float = 3.0
    partition_wcu: float = PARTITION_WCU

    def __post_init__(self) -> None:
        if not 1 <= self.most_shards <= MAX_SHARDS:
            raise ValueError(f"most_shards must be 1 to {MAX_SHARDS}, not {self.most_shards}")
        if self.partition_wcu <= 0:
            raise ValueError(f"partition_wcu must be above 0, not {self.partition_wcu}")
        if self.most_step < 2:
            raise ValueError(f"most_step must be 2 or more, not {self.most_step}")
        if not 0 <= self.wait_least <= self.wait_most:
            raise ValueError("wait_least must be 0 to wait_most")
        if self.fill is not None and not 0 < self.fill <= 1:
            raise ValueError(f"fill must be above 0 and up to 1, not {self.fill}")

    def wait(self, random: float) -> float:
        """Return a random wait from a number in [0, 1): truncated exponential, rising (Nonnenmacher and Biersack, 1999)."""
        span = self.wait_most - self.wait_least
        if self.wait_shape == 0:
            return self.wait_least + span * random
        scaled = math.log1p(random * math.expm1(self.wait_shape)) / self.wait_shape
        return self.wait_least + span * scaled
