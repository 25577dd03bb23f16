"""How many items to request of each partition: its expected share, and slack for chance. Pure.

Hashing spreads events over shards like balls over bins. So a shard's part of the next k events is
near a Poisson variable of mean k / shards. With a limit at a high quantile of it a page needs one
round. Where such slack costs units, a limit near the mean is cheaper, with a second round to the
few partitions that ran dry.
"""

import math
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from statistics import NormalDist
from typing import Final

from spillway.scanning.costs import UNIT_BYTES
from spillway.scanning.streams import PartitionStream

__all__ = ["fit_limits", "limit_for", "limit_with_filter", "stream_shares"]

_MAX_DRY_CHANCE: Final = 0.02  # that any partition of a round runs dry
_MAX_REFILL_DRY_CHANCE: Final = 0.1  # that one partition runs dry again
_MAX_SLACK: Final = 1.1  # that is paid for to save a round
_MIN_SLACK: Final = 1.03
_MANY_ITEMS: Final = 100  # whose slack costs more time than a second round
_FILTERED_OUT_PER_MATCH: Final = 8  # assumed until a read has seen matches
_MAX_FILTERED_LIMIT: Final = 1_000


def limit_for(
    expected: float, partitions: int, unit_items: float, *, is_refill: bool = False
) -> int:
    """Return the limit for one of `partitions`, which is expected to hold `expected` items.

    `unit_items` is how many items a read unit carries: slack that fills a started unit is free.
    `is_refill` is for a partition that was fetched before. Few are, so one more round matters less.
    """
    if partitions <= 1:
        return math.ceil(expected)
    chance = _MAX_REFILL_DRY_CHANCE if is_refill else _MAX_DRY_CHANCE / partitions
    safe = _poisson_quantile(expected, chance)
    if safe <= max(unit_items, _MAX_SLACK * expected):
        return safe
    tight = math.ceil(_MIN_SLACK * expected) + 1
    filled = int(math.ceil(tight / unit_items) * unit_items)  # to the end of the started unit
    if expected > _MANY_ITEMS and filled > _MAX_SLACK * expected:
        return tight
    return min(safe, max(tight, filled))


def limit_with_filter(
    expected: float, match_count: int, filtered_out_count: int, unit_items: float
) -> int:
    """Return the limit for a partition of which only some items match, by the share so far."""
    fetched = match_count + filtered_out_count
    share = match_count / fetched if match_count else 1 / _FILTERED_OUT_PER_MATCH
    limit = math.ceil(_MAX_SLACK * expected / share)
    return max(int(unit_items), min(_MAX_FILTERED_LIMIT, limit))


def fit_limits(
    limits: Sequence[int], units: float, item_bytes: float, unit: float
) -> list[int] | None:
    """Return limits that together cost at most `units`, None if even the lowest cost more.

    `unit` is the read units that each started 4 KB cost.
    """
    cost = sum(unit * math.ceil(limit * item_bytes / UNIT_BYTES) for limit in limits)
    if cost <= units:
        return list(limits)
    units_each = math.floor(units / unit / len(limits))
    if units_each < 1:  # negative after a round that cost more than expected
        return None
    max_limit = max(1, int(units_each * UNIT_BYTES / item_bytes))
    return [min(limit, max_limit) for limit in limits]


def _poisson_quantile(mean: float, tail: float) -> int:
    """Return what a Poisson variable exceeds with a chance of about `tail` (Cornish and Fisher)."""
    z = -NormalDist().inv_cdf(tail)
    return math.ceil(mean + z * math.sqrt(mean) + (z * z - 1) / 6) + 1


def stream_shares(
    streams: Sequence[PartitionStream], remaining: int, *, descending: bool
) -> list[tuple[PartitionStream, float]]:
    """Return the streams to fetch before `remaining` more records are final, and their shares.

    A share is how many of these records the stream is expected to add. Once that many records are
    buffered, only streams that have not reached the last of them may hold records before it.
    """
    sort_keys = sorted(record.sort_key for stream in streams for record in stream.buffer)
    open_streams = [each for each in streams if not each.is_exhausted]
    if len(sort_keys) < remaining:
        return _even_shares(open_streams, remaining)
    last = sort_keys[-remaining] if descending else sort_keys[remaining - 1]
    behind = [each for each in open_streams if _is_before(each.reached, last, descending)]
    others = max(1, len(streams) - len(behind))
    return [
        (each, _count_between(sort_keys, each.reached, last, descending) / others)
        for each in behind
    ]


def _even_shares(
    streams: list[PartitionStream], remaining: int
) -> list[tuple[PartitionStream, float]]:
    """Return an even share for each stream, less what it has buffered.

    Streams that have most of their share are left out.
    """
    share = remaining / max(1, len(streams))
    parts = ((each, share - len(each.buffer)) for each in streams)
    return [(each, max(1.0, part)) for each, part in parts if part > share / 2 or not each.buffer]


def _is_before(position: str, other: str, descending: bool) -> bool:
    return position > other if descending else position < other


def _count_between(sort_keys: list[str], start: str, end: str, descending: bool) -> int:
    """Return how many sort keys lie after `start` and up to `end`, in the order of the read."""
    if descending:
        return bisect_left(sort_keys, start) - bisect_left(sort_keys, end)
    return bisect_right(sort_keys, end) - bisect_right(sort_keys, start)
