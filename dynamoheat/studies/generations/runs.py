"""Run a workload on each design, count by phase and by partition, and report the figures."""

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from textwrap import fill
from typing import Final

from dynamoheat.partitions import Position
from dynamoheat.studies.generations.generation import Generation, GenerationTable, open_table
from dynamoheat.studies.generations.workload import OPENING, SKEWED, Workload

__all__ = [
    "EXPLANATIONS",
    "REPORTED_PHASES",
    "SAMPLE_SECONDS",
    "GenerationRun",
    "PartitionSample",
    "PhaseTally",
    "report",
    "run",
    "run_all",
]

SAMPLE_SECONDS: Final = 60.0
"""Length of a sample."""


_COLUMNS: Final = 100  # of the explanations

REPORTED_PHASES: Final = (
    "even",
    "spike",
    "hot key",
    "hot key moves",
    "hot range",
    "above provisioned",
    "one time series",
)
"""The phases in the report; calm ones throttle nowhere."""


EXPLANATIONS: Final = {
    Generation.EQUAL_DIVISION: (
        "carries an even load to the unit. A hot partition throttles at its share, 400 since the"
        " split for size, while the table has 3,200."
    ),
    Generation.BURSTING: (
        "cured the spike: it lives on what its partition had left unused. A key that stays hot has"
        " spent that within minutes."
    ),
    Generation.ADAPTIVE_CAPACITY: (
        "cured the key that stays hot, but only after five minutes of throttling, and again five"
        " minutes when the heat moves."
    ),
    Generation.GLOBAL_ADMISSION: (
        "cured the waiting: any partition takes what the table has, at once, up to its own 1,000."
        " A range that wants more than that throttles."
    ),
    Generation.SPLIT_FOR_CONSUMPTION: (
        "cured the hot range, some minutes late: it is split where its traffic is. What exceeds the"
        " table's provisioned throughput still throttles."
    ),
    Generation.ON_DEMAND: (
        "cured the provisioned limit: twice the earlier peak passes at once. One time series still"
        " gets one partition: only more partition keys help it."
    ),
}
"""A sentence or two on each step; tests hold them to the figures."""


@dataclass(slots=True)
class PhaseTally:
    """Units that were offered."""

    accepted: float = 0.0
    throttled: float = 0.0

    def count(self, units: float, *, admitted: bool) -> None:
        """Add a request."""
        if admitted:
            self.accepted += units
        else:
            self.throttled += units

    @property
    def share_throttled(self) -> float:
        """Throttled units as a share of those offered."""
        return self.throttled / (self.accepted + self.throttled)


@dataclass(slots=True)
class PartitionSample:
    """The units of one minute from `at` on: in all, and by the first position of each partition."""

    at: float
    tally: PhaseTally
    partitions: dict[Position, PhaseTally]

    def tally_at(self, low: Position) -> PhaseTally:
        """Return the tally of the partition that holds a position."""
        starts = sorted(self.partitions)
        return self.partitions[starts[bisect_right(starts, low) - 1]]


@dataclass(frozen=True, slots=True)
class GenerationRun:
    """The figures of one design's run of a workload."""

    generation: Generation
    workload: Workload
    phases: tuple[PhaseTally, ...]
    samples: list[PartitionSample] = field(default_factory=list)

    @property
    def total(self) -> PhaseTally:
        """All phases together."""
        return PhaseTally(
            sum(phase.accepted for phase in self.phases),
            sum(phase.throttled for phase in self.phases),
        )

    def phase(self, name: str) -> PhaseTally:
        """Return all phases of a name together."""
        named = [
            tally
            for tally, phase in zip(self.phases, self.workload.phases, strict=True)
            if phase.name == name
        ]
        return PhaseTally(
            sum(each.accepted for each in named), sum(each.throttled for each in named)
        )

    @property
    def partitions(self) -> tuple[int, int]:
        """Partitions in the first sample and in the last."""
        return len(self.samples[0].partitions), len(self.samples[-1].partitions)

    def by_partition(self) -> list[list[PhaseTally]]:
        """Return a row of tallies, one a sample, for each partition at the end of the run.

        Before a split, the rows of both children hold the same object: the parent's tally.
        """
        rows = sorted(self.samples[-1].partitions)
        return [[sample.tally_at(low) for sample in self.samples] for low in rows]

    def accepted_rates(self) -> list[list[float]]:
        """Return the units a second that were accepted, as `by_partition`."""
        return [[tally.accepted / SAMPLE_SECONDS for tally in row] for row in self.by_partition()]


def run(
    generation: Generation,
    workload: Workload = SKEWED,
    *,
    seed: int = 0,
    table: GenerationTable | None = None,
) -> GenerationRun:
    """Offer a workload to a new table (or to `table`); equal seeds give equal results."""
    table = table or open_table(generation, OPENING, seed=seed)
    result = GenerationRun(generation, workload, tuple(PhaseTally() for _ in workload.phases))
    sample = _sample(0.0, table)
    for at, phase, ask in workload.events(seed):
        if at >= sample.at + SAMPLE_SECONDS:
            result.samples.append(sample)
            table.advance(at)
            sample = _sample(sample.at + SAMPLE_SECONDS, table)
        admitted = table.put(ask, at)
        low = table.partitions.find(ask.key, ask.sort).low
        for tally in (
            result.phases[phase],
            sample.tally,
            sample.partitions.setdefault(low, PhaseTally()),
        ):
            tally.count(ask.units, admitted=admitted)
    result.samples.append(sample)
    return result


def run_all(
    generations: Iterable[Generation] = Generation, *, seed: int = 0
) -> list[GenerationRun]:
    """GenerationRun the skewed workload on each generation."""
    return [run(generation, seed=seed) for generation in generations]


def _sample(at: float, table: GenerationTable) -> PartitionSample:
    return PartitionSample(
        at, PhaseTally(), {partition.low: PhaseTally() for partition in table.partitions}
    )


def report(runs: Sequence[GenerationRun]) -> str:
    """Return a Markdown table of accepted and throttled units, then the sentences."""
    rows = [["design", "accepted", "throttled", *REPORTED_PHASES], *map(_cells, runs)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    rule = ["-" * widths[0], *("-" * (width - 1) + ":" for width in widths[1:])]
    lines = [_line(cells, widths) for cells in (rows[0], rule, *rows[1:])]
    lines += ["", *map(_explanation, runs)]
    return "\n".join(lines) + "\n"


def _explanation(run: GenerationRun) -> str:
    return fill(
        f"- **{run.generation.value}** {EXPLANATIONS[run.generation]}",
        _COLUMNS,
        subsequent_indent="  ",
        break_long_words=False,
        break_on_hyphens=False,
    )


def _cells(run: GenerationRun) -> list[str]:
    total = run.total
    return [
        f"{list(Generation).index(run.generation) + 1} {run.generation.value}",
        f"{total.accepted / 1e6:.2f} M",
        f"{total.throttled / 1e6:.2f} M",
        *(f"{run.phase(name).share_throttled:.1%}" for name in REPORTED_PHASES),
    ]


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    name, *figures = zip(cells, widths, strict=True)
    padded = [name[0].ljust(name[1]), *(cell.rjust(width) for cell, width in figures)]
    return f"| {' | '.join(padded)} |"
