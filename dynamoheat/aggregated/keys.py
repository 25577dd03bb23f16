"""To which keys traffic goes, in what shares."""

from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Final

from dynamoheat.aggregated.key_distribution import Arc, Collection, Growing, OneItem, Spot
from dynamoheat.partitions import HASHES, position

__all__ = ["Keys", "Sorts"]


class Sorts(StrEnum):
    """Where within a key its traffic goes: whether a split can divide it depends on that."""

    SPREAD = "spread"  # evenly over its sort keys
    GROWING = "growing"  # to a sort key that only ever grows
    ONE = "one"  # to one item


_SPOTS: Final = {Sorts.SPREAD: Collection, Sorts.GROWING: Growing, Sorts.ONE: OneItem}


class Keys:
    """Partition keys and the share of the traffic that each gets. Immutable; make it once, use it for many steps."""

    __slots__ = ("__weakref__", "_spots")

    def __init__(self, spots: Iterable[Spot]) -> None:
        """Take any spots; their shares are scaled to a sum of 1 where they are used."""
        self._spots = tuple(spots)
        if not self._spots or min(spot.share for spot in self._spots) <= 0:
            raise ValueError("keys need shares above zero")

    @classmethod
    def of(cls, shares: Mapping[str, float], sorts: Sorts = Sorts.SPREAD) -> "Keys":
        """Return keys by name, hashed as everywhere in the model. Keys without a share are left out."""
        made = _SPOTS[sorts]
        return cls(made(position(key)[0], share) for key, share in shares.items() if share)

    @classmethod
    def one(cls, key: str, sorts: Sorts = Sorts.SPREAD) -> "Keys":
        """Return one key by name."""
        return cls.of({key: 1.0}, sorts)

    @classmethod
    def everywhere(cls) -> "Keys":
        """Return very many keys with equal traffic: all hashes alike."""
        return cls.arc(0.0, 1.0)

    @classmethod
    def arc(cls, low: float, high: float) -> "Keys":
        """Return very many keys on a stretch of the hash range, whose ends are 0 and 1."""
        if not 0 <= low < high <= 1:
            raise ValueError("an arc goes from one number to a greater, both from 0 to 1")
        return cls([Arc(int(low * HASHES), int(high * HASHES), 1.0)])

    def spots(self, *, sortable: bool) -> tuple[Spot, ...]:
        """Return where they lie in a table or an index; without a sort key each key is one item."""
        if sortable:
            return self._spots
        return tuple(spot.unsorted() for spot in self._spots)
