"""A chart of a load in plain characters: a line a second or so, bars for rates, the shards beside."""

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Final, NamedTuple

from local.demo.watch import LoadSample, MetricCounts

__all__ = ["chart"]

_MAX_LINES: Final = 40
_BAR: Final = 20  # characters of the longest
_ACCEPTED: Final = "#"
_THROTTLED: Final = "x"


class _ChartRow(NamedTuple):
    """Rates a second up to a time, and the layouts then."""

    at: float
    accepted: float
    throttled: float
    layouts: Sequence[MetricCounts]


def chart(samples: Sequence[LoadSample]) -> list[str]:
    """Return the lines of a chart: time runs downwards, both rates have one scale. At most 100 columns for 4 series.

    Many samples are drawn as averages over a few of them each. Fewer than two make no chart.
    """
    rows = [_row(before, after) for before, after in pairwise(_thinned(samples))]
    if not rows:
        return []
    most = max(max(row.accepted, row.throttled) for row in rows) or 1.0
    return [*_head(list(samples[-1].layouts)), *(_line(row, most) for row in rows)]


def _thinned(samples: Sequence[LoadSample]) -> Sequence[LoadSample]:
    """Return every so manyth sample, the first and the last always among them."""
    step = max(1, math.ceil((len(samples) - 1) / _MAX_LINES))
    return [*samples[:1], *samples[:0:-step][::-1]]


def _row(before: LoadSample, after: LoadSample) -> _ChartRow:
    seconds = max(after.at - before.at, 1e-3)
    return _ChartRow(
        after.at,
        (after.written - before.written) / seconds,
        (after.throttled - before.throttled) / seconds,
        list(after.layouts.values()),
    )


def _head(series: Sequence[str]) -> list[str]:
    columns = "".join(f"  {name:>9}" for name in series)
    return [
        f"{'':5}  {'':6}{'':{_BAR}}  {'':6}{'':{_BAR}}  shards (index shards)",
        f"{'s':>5}  {'accepted/s':{_BAR + 6}}  {'throttled/s':{_BAR + 6}}{columns}",
    ]


def _line(row: _ChartRow, most: float) -> str:
    accepted = _bar(row.accepted, most, _ACCEPTED)
    throttled = _bar(row.throttled, most, _THROTTLED)
    return f"{row.at:5.0f}  {accepted}  {throttled}" + "".join(map(_counts, row.layouts))


def _bar(rate: float, most: float, character: str) -> str:
    """Return a rate and its bar, one character at least for what is above zero."""
    length = min(_BAR, math.ceil(rate / most * _BAR)) if rate > 0 else 0
    return f"{rate:5,.0f} {character * length:{_BAR}}"


def _counts(counts: MetricCounts) -> str:
    text = f"{counts.shards} ({counts.index_shards})" if counts.shards else "-"
    return f"  {text:>9}"
