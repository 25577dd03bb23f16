"""Six designs of DynamoDB side by side: where the heat was, and what was throttled.

Figures have one style, and equal runs give files of equal bytes.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from hashlib import sha256
from itertools import groupby, pairwise
from pathlib import Path
from typing import Final

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.patches import Rectangle

from dynamoheat.parameters import ModelParameters
from dynamoheat.studies.generations.generation import Generation
from dynamoheat.studies.generations.runs import (
    REPORTED_PHASES,
    SAMPLE_SECONDS,
    GenerationRun,
    PhaseTally,
)
from dynamoheat.studies.generations.workload import OPENING, Workload

__all__ = ["INK", "PALE", "draw_partitions", "draw_throttled", "fingerprint", "save", "styled"]

INK: Final = "#222222"
PALE: Final = "#8a8a8a"
_LIMIT: Final = ModelParameters().partition_wcu
_HEAT: Final = LinearSegmentedColormap.from_list(
    "heat", mpl.colormaps["YlOrRd"](np.linspace(0, 0.85, 256))
)  # its darkest would hide the hatching
_THROTTLED: Final = "#1546b0"
_ACCEPTED: Final = "#f2b134"
_SIZE: Final = (10.0, 11.8)
_TITLE: Final = "One skewed workload on six designs of DynamoDB: "
_SEEN: Final = 0.05  # a partition counts as throttling from this share of what it was offered
_BROKEN: Final = {"hot key moves", "above provisioned", "one time series"}  # too wide for a line


def draw_partitions(runs: Sequence[GenerationRun]) -> Figure:
    """Draw partitions by time for each run, by what each partition accepted."""
    with styled():
        figure, panels = _panels(runs)
        for run, axes in zip(runs, panels, strict=True):
            _heat_map(run, axes)
            axes.set_title("{} → {} partitions".format(*run.partitions), loc="right", pad=4)
        figure.suptitle(_TITLE + "where the heat was", fontweight="bold")
        figure.supylabel("partitions, in the order of their keys", fontsize=9)
        _colour_bar(figure, panels)
        handles = [Rectangle((0, 0), 1, 1, fill=False, hatch="////", edgecolor=INK, linewidth=0.8)]
        figure.legend(
            handles, ["throttles"], loc="lower right", bbox_to_anchor=(0.99, 0.005), frameon=False
        )
    return figure


def draw_throttled(runs: Sequence[GenerationRun]) -> Figure:
    """Draw accepted and throttled units over time for each run."""
    with styled():
        figure, panels = _panels(runs)
        for run, axes in zip(runs, panels, strict=True):
            _areas(run, axes)
            share = run.total.share_throttled
            axes.set_title(f"{share:.0%} of all writes throttled", loc="right", pad=4)
        figure.suptitle(_TITLE + "what was throttled", fontweight="bold")
        figure.supylabel("write units a second, of the whole table", fontsize=9)
        handles, labels = panels[0].get_legend_handles_labels()
        figure.legend(
            handles, labels, loc="lower right", ncols=3, bbox_to_anchor=(0.99, 0.005), frameon=False
        )
    return figure


def _panels(runs: Sequence[GenerationRun]) -> tuple[Figure, list[Axes]]:
    figure = Figure(
        figsize=_SIZE, layout=ConstrainedLayoutEngine(rect=(0, 0.03, 1, 0.97), h_pad=0.06)
    )
    grid = figure.subplots(len(runs), 1, sharex=True)
    panels = list(np.atleast_1d(grid))
    for number, (run, axes) in enumerate(zip(runs, panels, strict=True), 1):
        name, adds = run.generation.value, run.generation.addition
        text = axes.set_title(f"{number}  {name}", loc="left", pad=4, fontweight="bold")
        axes.annotate(
            adds, (1, 0), xycoords=text, xytext=(8, 0), textcoords="offset points", va="bottom"
        )
        axes.tick_params(length=2.5, width=0.6)
        for start in run.workload.starts[1:-1]:
            axes.axvline(start / 60, color=PALE, linewidth=0.5, linestyle=(0, (4, 3)))
    _name_phases(runs[0].workload, panels[0])
    panels[-1].set_xlim(0, runs[0].workload.starts[-1] / 60)
    panels[-1].set_xlabel("minutes")
    return figure, panels


def _name_phases(workload: Workload, axes: Axes) -> None:
    """Write the phases' names above the uppermost panel."""
    for phase, (start, end) in zip(workload.phases, pairwise(workload.starts), strict=True):
        if phase.name in REPORTED_PHASES:
            name = "\n".join(phase.name.rsplit(" ", 1)) if phase.name in _BROKEN else phase.name
            axes.annotate(
                name,
                ((start + end) / 120, 1),
                xycoords=("data", "axes fraction"),
                xytext=(0, 20),
                textcoords="offset points",
                ha="center",
                va="bottom",
                fontsize=8.5,
                style="italic",
            )


