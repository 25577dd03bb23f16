"""Running cases, a seed a job, in processes."""

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from statistics import median

from dynamoheat.parameters import ModelParameters
from dynamoheat.studies.validation.case import Case, Figures

__all__ = ["CaseOutcome", "Job", "outcomes"]


@dataclass(frozen=True, slots=True)
class Job:
    """A case to run with some parameters and with so many seeds."""

    case: Case
    parameters: ModelParameters
    seeds: int


@dataclass(frozen=True, slots=True)
class CaseOutcome:
    """What the model gave for a case: the figures of each seed, in the order of `case.expected`."""

    case: Case
    figures: tuple[Figures, ...]

    def middle(self, at: int) -> float:
        """Return the median of a figure."""
        return median(figures[at] for figures in self.figures)

    def spread(self, at: int) -> tuple[float, float]:
        """Return the least and the greatest of a figure."""
        found = [figures[at] for figures in self.figures]
        return min(found), max(found)

    def within(self, at: int) -> int:
        """Return with how many seeds a figure is within its tolerance."""
        return sum(self.case.expected[at].holds(figures[at]) for figures in self.figures)

    @property
    def holds(self) -> bool:
        """Whether every figure is within its tolerance with every seed."""
        seeds = len(self.figures)
        return all(self.within(at) == seeds for at in range(len(self.case.expected)))


def outcomes(
    jobs: Sequence[Job], processes: int, track: Callable[[Iterable[None], int], Iterable[None]]
) -> list[CaseOutcome]:
    """Run jobs and return their outcomes in order. `track` is handed one None a finished run."""
    with ProcessPoolExecutor(processes) as pool:
        runs = [
            [pool.submit(_figures, job.case, job.parameters, seed) for seed in range(job.seeds)]
            for job in jobs
        ]
        futures = [future for seeds in runs for future in seeds]
        for _ in track(_finished(futures), len(futures)):
            pass
        return [
            CaseOutcome(job.case, tuple(future.result() for future in seeds))
            for job, seeds in zip(jobs, runs, strict=True)
        ]


def _finished(futures: Iterable[Future[Figures]]) -> Iterable[None]:
    for future in as_completed(futures):
        future.result()
        yield None


def _figures(case: Case, parameters: ModelParameters, seed: int) -> Figures:
    return case.run(case.trial(parameters, seed))
