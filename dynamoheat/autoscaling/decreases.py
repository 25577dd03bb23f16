"""How often provisioned capacity may be lowered: 4 times in the first hour, then hourly, 27 times a day."""

from math import floor
from typing import Final

__all__ = ["Decreases"]

_AT_FIRST: Final = 4


class Decreases:
    """The decreases of one table, or of one index: each has limits of its own.

    "On a given day, you can start by performing up to four decreases within one hour as long as you have
    not performed any other decreases yet during that day. Subsequently, you can perform one additional
    decrease per hour as long as there were no decreases in the preceding hour" (DG, quotas). Days are
    UTC's if `now` counts from the epoch. A shorter `hour` scales all, as `Parameters.time_scale` does.
    """

    __slots__ = ("_hour", "_today")

    def __init__(self, hour: float = 3600.0) -> None:
        self._hour = hour
        self._today: list[float] = []

    def allowed(self, now: float) -> bool:
        """Say whether capacity may be lowered now. The clock must not step back."""
        today = self._since_midnight(now)
        if not today:
            return True
        if len(today) < _AT_FIRST and now < today[0] + self._hour:
            return True
        return now >= today[-1] + self._hour

    def record(self, now: float) -> None:
        """Count a decrease. ValueError where it is not allowed."""
        if not self.allowed(now):
            raise ValueError("capacity was lowered too often today")
        self._today = [*self._since_midnight(now), now]

    def made_today(self, now: float) -> int:
        """Return the decreases of the day so far: NumberOfDecreasesToday."""
        return len(self._since_midnight(now))

    def _since_midnight(self, now: float) -> list[float]:
        day = 24 * self._hour
        midnight = floor(now / day) * day
        return [at for at in self._today if at >= midnight]
