"""The generations side by side, in words and figures: what each step cured, and what it did not."""

from collections.abc import Sequence
from typing import Final

from dynamoheat.studies.generations.generation import Generation
from dynamoheat.studies.generations.running import Run

__all__ = ["SHOWN", "WHY", "report"]

SHOWN: Final = (
    "even",
    "spike",
    "hot key",
    "hot key moves",
    "hot range",
    "above provisioned",
    "one time series",
)
"""The phases that are told apart; calm ones throttle nowhere."""

WHY: Final = {
    Generation.EQUAL_DIVISION: (
        "carries an even load to the unit. A hot partition throttles at its share, 400 since the split"
        " for size, while the table has 3,200."
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


def report(runs: Sequence[Run]) -> str:
    """Return a Markdown table of accepted and throttled units, then the sentences."""
    rows = [["design", "accepted", "throttled", *SHOWN], *map(_cells, runs)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    rule = ["-" * widths[0], *("-" * (width - 1) + ":" for width in widths[1:])]
    lines = [_line(cells, widths) for cells in (rows[0], rule, *rows[1:])]
    lines += ["", *(f"- **{run.generation.value}** {WHY[run.generation]}" for run in runs)]
    return "\n".join(lines) + "\n"


def _cells(run: Run) -> list[str]:
    total = run.total
    return [
        f"{list(Generation).index(run.generation) + 1} {run.generation.value}",
        f"{total.accepted / 1e6:.2f} M",
        f"{total.throttled / 1e6:.2f} M",
        *(f"{run.phase(name).share_throttled:.1%}" for name in SHOWN),
    ]


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    name, *figures = zip(cells, widths, strict=True)
    padded = [name[0].ljust(name[1]), *(cell.rjust(width) for cell, width in figures)]
    return f"| {' | '.join(padded)} |"
