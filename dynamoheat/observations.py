"""Where in a partition its traffic went: an even sample over time, and the cut that divides it best."""

from bisect import bisect_left
from collections.abc import Callable, Sequence
from typing import Any, Final

__all__ = ["Observations", "best_cut"]

_MOST: Final = 512
_LEAST: Final = 16

Where = tuple[Any, ...]


class Observations:
    """The position of every n-th unit, n doubling whenever the sample is full: even over time, bounded in memory."""

    __slots__ = ("_min_stride", "credit", "places", "stride")

    def __init__(self, stride: float) -> None:
        self.places: list[Where] = []  # oldest first
        self.stride = self._min_stride = stride  # units from one kept position to the next
        self.credit = 0.0  # units since the last one; callers look when it reaches the stride

    def add(self, place: Where) -> None:
        """Keep a position."""
        self.credit %= self.stride
        self.places.append(place)
        if len(self.places) >= _MOST:
            del self.places[::2]
            self.stride *= 2

    def inherit(self, parent: "Observations", is_mine: Callable[[Where], bool]) -> None:
        """Take over from a parent the positions that are now here."""
        self.places = [place for place in parent.places if is_mine(place)]
        self.stride = parent.stride

    def clear(self) -> None:
        """Forget all."""
        self.places.clear()
        self.stride = self._min_stride
        self.credit = 0.0


def best_cut(
    observed: Observations, min_share: float, *, between_keys: bool = False
) -> tuple[Where, float] | None:
    """Return the position that best halves the traffic seen, and the share left of it; None where none does.

    The cut is chosen by the older half of the sample and must also divide the newer half: neither one hot
    item nor a sort key that only ever grows passes. `min_share` is what each side must get of both.
    With `between_keys` the cut divides no collection.
    """
    if len(observed.places) < _LEAST:
        return None
    places = [place[:1] for place in observed.places] if between_keys else observed.places
    older, newer = places[: len(places) // 2], places[len(places) // 2 :]
    cut, share = _halving(sorted(older))
    later = sum(where < cut for where in newer) / len(newer)
    if min(share, 1 - share, later, 1 - later) < min_share:
        return None
    return cut, (share + later) / 2


def _halving(ordered: Sequence[Where]) -> tuple[Where, float]:
    """Return, of all first positions of a right side, the one nearest to half, with the share left of it."""
    middle = ordered[len(ordered) // 2]
    first = bisect_left(ordered, middle)
    following = next((at for at in range(first, len(ordered)) if ordered[at] > middle), first)
    at = min(first, following, key=lambda index: abs(index / len(ordered) - 0.5))
    return ordered[at], at / len(ordered)
