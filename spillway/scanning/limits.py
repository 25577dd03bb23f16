"""How many items to ask of each partition: its share of what is wanted, and slack for chance. Pure.

Hashing spreads events over shards like balls over bins, so a shard's part of the next k events is near a Poisson variable of
mean k / shards. A limit at a high quantile of it lets a page need one round; where that costs units, a limit near
the mean and a second round to the few partitions that ran dry cost less.
"""

import math
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from typing import Final

from spillway.scanning.costs import UNIT_BYTES
from spillway.scanning.streams import PartitionStream

__all__ = ["fit_limits", "limit_for", "limit_through", "stream_shares"]

_DRY: Final = 0.02  # chance that any partition of a round runs dry
_LIKELY_DRY: Final = 0.1  # that one that was asked before does
_NEAR: Final = 1.1  # slack that is taken at the price of items, for one round less
_SLIGHT: Final = 1.03
_MANY: Final = 100  # items of which slack costs more time than a second round
_PASSED_OVER: Final = 8  # items a wanted one, until a read has seen how many
_MAX_PASSED_OVER: Final = 1_000


def limit_for(expected: float, partitions: int, unit_items: float, *, again: bool = False) -> int:
    """Return the limit for one of several partitions that is expected to hold so many of the items still wanted.

    `unit_items` is how many items each unit of a Query carries: slack that fills a started unit costs none. `again` is
    for those asked before, few, of which one more round matters less.
    """
    if partitions <= 1:
        return math.ceil(expected)
    sure = _quantile(expected, _LIKELY_DRY if again else _DRY / partitions)
    if sure <= max(unit_items, _NEAR * expected):
        return sure
    slight = math.ceil(_SLIGHT * expected) + 1
    filled = int(math.ceil(slight / unit_items) * unit_items)
    if expected > _MANY and filled > _NEAR * expected:
        return slight
    return min(sure, max(slight, filled))


def limit_through(expected: float, kept: int, passed_over: int, unit_items: float) -> int:
    """Return the limit for a partition of which a read keeps a part only, by what it has kept so far."""
    share = kept / (kept + passed_over) if kept else 1 / _PASSED_OVER
    return max(int(unit_items), min(_MAX_PASSED_OVER, math.ceil(_NEAR * expected / share)))


def fit_limits(
    limits: Sequence[int], units: float, item_bytes: float, unit: float
) -> list[int] | None:
    """Return limits that cost at most so many units at `unit` for each 4 KB; None where not even the least does."""
    cost = sum(unit * math.ceil(limit * item_bytes / UNIT_BYTES) for limit in limits)
    if cost <= units:
        return list(limits)
    pages = math.floor(units / unit / len(limits))
    if pages < 1:  # negative after a round that cost more than expected
        return None
    most = max(1, int(pages * UNIT_BYTES / item_bytes))
    return [min(limit, most) for limit in limits]


def _quantile(mean: float, tail: float) -> int:
    """Return what a Poisson variable reaches with a chance of about `tail`: Cornish and Fisher's expansion."""
    z = _normal_quantile(tail)
    return math.ceil(mean + z * math.sqrt(mean) + (z * z - 1) / 6) + 1


def _normal_quantile(tail: float) -> float:
    """Return where the upper tail of the normal distribution begins (Abramowitz and Stegun, 26.2.23)."""
    t = math.sqrt(-2 * math.log(tail))
    above = 2.515517 + t * (0.802853 + t * 0.010328)
    below = 1 + t * (1.432788 + t * (0.189269 + t * 0.001308))
    return t - above / below


def stream_shares(
    streams: Sequence[PartitionStream], remaining: int, *, descending: bool
) -> list[tuple[PartitionStream, float]]:
    """Return the streams that must be fetched before `remaining` more records are final, and what each may add.

    Where that many are fetched already, the last of them bounds what matters: only streams not fetched up to it may
    hold records that come before it.
    """
    keys = sorted(record.sort_key for stream in streams for record in stream.buffer)
    if len(keys) < remaining:
        return _even_shares([each for each in streams if not each.is_exhausted], remaining)
    last = keys[-remaining] if descending else keys[remaining - 1]
    late = [each for each in streams if not each.is_exhausted and _before(each, last, descending)]
    ahead = max(1, len(streams) - len(late))
    return [(each, _between(keys, each.reached, last, descending) / ahead) for each in late]


def _even_shares(
    live: list[PartitionStream], remaining: int
) -> list[tuple[PartitionStream, float]]:
    """Return an even share for each stream, less what it has fetched; none for those that have most of theirs."""
    share = remaining / max(1, len(live))
    missing = ((each, share - len(each.buffer)) for each in live)
    return [(each, max(1.0, part)) for each, part in missing if part > share / 2 or not each.buffer]


def _before(stream: PartitionStream, last: str, descending: bool) -> bool:
    return stream.reached > last if descending else stream.reached < last


def _between(keys: list[str], reached: str, last: str, descending: bool) -> int:
    """Count the keys from `reached` to `last`."""
    if descending:
        return bisect_left(keys, reached) - bisect_left(keys, last)
    return bisect_right(keys, last) - bisect_right(keys, reached)
