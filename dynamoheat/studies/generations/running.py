"""Running a workload on a generation, and what is kept of it: by phase, and by minute and partition."""

from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from dynamoheat.partitions import Position
from dynamoheat.studies.generations.generation import Generation, GenerationTable, open_table
from dynamoheat.studies.generations.workload import OPENING, SKEWED, Workload

__all__ = ["SAMPLE_SECONDS", "PartitionSample", "PhaseTally", "Run", "run", "run_all"]

SAMPLE_SECONDS: Final = 60.0
"""How often a run's rates are noted."""


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
    """A minute from `at` on: units in all, and of each partition, by its first position."""

    at: float
    tally: PhaseTally
    partitions: dict[Position, PhaseTally]

    def of(self, low: Position) -> PhaseTally:
        """Return the tally of the partition that holds a position."""
        starts = sorted(self.partitions)
        return self.partitions[starts[bisect_right(starts, low) - 1]]


@dataclass(frozen=True, slots=True)
class Run:
    """What a generation made of a workload."""

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
        """Return a row of tallies, one a sample, for each partition that there was at the end.

        Before a split, both rows show the parent's: the same object.
        """
        rows = sorted(self.samples[-1].partitions)
        return [[sample.of(low) for sample in self.samples] for low in rows]

    def rates(self) -> list[list[float]]:
        """Return the units a second that were accepted, as `by_partition`."""
        return [[tally.accepted / SAMPLE_SECONDS for tally in row] for row in self.by_partition()]


def run(
    generation: Generation,
    workload: Workload = SKEWED,
    *,
    seed: int = 0,
    table: GenerationTable | None = None,
) -> Run:
    """Offer a workload to a new table (or to `table`); equal seeds give equal results."""
    table = table or open_table(generation, OPENING, seed=seed)
    result = Run(generation, workload, tuple(PhaseTally() for _ in workload.phases))
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


def run_all(generations: Iterable[Generation] = Generation, *, seed: int = 0) -> list[Run]:
    """Run the skewed workload on each generation."""
    return [run(generation, seed=seed) for generation in generations]


def _sample(at: float, table: GenerationTable) -> PartitionSample:
    return PartitionSample(
        at, PhaseTally(), {partition.low: PhaseTally() for partition in table.partitions}
    )
