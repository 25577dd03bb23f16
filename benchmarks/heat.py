"""How fast layouts follow heat: the writers over the model of DynamoDB's partitions.

10,000 writes a second of items of 1 KB on one series that starts with one shard; the table and its
index are on demand and warm with 40 partitions each; 200 writers send batches of 25. Policies: no
sharding; one shard more with 60 s of cooldown and a random wait of 1 to 10 s, as the AWS blog on
choosing the number of shards has it; doubling; Spillway's own. Then a ramp that doubles every
minute from 100 to 12,800 writes a second, and a table that is cold.

Then series that throttle and are not the cause: 1,000 quiet neighbours of 6 writes a second each
beside the hot series, and 1,000 even series of 6 writes a second each on a new table of 4
partitions. None of them may grow.
"""

import argparse
import statistics
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from random import Random
from typing import Final

from rich.console import Console
from rich.progress import track
from rich.table import Table

from benchmarks.fleet.dynamodb import SimulatedDynamoDB, events_table
from benchmarks.fleet.virtual_time import VirtualTime
from benchmarks.fleet.writers import SERIES, FleetOutcome, WriterFleet
from spillway import Settings, ShardingMode
from spillway.scaling.updates import ScalingKind
from spillway.settings import Growth, GrowthPolicy

_RATE: Final = 10_000.0
_WARM: Final = 40_000.0  # write units a second: 40 partitions

_BLOG = Growth(
    policy=GrowthPolicy.INCREMENT,
    cooldown_seconds=60,
    min_wait_seconds=1,
    max_wait_seconds=10,
    wait_shape=0,
    max_utilization=None,
    stop_seconds=0,
)
_DOUBLING = Growth(policy=GrowthPolicy.DOUBLE, max_utilization=None)


@dataclass(frozen=True)
class Contestant:
    """A policy, how long its runs last, and how many seeds they take at most."""

    name: str
    settings: Settings
    seconds: int
    max_seeds: int
    with_usage: bool = False


_CONTESTANTS: Final = (
    Contestant("no sharding", Settings(growth=Growth(policy=None)), 10, 3),
    Contestant("AWS blog: +1, 60 s", Settings(mode=ShardingMode.RANDOM, growth=_BLOG), 60, 2),
    Contestant("doubling", Settings(growth=_DOUBLING), 20, 5),
    Contestant("Spillway", Settings(), 15, 50, with_usage=True),
)


def _database(time: VirtualTime, random: Random, *, warm_write: float | None) -> SimulatedDynamoDB:
    return SimulatedDynamoDB(time, events_table(warm_write=warm_write), random)


def _steady(_: float) -> float:
    return _RATE


