"""Target tracking: what Application Auto Scaling makes of a provisioned capacity, minute by minute.

DG, "Managing throughput capacity automatically with DynamoDB auto scaling": capacity rises when
consumption was above the target for two consecutive minutes, and falls when it was low for fifteen.
Throttled requests consume nothing, so a capacity that is far too small rises only by steps.
"""

from collections import deque
from dataclasses import dataclass
from math import ceil

__all__ = ["ScalingPolicy", "Tracker"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ScalingPolicy:
    """A scalable target and its policy; capacities in units a second. ValueError where AWS refuses it."""

    minimum: float
    maximum: float
    target: float = 0.7
    """Consumed share of what is provisioned that is aimed at: 0.2 to 0.9. [D] DG."""
    minutes_up: int = 2
    """Consecutive minutes above the target until capacity rises. [D] DG."""
    minutes_down: int = 15
    """Consecutive minutes below the target less `margin_down` until it falls. [D] DG."""
    margin_down: float = 0.2
    """[I] The alarm that is made for it: 20 points below the target."""
    cooldown_up: float = 0.0
    """Seconds after a rise in which only a larger one follows. [D] Application Auto Scaling: 0 for DynamoDB."""
    cooldown_down: float = 0.0
    """Seconds after a fall until the next; a rise ends them. [D] as above."""
    falls: bool = True
    """Whether capacity falls at all (DisableScaleIn)."""

    def __post_init__(self) -> None:
        if not 0.2 <= self.target <= 0.9:
            raise ValueError("target must be between 0.2 and 0.9")
        if not 1 <= self.minimum <= self.maximum:
            raise ValueError("minimum must be at least 1, and not above maximum")

    def bounded(self, capacity: float) -> float:
        """Return a capacity as whole units within the bounds."""
        return min(max(float(ceil(capacity - 1e-9)), self.minimum), self.maximum)


class Tracker:
    """Decides on one capacity: a table's or an index's, for writes or for reads."""

    def __init__(self, policy: ScalingPolicy) -> None:
        self.policy = policy
        kept = max(policy.minutes_up, policy.minutes_down)
        self._minutes: deque[float] = deque(maxlen=kept)
        self._rose_at, self._rose_by = float("-inf"), 0.0
        self._fell_at = float("-inf")

    def minute(self, consumed: float, provisioned: float, now: float) -> float:
        """Take a closed minute's consumption, units a second, and return the capacity to have from now on.

        A minute without consumption is none at all: CloudWatch has no data for it, so an idle capacity
        never falls ([D] DG). The new capacity puts the greatest of the minutes that led to it at the
        target ([U]).
        """
        if consumed <= 0:
            self._minutes.clear()
            return provisioned
        self._minutes.append(consumed)
        wanted = self._risen(provisioned)
        if wanted > provisioned:
            return self._rise(wanted, provisioned, now)
        wanted = self._fallen(provisioned)
        if wanted < provisioned and now >= self._fell_at + self.policy.cooldown_down:
            self._fell_at = now
            return wanted
        return provisioned

    def refused(self) -> None:
        """Take note that the last decision could not be carried out: its cooldown does not count."""
        self._fell_at = float("-inf")

    def _risen(self, provisioned: float) -> float:
        last = self._last(self.policy.minutes_up)
        if last and min(last) > self.policy.target * provisioned:
            return self.policy.bounded(max(last) / self.policy.target)
        return provisioned

    def _fallen(self, provisioned: float) -> float:
        last = self._last(self.policy.minutes_down)
        low = (self.policy.target - self.policy.margin_down) * provisioned
        if self.policy.falls and last and max(last) < low:
            return min(provisioned, self.policy.bounded(max(last) / self.policy.target))
        return provisioned

    def _rise(self, wanted: float, provisioned: float, now: float) -> float:
        cooling = now < self._rose_at + self.policy.cooldown_up
        if cooling and wanted - provisioned <= self._rose_by:
            return provisioned
        self._rose_at, self._rose_by = now, wanted - provisioned
        self._fell_at = float("-inf")
        return wanted

    def _last(self, minutes: int) -> list[float]:
        """Return the last minutes, or nothing where there are not so many yet."""
        return list(self._minutes)[-minutes:] if len(self._minutes) >= minutes else []
