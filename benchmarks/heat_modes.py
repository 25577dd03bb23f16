"""The heat model's two modes side by side: do rates a time step come to what single items come to, and how fast?

First what the aggregated mode needs for an hour and for a day of 10,000 writes a second on 40 partitions at DynamoDB's own
limits. Then each workload for an hour in both modes, with the same parameters and seed: limits are a tenth, so
that the event mode's millions of items take minutes. Its items and their times are drawn at random.
"""

import argparse
import resource
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from statistics import median
from typing import Final

from rich.console import Console
from rich.progress import track
from rich.table import Table

from benchmarks.modes.runs import Figures, by_events, by_rates
from benchmarks.modes.workload import ModeStream, ModeWorkload, table
from benchmarks.modes.workloads import ZIPF, workloads
from dynamoheat import ModelParameters, Split
from dynamoheat.partitions import HASHES

_RATE: Final = 10_000.0
_HOUR: Final = 3_600
_WITHIN: Final = 0.02


@dataclass(frozen=True)
class Comparison:
    """One workload's figures and seconds in both modes."""

    name: str
    events: Figures
    rates: Figures
    event_seconds: float
    rate_seconds: float

    @property
    def agrees(self) -> bool:
        """Whether accepted, throttled and splits are within 2 %."""
        pairs = [(self.events.accepted, self.rates.accepted)]
        pairs.append((self.events.refused, self.rates.refused))
        pairs.append((len(self.events.splits), len(self.rates.splits)))
        return all(abs(ours - theirs) <= _WITHIN * theirs for theirs, ours in pairs)


def _compare(limits: ModelParameters, minutes: int, seed: int, number: int) -> Comparison:
    workload = workloads(limits, minutes)[number]
    start = time.perf_counter()
    rates = by_rates(workload, seed=seed)
    between = time.perf_counter()
    events = by_events(workload, seed=seed)
    end = time.perf_counter()
    return Comparison(workload.name, events, rates, end - between, between - start)


def _scaled(limit: float) -> ModelParameters:
    share = limit / ModelParameters().partition_wcu
    whole = ModelParameters()
    return ModelParameters(
        partition_wcu=limit,
        partition_rcu=whole.partition_rcu * share,
        quota_wcu=whole.quota_wcu * share,
        quota_rcu=whole.quota_rcu * share,
    )


def _fast(console: Console) -> None:
    for name, keys in (("all keys alike", None), ("2,000 keys by Zipf", ZIPF)):
        for seconds, step in ((_HOUR, 1.0), (24 * _HOUR, 1.0), (24 * _HOUR, 60.0)):
            start = time.perf_counter()
            stream = ModeStream(rate=lambda _: _RATE, keys=keys)
            whole = ModeWorkload(
                name=name,
                streams=(stream,),
                settings=table(warm_write=4 * _RATE),
                parameters=ModelParameters(),
                seconds=seconds,
            )
            figures = by_rates(whole, seed=0, step=step)
            taken = time.perf_counter() - start
            peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
            console.print(
                f"{seconds // _HOUR:2} h of 10,000 writes/s on 40 partitions, {name}, steps of {step:g} s: "
                f"{taken:.1f} s, peak {peak:.0f} MB; {figures.accepted:,} accepted, {figures.refused:,} throttled, "
                f"{len(figures.splits)} splits"
            )


def _difference(theirs: float, ours: float) -> str:
    if theirs == ours:
        return "0"
    return f"{ours / theirs - 1:+.2%}" if theirs else f"+{ours:,.0f}"


def _same(comparison: Comparison) -> str:
    """Return how many splits are at the same time, and how far their cuts are apart."""
    events, rates = comparison.events.splits, comparison.rates.splits
    same = (Counter(split.at for split in events) & Counter(split.at for split in rates)).total()
    ours = {(split.at, split.parent): split for split in rates}
    apart = [
        _apart(split, ours[split.at, split.parent])
        for split in events
        if (split.at, split.parent) in ours
    ]
    return f"{same}; {median(apart):.1%}" if apart else str(same)


def _apart(one: Split, other: Split) -> float:
    """Return the distance of two cuts, as a share of all sort keys where they are in one key, else of all hashes."""
    if one.cut[0] == other.cut[0]:
        sorts = [float(split.cut[1]) if len(split.cut) > 1 else 0.0 for split in (one, other)]
        return abs(sorts[0] - sorts[1])
    return float(abs(one.cut[0] - other.cut[0]) / HASHES)


def _show(comparisons: list[Comparison], seed: int, console: Console) -> None:
    shown = Table(title=f"An hour in both modes, seed {seed}", title_justify="left")
    headings = ("workload", "accepted", "by rates", "throttled", "by rates", "splits", "by rates")
    more = ("same time; cuts apart", "s", "by rates")
    for heading in (*headings, *more):
        shown.add_column(heading, justify="left" if heading == "workload" else "right")
    for each in comparisons:
        events, rates = each.events, each.rates
        shown.add_row(
            each.name,
            f"{events.accepted:,}",
            _difference(events.accepted, rates.accepted),
            f"{events.refused:,}",
            _difference(events.refused, rates.refused),
            str(len(events.splits)),
            str(len(rates.splits)),
            _same(each),
            f"{each.event_seconds:.0f}",
            f"{each.rate_seconds:.1f}",
        )
    console.print(shown)
    out = [each.name for each in comparisons if not each.agrees]
    console.print("All agree within 2 %." if not out else f"Not within 2 %: {', '.join(out)}")


def main() -> None:
    """Print what the aggregated mode needs, and a table of both modes' figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=1, help="how many seeds to compare")
    parser.add_argument("--minutes", type=int, default=60, help="of each workload")
    parser.add_argument("--limit", type=float, default=100, help="write units of a partition")
    given = parser.parse_args()
    console = Console(width=150)
    _fast(console)
    limits = _scaled(given.limit)
    numbers = range(len(workloads(limits, given.minutes)))
    with ProcessPoolExecutor() as pool:
        for seed in range(1, given.seeds + 1):
            runs = pool.map(partial(_compare, limits, given.minutes, seed), numbers)
            progress = Console(stderr=True)
            done = track(runs, f"seed {seed}", len(numbers), console=progress, transient=True)
            _show(list(done), seed, console)


if __name__ == "__main__":
    main()
