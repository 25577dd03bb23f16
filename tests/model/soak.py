"""Run the model for as many steps as asked, on the code as it is or with a deviation that it must notice.

`python -m tests.model.soak --steps 10000000` checks the rule; `--mutations` prints after how many steps each is caught.
"""

import argparse
import sys

import pytest
from rich.console import Console
from rich.progress import track

from tests.model.coverage import CoverageModel, CoverageViolationError, Dates, Tally
from tests.model.mutations import MUTATIONS

_RUN_STEPS = 4_000


def _soak(steps: int, seed: int, dates: Dates | None) -> Tally:
    tally = Tally()
    runs = -(-steps // _RUN_STEPS)
    for number in track(range(runs), f"{steps:,} steps", console=Console(stderr=True)):
        tally.add(CoverageModel(seed + number, _RUN_STEPS, dates).run())
    return tally


def _caught_after(name: str, steps: int, seed: int) -> int | None:
    """Return the steps after which a mutation is noticed, None where it is not."""
    done = 0
    with pytest.MonkeyPatch.context() as patch:
        MUTATIONS[name](patch)
        while done < steps:
            model = CoverageModel(seed, _RUN_STEPS)
            try:
                model.run()
            except CoverageViolationError:
                return done + model.cluster.steps
            done += model.cluster.steps
            seed += 1
    return None


def main() -> None:
    """Run what the command line asks for; exit status 1 where something is not as it must be."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--steps", type=int, default=10_000_000, help="steps, or most steps a mutation"
    )
    parser.add_argument("--seed", type=int, default=1, help="of the first run")
    parser.add_argument(
        "--mutations", action="store_true", help="see that each deviation is caught"
    )
    parser.add_argument(
        "--dates", type=Dates, help="which processes see DynamoDB's date: all, some, none"
    )
    given = parser.parse_args()
    console = Console()
    if not given.mutations:
        console.print(_soak(given.steps, given.seed, given.dates))
        return
    missed = False
    for name in MUTATIONS:
        caught = _caught_after(name, given.steps, given.seed)
        console.print(
            f"{name:32} " + ("not caught" if caught is None else f"after {caught:,} steps")
        )
        missed |= caught is None
    sys.exit(missed)


if __name__ == "__main__":
    main()
