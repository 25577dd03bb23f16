"""`python -m dynamoheat.studies.figures FOLDER`: write the documentation's figures."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from dynamoheat.studies.figures.generations import draw_partitions, draw_throttled
from dynamoheat.studies.figures.style import save
from dynamoheat.studies.generations.running import run_all

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Draw all figures."""
    parser = argparse.ArgumentParser(
        prog="python -m dynamoheat.studies.figures", description=__doc__
    )
    parser.add_argument("folder", type=Path, help="to write into, such as docs/figures")
    folder = parser.parse_args(arguments).folder
    folder.mkdir(parents=True, exist_ok=True)
    runs = run_all()
    for name, draw, title in (
        ("generations-partitions.svg", draw_partitions, "Where the heat was, by generation"),
        ("generations-throttled.svg", draw_throttled, "Accepted and throttled, by generation"),
    ):
        save(draw(runs), folder / name, runs, title)
        sys.stdout.write(f"{folder / name}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
