"""Where a rising quantity meets its limit."""

from collections.abc import Callable
from typing import Final

__all__ = ["greatest_share"]

_ROUNDS: Final = 60
_CLOSE: Final = 1e-9  # of the scale


def greatest_share(excess: Callable[[float], float], scale: float) -> float:
    """Return the greatest share from 0 to 1 at which `excess` is not above zero; 0 where there is none.

    `excess` must be continuous and never fall. `scale` is its order of magnitude, a billionth of which does
    not matter. False position (Illinois): a handful of calls where `excess` is made of straight pieces.
    """
    low, high = 0.0, 1.0
    at_high = excess(high)
    if at_high <= _CLOSE * scale:
        return high
    at_low = found = excess(low)
    side = 0
    for _ in range(_ROUNDS):
        if (found <= 0 and found >= -_CLOSE * scale) or at_low > 0:
            break
        middle = low + (high - low) * at_low / (at_low - at_high)
        found = excess(middle)
        if found <= 0:
            low, at_low = middle, found
            at_high = (
                at_high / 2 if side < 0 else at_high
            )  # it stayed twice: come closer to the other end
            side = -1
        else:
            high, at_high = middle, found
            at_low = at_low / 2 if side > 0 else at_low
            side = 1
    return low
