"""Commands: `python -m dynamoheat.studies.validation`, and with `--sensitivity` the same over the unknown parameters."""

import argparse
import sys
from collections.abc import Iterable, Sequence
from functools import partial

from rich.console import Console
from rich.progress import track

from dynamoheat.parameters import ModelParameters
from dynamoheat.studies.validation import sensitivity
from dynamoheat.studies.validation.cases import CASES
from dynamoheat.studies.validation.outcomes import Job, outcomes
from dynamoheat.studies.validation.report import report

__all__ = ["main"]

_WIDTH = 150


def main(arguments: Sequence[str] | None = None) -> int:
    """Print published and modelled outcomes; return 1 where one is out of its tolerance."""
    parser = argparse.ArgumentParser(
        prog="python -m dynamoheat.studies.validation", description=__doc__
    )
    parser.add_argument(
        "--sensitivity", action="store_true", help="halve and double each unknown parameter instead"
    )
    parser.add_argument("--processes", type=int, default=2, help="(%(default)s)")
    given = parser.parse_args(arguments)
    if given.sensitivity:
        return _sensitivity(given.processes)
    return _validate(given.processes)


def _validate(processes: int) -> int:
    jobs = [Job(case, ModelParameters(), case.seeds) for case in CASES]
    found = outcomes(jobs, processes, partial(_tracked, "Published cases"))
    _print(report(found))
    out = sorted({outcome.case.number for outcome in found if not outcome.holds})
    _print(f"\nout of tolerance: cases {', '.join(out)}" if out else "\nall within tolerance")
    return 1 if out else 0


def _sensitivity(processes: int) -> int:
    jobs = sensitivity.jobs()
    _print(sensitivity.report(outcomes(jobs, processes, partial(_tracked, "Variants"))))
    return 0


def _tracked(what: str, runs: Iterable[None], total: int) -> Iterable[None]:
    return track(runs, what, total, console=Console(stderr=True), transient=True)


def _print(shown: object) -> None:
    Console(width=_WIDTH, highlight=False).print(shown)


if __name__ == "__main__":
    sys.exit(main())