def _ramp(seconds: float) -> float:
    return 100.0 * float(1 << int(seconds // 60))


def _fleet(contestant: Contestant) -> WriterFleet:
    return WriterFleet(
        database=partial(_database, warm_write=_WARM),
        settings=contestant.settings,
        rate=_steady,
        seconds=contestant.seconds,
        with_usage=contestant.with_usage,
    )


CROWDS: Final = {
    "one hot series, 40 partitions": WriterFleet(
        database=partial(_database, warm_write=_WARM),
        settings=Settings(),
        rate=_steady,
        seconds=12,
        neighbours=1_000,
    ),
    "none hot, 4 partitions": WriterFleet(
        database=partial(_database, warm_write=None),
        settings=Settings(),
        rate=None,
        seconds=12,
        neighbours=1_000,
    ),
}


def _run(fleet: WriterFleet, seed: int) -> FleetOutcome:
    return fleet.run(seed)


def _outcomes(title: str, fleet: WriterFleet, seeds: Sequence[int]) -> list[FleetOutcome]:
    """Run all seeds, on every processor."""
    with ProcessPoolExecutor() as pool:
        runs = pool.map(partial(_run, fleet), seeds)
        console = Console(stderr=True)
        return list(track(runs, title, total=len(seeds), console=console, transient=True))


def _changes(outcome: FleetOutcome) -> int:
    return sum(
        event.kind is ScalingKind.GREW and event.series == SERIES for event in outcome.events
    )


def _tried(outcome: FleetOutcome) -> int:
    return _changes(outcome) + outcome.kinds[ScalingKind.LOST_RACE]


def _percentile(values: Iterable[float], share: float) -> float:
    ranked = sorted(values)
    return ranked[min(len(ranked) - 1, int(share * len(ranked)))]


def _row(contestant: Contestant, outcomes: list[FleetOutcome]) -> list[str]:
    settled = [outcome.settled_after() for outcome in outcomes]
    found = [seconds for seconds in settled if seconds is not None]
    never = len(settled) - len(found)
    shares = [
        outcome.throttled_share(seconds) for outcome, seconds in zip(outcomes, settled, strict=True)
    ]
    seconds = f"{statistics.median(found):.0f} / {_percentile(found, 0.95):.0f}" if found else ""
    if never:
        seconds += f" ({never} not within {contestant.seconds})"
    return [
        contestant.name,
        str(len(outcomes)),
        seconds,
        f"{statistics.median(shares):.1%}",
        _spread(outcomes, _tried),
        _spread(outcomes, _changes),
        _spread(outcomes, _shards),
    ]


def _spread(outcomes: list[FleetOutcome], figure: Callable[[FleetOutcome], int]) -> str:
    figures = [figure(outcome) for outcome in outcomes]
    return f"{statistics.median(figures):.0f} ({min(figures)} to {max(figures)})"


def _shards(outcome: FleetOutcome) -> int:
    return outcome.layout.current.shards if outcome.layout else 0


def _goal(outcome: FleetOutcome) -> bool:
    settled, changes = outcome.settled_after(), _changes(outcome)
    quick = settled is not None and settled <= 5
    return quick and changes <= 3 and outcome.refused_updates <= 2 * changes


def _compare(seeds: int, console: Console) -> None:
    table = Table(title="10,000 writes/s on one series from one shard", title_justify="left")
    for heading in (
        "policy",
        "seeds",
        "s until 99 % at once (median / p95)",
        "throttled until then",
        "changes tried",
        "done",
        "shards in the end",
    ):
        table.add_column(heading)
    met = ""
    for contestant in _CONTESTANTS:
        numbers = range(min(seeds, contestant.max_seeds))
        outcomes = _outcomes(contestant.name, _fleet(contestant), numbers)
        table.add_row(*_row(contestant, outcomes))
        if contestant.with_usage:
            reached = sum(map(_goal, outcomes))
            met = f"{reached} of {len(outcomes)} seeds"
    console.print(table)
    console.print(
        f"Spillway within 5 s, 3 changes and 2 refused conditional updates a change: {met}"
    )


def _climb(seeds: int, console: Console) -> None:
    fleet = WriterFleet(
        database=partial(_database, warm_write=_WARM),
        settings=Settings(),
        rate=_ramp,
        seconds=480,
    )
    outcomes = _outcomes("ramp", fleet, range(seeds))
    shares = ", ".join(f"{outcome.throttled_share():.3%}" for outcome in outcomes)
    console.print(f"Ramp from 100 to 12,800 writes/s, doubling every minute: {shares} throttled")


def _cold(seeds: int, console: Console) -> None:
    fleet = WriterFleet(
        database=partial(_database, warm_write=None),
        settings=Settings(),
        rate=_steady,
        seconds=15,
    )
    outcomes = _outcomes("cold table", fleet, range(seeds))
    for outcome in outcomes:
        stop = outcome.layout.stop if outcome.layout else None
        console.print(
            f"Cold table of 4 partitions: {_changes(outcome)} changes to {_shards(outcome)} shards,"
            f" then growth stops: {stop.reason if stop else 'it does not'}"
        )


def _crowds(seeds: int, console: Console) -> None:
    table = Table(title="1,000 series of 6 writes/s each, not to be grown", title_justify="left")
    for heading in (
        "table",
        "seed",
        "of the 1,000 grown",
        "stored at once",
        "writes that the layouts' index throttled",
        "reports",
        "hot series: s until 99 % at once",
        "changes",
    ):
        table.add_column(heading)
    for name, fleet in CROWDS.items():
        for seed, outcome in enumerate(_outcomes(name, fleet, range(seeds))):
            table.add_row(
                name,
                str(seed),
                str(len(outcome.grown)),
                f"{outcome.neighbours_at_once:.1%}",
                str(outcome.index_throttled),
                ", ".join(f"{count} {kind}" for kind, count in sorted(outcome.kinds.items())),
                "" if outcome.layout is None else str(outcome.settled_after()),
                "" if outcome.layout is None else str(_changes(outcome)),
            )
    console.print(table)


def main() -> None:
    """Run all scenarios and print what they show."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=50, help="seeds of the comparison")
    parser.add_argument("--ramps", type=int, default=4, help="seeds of the ramp")
    given = parser.parse_args()
    console = Console(width=140)
    _compare(given.seeds, console)
    _climb(given.ramps, console)
    _cold(min(3, given.seeds), console)
    _crowds(min(2, given.seeds), console)


if __name__ == "__main__":
    main()
