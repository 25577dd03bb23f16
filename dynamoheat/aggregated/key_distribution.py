"""Distributions of traffic over keys: which partition keys get which shares.

Segments place the shares on the hash range and within a key's items. They are divided among
partitions, and sampled for cuts of splits. Sort keys are numbers from 0 to 1 here, or the time
where they grow with it: only their order matters.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from random import Random
from typing import Final, Protocol

from dynamoheat.partitions import HASHES, Partition, Partitions, Position, position

__all__ = [
    "AscendingKey",
    "HashRange",
    "ItemCollection",
    "KeyDistribution",
    "KeySegment",
    "SingleItem",
    "SortKeyPattern",
]

_ANY: Final = 0.5


class SortKeyPattern(StrEnum):
    """Where within a partition key traffic goes, which decides whether splits divide it."""

    SPREAD = "spread"  # evenly over its sort keys
    ASCENDING = "growing"  # to a sort key that only ever grows
    SINGLE_ITEM = "one"  # to one item


class KeySegment(Protocol):
    """A part of the key space with a share of some traffic."""

    @property
    def share(self) -> float:
        """The share of the whole traffic."""
        ...

    def divide(
        self, partitions: Partitions, now: float
    ) -> Iterator[tuple[Partition, "KeySegment"]]:
        """Yield the partitions it lies in, each with its part of the segment."""
        ...

    def sample(self, random: Random, now: float) -> Position:
        """Return the position of one of its units, at random."""
        ...

    def without_sort_key(self) -> "KeySegment":
        """Return the segment for a table without a sort key, where each key is one item."""
        ...


class KeyDistribution:
    """Partition keys and their shares of the traffic.

    Immutable: make it once and use it for many steps.
    """

    __slots__ = ("__weakref__", "_segments")

    def __init__(self, segments: Iterable[KeySegment]) -> None:
        """Take segments; their shares are scaled to a sum of 1 when used."""
        self._segments = tuple(segments)
        if not self._segments or min(segment.share for segment in self._segments) <= 0:
            raise ValueError("keys need shares above zero")

    @classmethod
    def of(
        cls, shares: Mapping[str, float], sorts: SortKeyPattern = SortKeyPattern.SPREAD
    ) -> "KeyDistribution":
        """Return named keys with their shares. Keys without a share are left out."""
        made = _SEGMENTS[sorts]
        return cls(made(position(key)[0], share) for key, share in shares.items() if share)

    @classmethod
    def single(cls, key: str, sorts: SortKeyPattern = SortKeyPattern.SPREAD) -> "KeyDistribution":
        """Return a single named key."""
        return cls.of({key: 1.0}, sorts)

    @classmethod
    def everywhere(cls) -> "KeyDistribution":
        """Return very many keys with equal traffic, evenly over all hashes."""
        return cls.hash_range(0.0, 1.0)

    @classmethod
    def hash_range(cls, low: float, high: float) -> "KeyDistribution":
        """Return very many keys on a stretch of the hash range, whose ends are 0 and 1."""
        if not 0 <= low < high <= 1:
            raise ValueError("an arc goes from one number to a greater, both from 0 to 1")
        return cls([HashRange(int(low * HASHES), int(high * HASHES), 1.0)])

    def segments(self, *, sortable: bool) -> tuple[KeySegment, ...]:
        """Return the segments in a table or an index; without a sort key each key is one item."""
        if sortable:
            return self._segments
        return tuple(segment.without_sort_key() for segment in self._segments)


@dataclass(frozen=True, slots=True)
class HashRange:
    """Very many keys, evenly over the hashes from `low` up to `high`."""

    low: int
    high: int
    share: float

    def divide(self, partitions: Partitions, now: float) -> Iterator[tuple[Partition, KeySegment]]:  # noqa: ARG002
        """Yield each partition with the part of the arc in it. O(partitions)."""
        at: Position = (self.low,)
        while at < (self.high,):
            partition = partitions.at(at)
            at = partitions.end(partition)
            low, high = max(self.low, partition.low[0]), min(self.high, at[0])
            if low < high:
                share = self.share * (high - low) / (self.high - self.low)
                yield partition, HashRange(low, high, share)

    def sample(self, random: Random, now: float) -> Position:  # noqa: ARG002
        """Return the position of one of its keys."""
        return (random.randrange(self.low, self.high),)

    def without_sort_key(self) -> KeySegment:
        """Return it as it is."""
        return self


@dataclass(frozen=True, slots=True)
class ItemCollection:
    """A key whose traffic is spread evenly over its sort keys from `low` up to `high`."""

    hash: int
    share: float
    low: float = 0.0
    high: float = 1.0

    def divide(self, partitions: Partitions, now: float) -> Iterator[tuple[Partition, KeySegment]]:  # noqa: ARG002
        """Yield the partitions that the collection lies in: one, until a split divides it."""
        at = self.low
        while at < self.high:
            partition = partitions.at((self.hash, at))
            end = partitions.end(partition)
            high = min(self.high, end[1]) if end[0] == self.hash else self.high
            share = self.share * (high - at) / (self.high - self.low)
            yield partition, ItemCollection(self.hash, share, at, high)
            at = high

    def sample(self, random: Random, now: float) -> Position:  # noqa: ARG002
        """Return the position of one of its items."""
        return (self.hash, random.uniform(self.low, self.high))

    def without_sort_key(self) -> KeySegment:
        """Return the key as one item."""
        return SingleItem(self.hash, self.share)


@dataclass(frozen=True, slots=True)
class AscendingKey:
    """A key whose sort key only ever grows, such as the time."""

    hash: int
    share: float

    def divide(self, partitions: Partitions, now: float) -> Iterator[tuple[Partition, KeySegment]]:
        """Yield the partition of the latest item."""
        yield partitions.at((self.hash, now)), self

    def sample(self, random: Random, now: float) -> Position:  # noqa: ARG002
        """Return the position of the latest item."""
        return (self.hash, now)

    def without_sort_key(self) -> KeySegment:
        """Return the key as one item."""
        return SingleItem(self.hash, self.share)


@dataclass(frozen=True, slots=True)
class SingleItem:
    """A single item."""

    hash: int
    share: float

    def divide(self, partitions: Partitions, now: float) -> Iterator[tuple[Partition, KeySegment]]:  # noqa: ARG002
        """Yield its partition."""
        yield partitions.at((self.hash, _ANY)), self

    def sample(self, random: Random, now: float) -> Position:  # noqa: ARG002
        """Return its position."""
        return (self.hash, _ANY)

    def without_sort_key(self) -> KeySegment:
        """Return it as it is."""
        return self


_SEGMENTS: Final = {
    SortKeyPattern.SPREAD: ItemCollection,
    SortKeyPattern.ASCENDING: AscendingKey,
    SortKeyPattern.SINGLE_ITEM: SingleItem,
}
