"""Which partitions keys lie in today, and with what shares."""

from collections.abc import Iterable, Iterator
from itertools import accumulate
from random import Random
from weakref import WeakKeyDictionary

from dynamoheat.aggregated.key_distribution import Spot
from dynamoheat.aggregated.keys import Keys
from dynamoheat.partitions import Partition, Partitions, Position

__all__ = ["PartitionRouter", "Route"]

_Routes = WeakKeyDictionary[Keys, WeakKeyDictionary[Partitions, "Route"]]


class Route:
    """The shares of a table's or an index's partitions, their sum being 1."""

    __slots__ = ("__weakref__", "_spots", "_weights", "partitions", "shares")

    def __init__(self, spots: Iterable[Spot], partitions: Partitions, now: float) -> None:
        self.partitions = len(partitions)
        self._spots: dict[Partition, list[Spot]] = {}
        for spot in spots:
            for partition, part in spot.parts(partitions, now):
                self._spots.setdefault(partition, []).append(part)
        self._weights: dict[Partition, list[float]] = {}
        sums = {part: sum(spot.share for spot in found) for part, found in self._spots.items()}
        total = sum(sums.values())
        self.shares = {partition: share / total for partition, share in sums.items()}

    def sample(self, partition: Partition, random: Random, now: float) -> Position:
        """Return the position of one of the units that go to a partition, at random."""
        spots = self._spots[partition]
        if len(spots) == 1:
            return spots[0].sample(random, now)
        weights = self._weights.get(partition)
        if weights is None:
            weights = list(accumulate(spot.share for spot in spots))
            self._weights[partition] = weights
        return random.choices(spots, cum_weights=weights)[0].sample(random, now)

    def heirs(self, partition: Partition, units: float) -> Iterator[tuple[Partition, float]]:
        """Yield what has become of a partition, with these keys' units divided among its children."""
        if not partition.retired:
            yield partition, units
            return
        heirs = [heir for heir in _leaves(partition) if heir in self.shares]
        total = sum(self.shares[heir] for heir in heirs)
        for heir in heirs:
            yield heir, units * self.shares[heir] / total


class PartitionRouter:
    """Routes of keys, made again only after a split, and kept as long as their keys are."""

    def __init__(self) -> None:
        self._routes: _Routes = WeakKeyDictionary()

    def route(self, keys: Keys, partitions: Partitions, now: float, *, sortable: bool) -> Route:
        """Return the route of keys in a table or an index; O(keys) after a split, else O(1)."""
        routes = self._routes.setdefault(keys, WeakKeyDictionary())
        found = routes.get(partitions)
        if found is None or found.partitions != len(partitions):
            found = Route(keys.spots(sortable=sortable), partitions, now)
            routes[partitions] = found
        return found


def _leaves(partition: Partition) -> Iterator[Partition]:
    if not partition.retired:
        yield partition
    for child in partition.children:
        yield from _leaves(child)
