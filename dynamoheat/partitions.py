"""Partitions: ranges of hashed partition keys, and of sort keys within one key.

A position in a table is `(hash,)` or `(hash, sort key)`. The hash is the 64-bit xxHash of the
partition key's text: DynamoDB's own hash is not known, and any uniform one will do. Tuples compare
as needed here: `(h,)` precedes every `(h, s)`, so it is the start of a whole item collection.
"""

from bisect import bisect_left, bisect_right, insort
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

from xxhash import xxh64_intdigest

from dynamoheat.limits import TokenBucket
from dynamoheat.parameters import ModelParameters

__all__ = [
    "HASHES",
    "LAST",
    "Partition",
    "Partitions",
    "Position",
    "TrafficSample",
    "best_cut",
    "position",
]

HASHES: Final = 1 << 64
_CACHED_KEYS: Final = 100_000
_POSITIONS_A_WINDOW: Final = 64  # positions, for writes at the partition's limit
_MAX_POSITIONS: Final = 512
_MIN_POSITIONS: Final = 16

Position = tuple[Any, ...]


def position(partition_key: str, sort_key: Any = None) -> Position:
    """Return an item's position. `sort_key` is as `dynamoheat.sizes.sortable_value` gives it."""
    digest = xxh64_intdigest(partition_key.encode("utf-8", "surrogatepass"))
    return (digest,) if sort_key is None else (digest, sort_key)


class _Last:
    """A sort key greater than all others: where a query in descending order starts."""

    def __gt__(self, other: object) -> bool:
        return other is not self

    def __lt__(self, other: object) -> bool:
        return False


LAST: Final = _Last()


class TrafficSample:
    """Positions of a partition's traffic, one every `stride` units.

    The stride doubles whenever the sample is full, so the sample is even over time and bounded.
    """

    __slots__ = ("_min_stride", "pending_units", "positions", "stride")

    def __init__(self, stride: float) -> None:
        self.positions: list[Position] = []  # oldest first
        self.stride = self._min_stride = stride  # units from one kept position to the next
        self.pending_units = 0.0  # units since the last position; callers add one at the stride

    def add(self, place: Position) -> None:
        """Record a position."""
        self.pending_units %= self.stride
        self.positions.append(place)
        if len(self.positions) >= _MAX_POSITIONS:
            del self.positions[::2]
            self.stride *= 2

    def inherit(self, parent: "TrafficSample", is_mine: Callable[[Position], bool]) -> None:
        """Take over the parent's positions for which `is_mine` is true."""
        self.positions = [place for place in parent.positions if is_mine(place)]
        self.stride = parent.stride

    def clear(self) -> None:
        """Drop all positions."""
        self.positions.clear()
        self.stride = self._min_stride
        self.pending_units = 0.0


