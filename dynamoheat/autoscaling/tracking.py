"""Target tracking and the quota on decreases: what Auto Scaling makes of one capacity.

DG, "Managing throughput capacity automatically with DynamoDB auto scaling": capacity rises after
two consecutive minutes of consumption above the target, and falls after fifteen low ones.
Throttled requests consume nothing, so a capacity that is far too small rises only by steps.
"""

from collections import deque
from dataclasses import dataclass
from math import ceil, floor
from typing import Final

__all__ = ["CapacityTracker", "DecreaseQuota", "TargetTrackingPolicy"]

_AT_FIRST: Final = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetTrackingPolicy:
    """A scalable target and its policy; capacities in units a second.

    ValueError where AWS refuses it.
    """

    min_capacity: float
    max_capacity: float
    target: float = 0.7
    """Target share of provisioned capacity that is consumed: 0.2 to 0.9. [D] DG."""
    scale_out_minutes: int = 2
    """Consecutive minutes above the target before capacity rises. [D] DG."""
    scale_in_minutes: int = 15
    """Consecutive minutes below the target less `scale_in_margin` before capacity falls. [D] DG."""
    scale_in_margin: float = 0.2
    """[I] The alarm that Auto Scaling creates: 20 points below the target."""
    scale_out_cooldown_seconds: float = 0.0
    """Seconds after a rise in which only a larger one follows. [D] Application Auto Scaling: 0 for
    DynamoDB.
    """
    scale_in_cooldown_seconds: float = 0.0
    """Seconds between two decreases; an increase ends them. [D] As above."""
    scales_in: bool = True
    """Whether capacity falls at all (the opposite of DisableScaleIn)."""

    def __post_init__(self) -> None:
        if not 0.2 <= self.target <= 0.9:
            raise ValueError("target must be between 0.2 and 0.9")
        if not 1 <= self.min_capacity <= self.max_capacity:
            raise ValueError("min_capacity must be at least 1, and not above max_capacity")

    def clamp(self, capacity: float) -> float:
        """Return a capacity as whole units within the bounds."""
        return min(max(float(ceil(capacity - 1e-9)), self.min_capacity), self.max_capacity)


class CapacityTracker:
    """Decides on one capacity: a table's or an index's, for writes or for reads."""

    def __init__(self, policy: TargetTrackingPolicy) -> None:
        self.policy = policy
        kept = max(policy.scale_out_minutes, policy.scale_in_minutes)
        self._minutes: deque[float] = deque(maxlen=kept)
        self._scaled_out_at, self._scaled_out_by = float("-inf"), 0.0
        self._scaled_in_at = float("-inf")

    def update(self, consumed: float, provisioned: float, now: float) -> float:
        """Return the capacity to have after a closed minute that consumed units a second.

        CloudWatch has no data for a minute without consumption, so an idle capacity never falls
        ([D] DG). The new capacity puts the highest of the minutes that led to it at the target
        ([U]).
        """
        if consumed <= 0:
            self._minutes.clear()
            return provisioned
        self._minutes.append(consumed)
        wanted = self._capacity_up(provisioned)
        if wanted > provisioned:
            return self._scale_out(wanted, provisioned, now)
        wanted = self._capacity_down(provisioned)
        if (
            wanted < provisioned
            and now >= self._scaled_in_at + self.policy.scale_in_cooldown_seconds
        ):
            self._scaled_in_at = now
            return wanted
        return provisioned

    def revert_decrease(self) -> None:
        """Forget the last decrease, which could not be done: its cooldown does not count."""
        self._scaled_in_at = float("-inf")

    def _capacity_up(self, provisioned: float) -> float:
        last = self._last_minutes(self.policy.scale_out_minutes)
        if last and min(last) > self.policy.target * provisioned:
            return self.policy.clamp(max(last) / self.policy.target)
        return provisioned

    def _capacity_down(self, provisioned: float) -> float:
        last = self._last_minutes(self.policy.scale_in_minutes)
        low = (self.policy.target - self.policy.scale_in_margin) * provisioned
        if self.policy.scales_in and last and max(last) < low:
            return min(provisioned, self.policy.clamp(max(last) / self.policy.target))
        return provisioned

    def _scale_out(self, wanted: float, provisioned: float, now: float) -> float:
        cooling = now < self._scaled_out_at + self.policy.scale_out_cooldown_seconds
        if cooling and wanted - provisioned <= self._scaled_out_by:
            return provisioned
        self._scaled_out_at, self._scaled_out_by = now, wanted - provisioned
        self._scaled_in_at = float("-inf")
        return wanted

    def _last_minutes(self, minutes: int) -> list[float]:
        """Return the last minutes, or none if there are too few."""
        return list(self._minutes)[-minutes:] if len(self._minutes) >= minutes else []


class DecreaseQuota:
    """The quota on decreases of one table or one index: 4 in the first hour, then hourly, 27 a day.

    "On a given day, you can start by performing up to four decreases within one hour as long as you
    have not performed any other decreases yet during that day. Subsequently, you can perform one
    additional decrease per hour as long as there were no decreases in the preceding hour" (DG,
    quotas). Days are UTC's if `now` counts from the epoch. A shorter `hour` scales everything, as
    `ModelParameters.time_scale` does.
    """

    __slots__ = ("_hour", "_today")

    def __init__(self, hour: float = 3600.0) -> None:
        self._hour = hour
        self._today: list[float] = []

    def may_decrease(self, now: float) -> bool:
        """Return whether capacity may be lowered now. The clock must not step back."""
        today = self._since_midnight(now)
        if not today:
            return True
        if len(today) < _AT_FIRST and now < today[0] + self._hour:
            return True
        return now >= today[-1] + self._hour

    def record(self, now: float) -> None:
        """Count a decrease. ValueError if the quota does not allow it."""
        if not self.may_decrease(now):
            raise ValueError("capacity was lowered too often today")
        self._today = [*self._since_midnight(now), now]

    def count_today(self, now: float) -> int:
        """Return how many decreases were made today: NumberOfDecreasesToday."""
        return len(self._since_midnight(now))

    def _since_midnight(self, now: float) -> list[float]:
        day = 24 * self._hour
        midnight = floor(now / day) * day
        return [at for at in self._today if at >= midnight]
