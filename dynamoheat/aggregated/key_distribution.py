"""Where on the hash range, and within a key's items, traffic lies; divided among partitions, sampled for cuts.

Sort keys are numbers from 0 to 1 here, or the time where they grow with it: only their order matters.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from random import Random
from typing import Final, Protocol

from dynamoheat.partitions import Partition, Partitions, Position

__all__ = ["Arc", "Collection", "Growing", "OneItem", "Spot"]

_ANY: Final = 0.5


class Spot(Protocol):
    """A place with a share of some traffic."""

    @property
    def share(self) -> float:
        """The share of the whole traffic."""
        ...

    def parts(self, partitions: Partitions, now: float) -> Iterator[tuple[Partition, "Spot"]]:
        """Yield the partitions that it lies in, each with its part of it."""
        ...

    def sample(self, random: Random, now: float) -> Position:
        """Return the position of one of its units, at random."""
        ...

    def unsorted(self) -> "Spot":
        """Return it for a table without a sort key, where a key is one item."""
        ...


@dataclass(frozen=True, slots=True)
class Arc:
    """Very many keys, evenly over the hashes from `low` up to `high`."""

    low: int
    high: int
    share: float

    def parts(self, partitions: Partitions, now: float) -> Iterator[tuple[Partition, Spot]]:  # noqa: ARG002
        """Yield each partition with the part of the arc in it. O(partitions)."""
        at: Position = (self.low,)
        while at < (self.high,):
            partition = partitions.at(at)
            at = partitions.high(partition)
            low, high = max(self.low, partition.low[0]), min(self.high, at[0])
            if low < high:
                share = self.share * (high - low) / (self.high - self.low)
                yield partition, Arc(low, high, share)

    def sample(self, random: Random, now: float) -> Position:  # noqa: ARG002
        """Return the position of one of its keys."""
        return (random.randrange(self.low, self.high),)

    def unsorted(self) -> Spot:
        """Return it as it is."""
        return self


@dataclass(frozen=True, slots=True)
class Collection:
    """A key whose traffic goes evenly to its sort keys from `low` up to `high`."""

    hash: int
    share: float
    low: float = 0.0
    high: float = 1.0

    def parts(self, partitions: Partitions, now: float) -> Iterator[tuple[Partition, Spot]]:  # noqa: ARG002
        """Yield the partitions that the collection lies in: one, until a split divides it."""
        at = self.low
        while at < self.high:
            partition = partitions.at((self.hash, at))
            end = partitions.high(partition)
            high = min(self.high, end[1]) if end[0] == self.hash else self.high
            share = self.share * (high - at) / (self.high - self.low)
            yield partition, Collection(self.hash, share, at, high)
            at = high

    def sample(self, random: Random, now: float) -> Position:  # noqa: ARG002
        """Return the position of one of its items."""
        return (self.hash, random.uniform(self.low, self.high))

    def unsorted(self) -> Spot:
        """Return the key as one item."""
        return OneItem(self.hash, self.share)


@dataclass(frozen=True, slots=True)
class Growing:
    """A key whose sort key only ever grows, such as the time."""

    hash: int
    share: float

    def parts(self, partitions: Partitions, now: float) -> Iterator[tuple[Partition, Spot]]:
        """Yield the partition of the latest item."""
        yield partitions.at((self.hash, now)), self

    def sample(self, random: Random, now: float) -> Position:  # noqa: ARG002
        """Return the position of the latest item."""
        return (self.hash, now)

    def unsorted(self) -> Spot:
        """Return the key as one item."""
        return OneItem(self.hash, self.share)


@dataclass(frozen=True, slots=True)
class OneItem:
    """A single item."""

    hash: int
    share: float

    def parts(self, partitions: Partitions, now: float) -> Iterator[tuple[Partition, Spot]]:  # noqa: ARG002
        """Yield its partition."""
        yield partitions.at((self.hash, _ANY)), self

    def sample(self, random: Random, now: float) -> Position:  # noqa: ARG002
        """Return its position."""
        return (self.hash, _ANY)

    def unsorted(self) -> Spot:
        """Return it as it is."""
        return self