def _heat_map(run: GenerationRun, axes: Axes) -> None:
    rows = run.by_partition()
    minutes = run.workload.starts[-1] / 60
    # Several pixels a cell: some viewers blur pixels when they enlarge a picture.
    picture = np.array(run.accepted_rates()).repeat(16, axis=0).repeat(6, axis=1)
    axes.imshow(
        picture,
        aspect="auto",
        origin="lower",
        interpolation="none",
        extent=(0, minutes, 0, len(rows)),
        cmap=_HEAT,
        vmin=0,
        vmax=_LIMIT,
    )
    axes.set_yticks([])
    for at, (below, above) in enumerate(pairwise(rows), 1):
        apart = next(now for now in range(len(below)) if below[now] is not above[now])
        axes.plot([_minute(apart), minutes], [at, at], color="white", linewidth=0.8)
    for low, high, first, last in _throttling(rows):
        axes.add_patch(
            Rectangle(
                (_minute(first), low),
                _minute(last - first),
                high - low,
                fill=False,
                hatch="////",
                edgecolor=INK,
                linewidth=0.8,
            )
        )


def _throttling(rows: list[list[PhaseTally]]) -> Iterator[tuple[int, int, int, int]]:
    """Yield rows and samples, from and to, in which one partition throttled without a break."""
    seen: dict[tuple[int, int], list[int]] = {}
    for now in range(len(rows[0])):
        for _, same in groupby(range(len(rows)), key=lambda row: id(rows[row][now])):
            span = list(same)
            if _throttles(rows[span[0]][now]):
                seen.setdefault((span[0], span[-1] + 1), []).append(now)
    for (low, high), samples in seen.items():
        for _, unbroken in groupby(enumerate(samples), key=lambda pair: pair[1] - pair[0]):
            times = [now for _, now in unbroken]
            yield low, high, times[0], times[-1] + 1


def _throttles(tally: PhaseTally) -> bool:
    return tally.throttled > _SEEN * (tally.accepted + tally.throttled)


def _areas(run: GenerationRun, axes: Axes) -> None:
    levels = [
        (sample.tally.accepted / SAMPLE_SECONDS, sample.tally.throttled / SAMPLE_SECONDS)
        for sample in run.samples
    ]
    steps = [0, *(at for at in range(1, len(levels)) if levels[at] != levels[at - 1])]
    edges = [*map(_minute, steps), _minute(len(levels))]
    accepted = [levels[at][0] for at in steps]
    offered = [sum(levels[at]) for at in steps]
    axes.stairs(accepted, edges, fill=True, color=_ACCEPTED, label="accepted")
    axes.stairs(offered, edges, baseline=accepted, fill=True, color=_THROTTLED, label="throttled")
    if run.generation is not Generation.ON_DEMAND:
        axes.axhline(OPENING.write, color=INK, linewidth=0.9, linestyle="--", label="provisioned")
    axes.set_ylim(0, 6000)
    axes.set_yticks([0, 2000, 4000])
    axes.yaxis.set_major_formatter("{x:,.0f}")


def _colour_bar(figure: Figure, panels: list[Axes]) -> None:
    scale = mpl.cm.ScalarMappable(mpl.colors.Normalize(0, _LIMIT), _HEAT)
    bar = figure.colorbar(scale, ax=panels, shrink=0.5, aspect=40, pad=0.015)
    bar.set_label("write units a second that one partition accepts (its limit is 1,000)")
    bar.outline.set_visible(False)
    bar.ax.yaxis.set_major_formatter("{x:,.0f}")


def _minute(sample: int) -> float:
    return sample * SAMPLE_SECONDS / 60


@contextmanager
def styled() -> Iterator[None]:
    """Draw in the common style within the block."""
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


def save(figure: Figure, path: Path, runs: Sequence[GenerationRun], title: str) -> None:
    """Write an SVG with the fingerprint of its runs, and no date."""
    metadata = {"Date": None, "Creator": None, "Title": title, "Identifier": fingerprint(runs)}
    with styled():
        figure.savefig(path, format="svg", metadata=metadata)


def fingerprint(runs: Sequence[GenerationRun]) -> str:
    """Return a short hash of the data that figures of these runs show."""
    digest = sha256()
    for run in runs:
        for row in run.by_partition():
            digest.update(repr([(tally.accepted, tally.throttled) for tally in row]).encode())
    return digest.hexdigest()[:16]
