"""Days of a series: its rate by time, the usage that writers record of it, and both policies replayed over it."""

import math
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import Final

from spillway import Settings
from spillway.control.shrinking import ShrinkSettings, decide_shrink
from spillway.layouts.model import Layout
from spillway.layouts.transitions import begin_epoch, close_retired, first_layout
from spillway.scaling.policy import (
    ScalingDecision,
    ScalingObservation,
    SideObservation,
    decide_ahead_of_demand,
    supported_units,
)
from spillway.scaling.usage import WINDOW, UsageSample, UsageWindow, sampling_probability
from spillway.settings import Growth

__all__ = ["BATCH", "DAY", "HOUR", "Rate", "Replay", "daily", "recorded"]

HOUR: Final = 3_600
DAY: Final = 24 * HOUR
BATCH: Final = 25  # events a write
MONDAY: Final = 1_780_272_000  # 2026-06-01T00:00:00Z

Rate = Callable[[float], float]
"""Events a second by seconds since a Monday's midnight."""


def daily(least: float, most: float, peak_at: float = 15 * HOUR) -> Rate:
    """Return a rate that rises and falls once a day as a sine does."""

    def rate(seconds: float) -> float:
        phase = 2 * math.pi * (seconds - peak_at) / DAY
        return least + (most - least) * (1 + math.cos(phase)) / 2

    return rate


def recorded(start: int, events: float, random: Random, *, units: float = 1) -> UsageWindow | None:
    """Return what writers of batches record of a window; None where none of them took a sample."""
    probability = sampling_probability(BATCH, events / WINDOW)
    expected = events / BATCH * probability
    spread = (expected * (1 - probability)) ** 0.5
    taken = round(random.gauss(expected, spread)) if expected > 5 else _poisson(expected, random)
    if taken <= 0:
        return None
    one = UsageSample(units * BATCH, units * BATCH, BATCH).extrapolated(probability)
    return UsageWindow(
        start,
        UsageSample(
            taken * one.table_units,
            taken * one.index_units,
            taken * one.events,
            taken * one.variance,
        ),
    )


def _poisson(expected: float, random: Random) -> int:
    limit, product, count = math.exp(-expected), random.random(), 0
    while product > limit:
        product *= random.random()
        count += 1
    return count


@dataclass
class Replay:
    """Growth in the writers and the planner now and then, over windows of a rate in virtual time.

    Attributes:
        every: seconds between two runs of the planner.
        changes: changes of the layout by day.
        short: windows by day in which more was wanted than the layout is taken to carry.
        counts: the count at the end of each hour.
    """

    rate: Rate
    shrink: ShrinkSettings
    noise: float = 0.1
    shards: int = 1
    seed: int = 1
    every: int = 6 * HOUR
    growth: Growth = field(default_factory=Growth)
    changes: Counter[int] = field(default_factory=Counter)
    short: Counter[int] = field(default_factory=Counter)
    counts: list[int] = field(default_factory=list)

    def run(self, days: int) -> "Replay":
        """Replay so many days from a Monday on."""
        random = Random(self.seed)
        settings = Settings(shards=self.shards, index_shards=self.shards)
        self._layout = first_layout("ORD", settings, MONDAY)
        self._settings = settings
        windows: list[UsageWindow] = []
        for second in range(0, days * DAY, WINDOW):
            now = MONDAY + second
            if second % self.every == 0:
                self._decide(
                    now, decide_shrink(self._layout, windows, now, self.shrink, self.growth)
                )
            events = self.rate(second) * WINDOW * random.uniform(1 - self.noise, 1 + self.noise)
            self._offer(now, events / WINDOW)
            window = recorded(now, events, random)
            windows += [window] if window else []
            if second % HOUR == HOUR - WINDOW:
                self.counts.append(self._layout.current.shards)
        return self

    @property
    def layout(self) -> Layout:
        """The layout at the end."""
        return self._layout

    def _offer(self, now: float, demand: float) -> None:
        current = self._layout.current
        self.short[self._day(now)] += demand > supported_units(current.shards)
        seen = ScalingObservation(
            table=SideObservation(shards=current.shards, demand=demand),
            index=SideObservation(shards=current.index_shards, demand=demand),
        )
        self._decide(now, decide_ahead_of_demand(seen, self.growth))

    def _decide(self, now: float, decision: ScalingDecision) -> None:
        if decision.grows:
            changed = begin_epoch(
                self._layout,
                self._settings,
                now,
                shards=decision.shards,
                index_shards=decision.index_shards,
            )
            self._layout = close_retired(changed, now)
            self.changes[self._day(now)] += 1

    @staticmethod
    def _day(now: float) -> int:
        return int(now - MONDAY) // DAY
