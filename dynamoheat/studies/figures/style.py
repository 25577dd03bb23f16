"""How all figures look, and how they are written: the same bytes from the same data."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import Final

import matplotlib as mpl
from matplotlib.figure import Figure

from dynamoheat.studies.generations.running import Run

__all__ = ["INK", "PALE", "fingerprint", "save", "styled"]

INK: Final = "#222222"
PALE: Final = "#8a8a8a"


@contextmanager
def styled() -> Iterator[None]:
    """Draw in the common style."""
    look = mpl.rc_context(
        {
            "axes.edgecolor": PALE,
            "axes.labelcolor": INK,
            "axes.labelsize": 9,
            "axes.linewidth": 0.6,
            "axes.titlesize": 10,
            "figure.facecolor": "white",
            "font.family": "DejaVu Sans",  # comes with matplotlib
            "font.size": 9,
            "hatch.linewidth": 0.6,
            "svg.fonttype": "path",  # looks the same wherever it is shown
            "svg.hashsalt": "spillway",
            "text.color": INK,
            "xtick.color": INK,
            "xtick.labelsize": 8,
            "ytick.color": INK,
            "ytick.labelsize": 8,
        }
    )
    with look:
        yield


def save(figure: Figure, path: Path, runs: Sequence[Run], title: str) -> None:
    """Write an SVG that names what it was drawn from, and no date."""
    metadata = {"Date": None, "Creator": None, "Title": title, "Identifier": fingerprint(runs)}
    with styled():
        figure.savefig(path, format="svg", metadata=metadata)


def fingerprint(runs: Sequence[Run]) -> str:
    """Return a short hash of all that figures of these runs show."""
    digest = sha256()
    for run in runs:
        for row in run.by_partition():
            digest.update(repr([(tally.accepted, tally.throttled) for tally in row]).encode())
    return digest.hexdigest()[:16]
