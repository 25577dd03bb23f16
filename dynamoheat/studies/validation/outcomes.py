"""Run cases in processes, a seed a job, and report published and modelled figures side by side."""

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from statistics import median

from rich.table import Table

from dynamoheat.parameters import ModelParameters
from dynamoheat.studies.validation.case import Figures, PublishedCase

__all__ = ["CaseOutcome", "ValidationJob", "number_text", "report", "run_jobs"]


@dataclass(frozen=True, slots=True)
class ValidationJob:
    """A case to run with some parameters and a number of seeds."""

    case: PublishedCase
    parameters: ModelParameters
    seeds: int


@dataclass(frozen=True, slots=True)
class CaseOutcome:
    """The model's figures of a case for each seed, in the order of `case.expected`."""

    case: PublishedCase
    figures: tuple[Figures, ...]

    def median(self, at: int) -> float:
        """Return the median of a figure."""
        return median(figures[at] for figures in self.figures)

    def extremes(self, at: int) -> tuple[float, float]:
        """Return the smallest and the largest of a figure."""
        found = [figures[at] for figures in self.figures]
        return min(found), max(found)

    def seeds_within(self, at: int) -> int:
        """Return with how many seeds a figure is within its tolerance."""
        return sum(self.case.expected[at].is_met_by(figures[at]) for figures in self.figures)

    @property
    def is_within_tolerance(self) -> bool:
        """Whether every figure is within its tolerance with every seed."""
        seeds = len(self.figures)
        return all(self.seeds_within(at) == seeds for at in range(len(self.case.expected)))


def run_jobs(
    jobs: Sequence[ValidationJob],
    processes: int,
    track: Callable[[Iterable[None], int], Iterable[None]],
) -> list[CaseOutcome]:
    """Run jobs and return their outcomes in order. `track` receives one None a finished run."""
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


def _figures(case: PublishedCase, parameters: ModelParameters, seed: int) -> Figures:
    return case.run(case.trial(parameters, seed))


def report(found: Iterable[CaseOutcome]) -> Table:
    """Return a table with a heading a case and a row a figure."""
    table = Table(box=None, pad_edge=False, header_style="")
    for column in ("case", "figure", "published", "tolerance", "model", "seeds", ""):
        table.add_column(column, no_wrap=column != "figure")
    for outcome in found:
        case = outcome.case
        table.add_row(case.number, f"{case.scenario}\n({case.source})")
        for at in range(len(case.expected)):
            table.add_row(*_row(outcome, at))
    return table


def _row(outcome: CaseOutcome, at: int) -> tuple[str, ...]:
    expected = outcome.case.expected[at]
    seeds, within = len(outcome.figures), outcome.seeds_within(at)
    return (
        "",
        f"  {expected.name}",
        expected.published,
        expected.tolerance,
        _shown(outcome, at),
        f"{within} of {seeds}" if seeds > 1 else "",
        "ok" if within == seeds else "out",
    )


def _shown(outcome: CaseOutcome, at: int) -> str:
    """Return a figure's median and, if they differ, its smallest and largest of the seeds."""
    least, most = (number_text(figure) for figure in outcome.extremes(at))
    middle = number_text(outcome.median(at))
    return middle if least == most else f"{middle} ({least} to {most})"


def number_text(figure: float) -> str:
    """Return a figure as text: whole from 100 up, else with a decimal if it has one."""
    rounded = round(figure, 0 if abs(figure) >= 100 else 1)
    return f"{rounded:,.0f}" if rounded == int(rounded) else f"{rounded:,.1f}"
