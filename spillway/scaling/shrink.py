"""The shrink planner: when a layout has more shards than its recorded usage needs, and how many it gives up. Pure.

Shards too many cost reads, shards too few cost writes, and every change adds an epoch. So a layout only shrinks after
a whole window of low usage, to what the highest rate of that window needs with the headroom of growth. With a window of
more than a day it keeps what the daily peak needs and follows trends. With one of hours it follows the day, down to a
part of what the peak needs, so that writers reach that again in a step or two.
"""

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from spillway.layouts.model import Layout
from spillway.scaling.growth import Growth
from spillway.scaling.observation import Decision
from spillway.scaling.policy import wanted
from spillway.scaling.recorded import UsageWindow, peak_of
from spillway.scaling.usage import Demand

__all__ = ["Shrink", "shrunk"]

_FILL: Final = 0.7  # where growth waits for throttling
_HOUR: Final = 3_600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Shrink:
    """Settings of shrinking; times in seconds.

    Attributes:
        window: how long usage must have been low, and how long a growth is kept. Longer than a day, so that a daily peak
            that comes late is still remembered; the usage table keeps two days.
        remembered: the time whose highest rate bounds how far a shorter window shrinks.
        most_below: factor below what that rate needs at most.
        cooldown: between two steps down.
        most_step: factor of one step at most.
        least_shards, least_index_shards: counts never shrink below these.
    """

    window: float = 36 * _HOUR
    remembered: float = 36 * _HOUR
    most_below: int = 4
    cooldown: float = 6 * _HOUR
    most_step: int = 4
    least_shards: int = 1
    least_index_shards: int = 1

    def __post_init__(self) -> None:
        if self.most_step < 2 or self.most_below < 1:
            raise ValueError("most_step must be 2 or more, most_below 1 or more")
        if min(self.least_shards, self.least_index_shards) < 1:
            raise ValueError("a layout has one shard at least")
        if not 0 < self.window <= self.remembered <= 48 * _HOUR:
            raise ValueError("0 < window <= remembered <= the 48 hours that the usage table keeps")


def shrunk(
    layout: Layout, windows: Sequence[UsageWindow], now: float, settings: Shrink, growth: Growth
) -> Decision:
    """Decide whether a layout gives up shards, by the windows recorded up to `now` (epoch seconds), in order.

    For series all of whose writers record their usage: what is not recorded counts as idle.
    """
    if now - layout.last_updated < _rest(layout, settings):
        return Decision()
    fill = growth.fill or _FILL
    recent = _peak(windows, now - settings.window)
    peak = (
        recent
        if settings.window == settings.remembered
        else _peak(windows, now - settings.remembered)
    )

    def needed(recently: float, at_most: float) -> int:
        now_needed = wanted(recently / fill, growth.partition_wcu)
        return max(now_needed, wanted(at_most / fill, growth.partition_wcu) // settings.most_below)

    current, step = layout.current, settings.most_step
    table = max(needed(recent.table_units, peak.table_units), settings.least_shards)
    index = max(needed(recent.index_units, peak.index_units), settings.least_index_shards)
    return Decision(
        shards=_fewer(current.shards, table, step),
        index_shards=_fewer(current.index_shards, index, step),
    )


def _peak(windows: Sequence[UsageWindow], since: float) -> Demand:
    return peak_of(windows[bisect_left(windows, since, key=lambda window: window.start) :])


def _rest(layout: Layout, settings: Shrink) -> float:
    """Return seconds for which a layout stays as it is: a growth for a whole window, a step down for the cooldown."""
    if len(layout.epochs) > 1:
        before, current = layout.epochs[-2:]
        if before.shards >= current.shards and before.index_shards >= current.index_shards:
            return settings.cooldown
    return max(settings.window, settings.cooldown)


def _fewer(count: int, needed: int, most_step: int) -> int | None:
    """Return the count after one step down, a power of two; None where it stays."""
    lowest = max(needed, -(-count // most_step))
    fewer = 1 << (lowest - 1).bit_length()
    return fewer if fewer < count else None
