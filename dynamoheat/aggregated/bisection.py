"""Where a rising quantity meets its limit."""

from collections.abc import Callable
from typing import Final

__all__ = ["greatest_share"]

_ROUNDS: Final = 80
_CLOSE: Final = 1e-9  # of the scale


def greatest_share(excess: Callable[[float], float], scale: float) -> float:
    """Return the greatest share from 0 to 1 at which `excess` is not above zero; 0 where there is none.

    `excess` must be continuous and never fall. `scale` is its order of magnitude, a billionth of which does
    not matter. A straight line between the ends finds the crossing at once where there is no kink between them;
    halving in turn brings the ends that close: some twenty calls at most with a hundred kinks.
    """
    close = _CLOSE * scale
    low, high = 0.0, 1.0
    at_high = excess(high)
    if at_high <= close:
        return high
    at_low = excess(low)
    if at_low > 0:
        return low
    for turn in range(_ROUNDS):
        line = at_low / (at_low - at_high)
        middle = low + (high - low) * (0.5 if turn % 2 else line)
        found = excess(middle)
        if abs(found) <= close:
            return middle
        if found < 0:
            low, at_low = middle, found
        else:
            high, at_high = middle, found
    return low
