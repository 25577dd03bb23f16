"""`python -m dynamoheat.studies.generations`: one skewed workload on each generation of DynamoDB's design."""

import argparse
import sys
from collections.abc import Sequence

from dynamoheat.studies.generations.report import report
from dynamoheat.studies.generations.running import run_all

__all__ = ["main"]

_HEAD = """One skewed workload, 107 minutes; write units in all, and what was throttled of each phase.

"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(
        prog="python -m dynamoheat.studies.generations", description=__doc__
    )
    parser.add_argument("--seed", type=int, default=0, help="of all chance (%(default)s)")
    sys.stdout.write(_HEAD + report(run_all(seed=parser.parse_args(arguments).seed)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