def best_cut(
    observed: TrafficSample, min_share: float, *, between_keys: bool = False
) -> tuple[Position, float] | None:
    """Return the position that best halves the sampled traffic, and the share left of it, or None.

    The older half of the sample chooses the cut, which must also divide the newer half. That
    excludes a single hot item and an ever-increasing sort key. Each side must get `min_share` of
    both halves. With `between_keys` the cut divides no item collection.
    """
    if len(observed.positions) < _MIN_POSITIONS:
        return None
    places = [place[:1] for place in observed.positions] if between_keys else observed.positions
    older, newer = places[: len(places) // 2], places[len(places) // 2 :]
    cut, share = _halving(sorted(older))
    later = sum(where < cut for where in newer) / len(newer)
    if min(share, 1 - share, later, 1 - later) < min_share:
        return None
    return cut, (share + later) / 2


def _halving(ordered: Sequence[Position]) -> tuple[Position, float]:
    """Return the position nearest to the middle of the sample, and the share left of it."""
    middle = ordered[len(ordered) // 2]
    first = bisect_left(ordered, middle)
    following = next((at for at in range(first, len(ordered)) if ordered[at] > middle), first)
    at = min(first, following, key=lambda index: abs(index / len(ordered) - 0.5))
    return ordered[at], at / len(ordered)


class Partition:
    """A range of positions, with its token buckets and counters.

    It starts at `low` and ends where the next partition starts.
    """

    __slots__ = (
        "bytes",
        "children",
        "consumed_read",
        "consumed_write",
        "hot_since",
        "is_split",
        "is_unsplittable",
        "low",
        "number",
        "owner",
        "read",
        "split_at",
        "throttled_items",
        "tokens_read",
        "traffic_sample",
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
        self.write_units = 0.0  # since the last heat window
        self.tokens_read = 0.0
        self.consumed_write = 0.0  # ever, up to the last heat window
        self.consumed_read = 0.0  # ever
        self.throttled_items = 0
        per_window = wcu * limits.heat_window_seconds
        self.traffic_sample = TrafficSample(max(1.0, per_window / _POSITIONS_A_WINDOW))
        self.hot_since: float | None = None
        self.split_at: float | None = None  # a split for heat is in progress
        self.is_unsplittable = False  # the last attempt found no useful cut
        self.is_split = False  # look the key up again
        self.children: tuple[Partition, ...] = ()

    def inherit(self, parent: "Partition", share: float) -> None:
        """Take over the tokens of `parent`, and `share` of its data."""
        for mine, theirs in ((self.write, parent.write), (self.read, parent.read)):
            mine.tokens = theirs.tokens if theirs.tokens > 0 else theirs.tokens / 2
            mine.filled_at = theirs.filled_at
        self.bytes = parent.bytes * share

    def stay_hot(self, parent: "Partition", high: Position) -> None:
        """Inherit how long the parent is hot, for a split with another trigger than heat."""
        self.hot_since = parent.hot_since
        self.traffic_sample.inherit(parent.traffic_sample, lambda place: self.low <= place < high)

    def has_been_hot(self, seconds: float, now: float) -> bool:
        """Return whether it has been hot for at least `seconds`."""
        return self.hot_since is not None and now - self.hot_since >= seconds

    def cool(self) -> None:
        """Reset heat and the traffic sample."""
        self.hot_since = self.split_at = None
        self.is_unsplittable = False
        self.traffic_sample.clear()


class Partitions:
    """All partitions of a table or an index: disjoint, without gaps, never merged."""

    def __init__(self, count: int, owner: Any, limits: ModelParameters, now: float) -> None:
        self.owner = owner
        self._limits = limits
        self._starts: list[Position] = [(HASHES * i // count,) for i in range(count)]
        self._partitions = [
            Partition(i, low, owner, limits, now) for i, low in enumerate(self._starts)
        ]
        self._next_number = count
        self.cache: dict[str, Partition] = {}  # partition keys that lie in one partition as a whole

    def __len__(self) -> int:
        return len(self._partitions)

    def __iter__(self) -> Iterator[Partition]:
        return iter(self._partitions)

    def find(self, partition_key: str, sort_key: Any = None) -> Partition:
        """Return the partition of an item, or of the start of a collection (no sort key).

        O(log n).
        """
        cached = self.cache.get(partition_key)
        if cached is not None:
            return cached
        whole = position(partition_key)
        at = bisect_right(self._starts, whole)
        if at < len(self._starts) and self._starts[at][0] == whole[0]:  # divided by sort key
            return self.at(whole if sort_key is None else (whole[0], sort_key))
        return self._cached(partition_key, self._partitions[at - 1])

    def at(self, where: Position) -> Partition:
        """Return the partition of a position. O(log n)."""
        return self._partitions[bisect_right(self._starts, where) - 1]

    def end(self, partition: Partition) -> Position:
        """Return the position at which a partition ends (exclusive)."""
        after = bisect_right(self._starts, partition.low)
        return self._starts[after] if after < len(self._starts) else (HASHES,)

    def middle(self, partition: Partition) -> Position | None:
        """Return the middle of a partition's hashes, or None if it holds fewer than two."""
        low, high = partition.low[0], self.end(partition)[0]
        cut = ((low + high) // 2,)
        return cut if partition.low < cut < self.end(partition) else None

    def widest(self) -> Partition:
        """Return the partition with the most hashes, the first of equals."""
        return max(self._partitions, key=lambda part: self.end(part)[0] - part.low[0])

    def split(
        self, parent: Partition, cut: Position, now: float, share: float = 0.5
    ) -> tuple[Partition, Partition]:
        """Split `parent` at `cut`, the first position of the right child.

        `share` of its data stays left.

        ValueError if the cut is outside the partition. Each child starts with the parent's tokens
        and has the full limits, so a split never lowers the total.
        """
        if not parent.low < cut < self.end(parent):
            raise ValueError(f"{cut} is not inside the partition")
        left = Partition(self._next_number, parent.low, self.owner, self._limits, now)
        right = Partition(self._next_number + 1, cut, self.owner, self._limits, now)
        self._next_number += 2
        left.inherit(parent, share)
        right.inherit(parent, 1 - share)
        at = bisect_right(self._starts, parent.low) - 1
        self._partitions[at : at + 1] = [left, right]
        insort(self._starts, cut)
        parent.is_split, parent.children = True, (left, right)
        self.cache.clear()
        return left, right

    def _cached(self, partition_key: str, found: Partition) -> Partition:
        if len(self.cache) >= _CACHED_KEYS:
            self.cache.clear()
        self.cache[partition_key] = found
        return found
