"""Partitions: ranges of hashed partition keys, and of sort keys within one, found by bisection.

A position in a table is `(hash,)` or `(hash, sort key)`, the hash being the 64-bit xxHash of the
partition key's text (DynamoDB's own hash is not known; any uniform one will do). Python compares such
tuples as needed here: `(h,)` comes before every `(h, s)`, so it is the start of a whole collection.
"""

from bisect import bisect_right, insort
from collections.abc import Iterator
from typing import Any, Final

from xxhash import xxh64_intdigest

from dynamoheat.buckets import TokenBucket
from dynamoheat.observations import Observations
from dynamoheat.parameters import ModelParameters

__all__ = ["HASHES", "LAST", "Partition", "Partitions", "Position", "position"]

HASHES: Final = 1 << 64
_CACHED_KEYS: Final = 100_000
_OBSERVED_A_WINDOW: Final = 64  # keys, of a partition's writes at its limit

Position = tuple[Any, ...]


def position(partition_key: str, sort_key: Any = None) -> Position:
    """Return where an item lies: `sort_key` as `dynamoheat.items.comparable` gives it, or None."""
    digest = xxh64_intdigest(partition_key.encode("utf-8", "surrogatepass"))
    return (digest,) if sort_key is None else (digest, sort_key)


class _Last:
    """Comes after every sort key: where a query in descending order starts."""

    def __gt__(self, other: object) -> bool:
        return other is not self

    def __lt__(self, other: object) -> bool:
        return False


LAST: Final = _Last()


class Partition:
    """A range from `low` up to its successor's, with its buckets and what they saw."""

    __slots__ = (
        "bytes",
        "children",
        "consumed_read",
        "consumed_write",
        "hot_since",
        "low",
        "number",
        "observed",
        "owner",
        "read",
        "read_tokens",
        "retired",
        "split_at",
        "throttled",
        "unsplittable",
        "write",
        "write_units",
    )

    def __init__(
        self, number: int, low: Position, owner: Any, limits: ModelParameters, now: float
    ) -> None:
        seconds = limits.partition_bucket_seconds
        wcu, rcu = limits.partition_wcu, limits.partition_rcu
        self.number = number
        self.low = low
        self.owner = owner  # the table or index; opaque here
        self.write = TokenBucket(wcu, wcu * seconds, wcu * seconds, now)
        self.read = TokenBucket(rcu, rcu * seconds, rcu * seconds, now)
        self.bytes = 0.0
        self.write_units = 0.0  # consumed since the last heat window
        self.read_tokens = 0.0
        self.consumed_write = 0.0  # ever, up to the last heat window
        self.consumed_read = 0.0  # ever
        self.throttled = 0
        per_window = wcu * limits.heat_window_seconds
        self.observed = Observations(max(1.0, per_window / _OBSERVED_A_WINDOW))
        self.hot_since: float | None = None
        self.split_at: float | None = None  # a split for heat is under way
        self.unsplittable = False  # the last attempt found no useful cut
        self.retired = False  # it was split: look the key up again
        self.children: tuple[Partition, ...] = ()

    def inherit(self, parent: "Partition", share: float) -> None:
        """Start as a child of `parent` that keeps `share` of its data."""
        for mine, theirs in ((self.write, parent.write), (self.read, parent.read)):
            mine.tokens = theirs.tokens if theirs.tokens > 0 else theirs.tokens / 2
            mine.at = theirs.at
        self.bytes = parent.bytes * share

    def stay_hot(self, parent: "Partition", high: Position) -> None:
        """Go on being hot since when the parent was: its split had another reason."""
        self.hot_since = parent.hot_since
        self.observed.inherit(parent.observed, lambda place: self.low <= place < high)

    def has_been_hot(self, seconds: float, now: float) -> bool:
        """Say whether it is hot, and has been for so long."""
        return self.hot_since is not None and now - self.hot_since >= seconds

    def cool(self) -> None:
        """Be hot no more, or start being watched anew."""
        self.hot_since = self.split_at = None
        self.unsplittable = False
        self.observed.clear()


class Partitions:
    """All partitions of a table or an index: disjoint, without a gap, only ever split."""

    def __init__(self, count: int, owner: Any, limits: ModelParameters, now: float) -> None:
        self.owner = owner
        self._limits = limits
        self._starts: list[Position] = [(HASHES * i // count,) for i in range(count)]
        self._parts = [Partition(i, low, owner, limits, now) for i, low in enumerate(self._starts)]
        self._numbers = count
        self.cache: dict[str, Partition] = {}  # partition keys that lie in one partition as a whole

    def __len__(self) -> int:
        return len(self._parts)

    def __iter__(self) -> Iterator[Partition]:
        return iter(self._parts)

    def find(self, partition_key: str, sort_key: Any = None) -> Partition:
        """Return the partition of an item, of a collection's part, or of its start (no sort key). O(log n)."""
        cached = self.cache.get(partition_key)
        if cached is not None:
            return cached
        whole = position(partition_key)
        at = bisect_right(self._starts, whole)
        if at < len(self._starts) and self._starts[at][0] == whole[0]:  # divided by sort key
            return self.at(whole if sort_key is None else (whole[0], sort_key))
        return self._cached(partition_key, self._parts[at - 1])

    def at(self, where: Position) -> Partition:
        """Return the partition of a position. O(log n)."""
        return self._parts[bisect_right(self._starts, where) - 1]

    def high(self, partition: Partition) -> Position:
        """Return where a partition ends (exclusive)."""
        after = bisect_right(self._starts, partition.low)
        return self._starts[after] if after < len(self._starts) else (HASHES,)

    def middle(self, partition: Partition) -> Position | None:
        """Return the middle of a partition's hashes, or None where it holds no two of them."""
        low, high = partition.low[0], self.high(partition)[0]
        cut = ((low + high) // 2,)
        return cut if partition.low < cut < self.high(partition) else None

    def widest(self) -> Partition:
        """Return the partition with the most hashes, the first of equals."""
        return max(self._parts, key=lambda part: self.high(part)[0] - part.low[0])

    def split(
        self, parent: Partition, cut: Position, now: float, share: float = 0.5
    ) -> tuple[Partition, Partition]:
        """Split `parent` at `cut`, the first position of the right child; `share` of its data stays left.

        ValueError where the cut is not inside the partition. The children start with its tokens and its
        whole limits each, so a split never lowers the total.
        """
        if not parent.low < cut < self.high(parent):
            raise ValueError(f"{cut} is not inside the partition")
        left = Partition(self._numbers, parent.low, self.owner, self._limits, now)
        right = Partition(self._numbers + 1, cut, self.owner, self._limits, now)
        self._numbers += 2
        left.inherit(parent, share)
        right.inherit(parent, 1 - share)
        at = bisect_right(self._starts, parent.low) - 1
        self._parts[at : at + 1] = [left, right]
        insort(self._starts, cut)
        parent.retired, parent.children = True, (left, right)
        self.cache.clear()
        return left, right

    def _cached(self, partition_key: str, found: Partition) -> Partition:
        if len(self.cache) >= _CACHED_KEYS:
            self.cache.clear()
        self.cache[partition_key] = found
        return found
