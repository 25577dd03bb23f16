"""How fast it was: rates and the times of requests."""

import math
from collections import defaultdict
from collections.abc import Sequence

__all__ = ["Timings", "percentile"]


def percentile(values: Sequence[float], percent: float) -> float:
    """Return the least value that `percent` % of the values do not exceed; NaN of none."""
    if not values:
        return math.nan
    return sorted(values)[max(0, math.ceil(len(values) * percent / 100) - 1)]


class Timings:
    """Seconds that requests took, by HTTP method."""

    def __init__(self) -> None:
        """Start with none."""
        self._seconds: dict[str, list[float]] = defaultdict(list)

    def observe(self, method: str, seconds: float) -> None:
        """Take note of a request."""
        self._seconds[method].append(seconds)

    def of(self, method: str) -> Sequence[float]:
        """Return the seconds of the requests of a method."""
        return self._seconds[method]
