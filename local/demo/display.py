"""The demo's output: headings, tables, progress, a chart of a load, and times of requests."""

import math
from collections import defaultdict
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from typing import Final, NamedTuple

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskProgressColumn,
    TextColumn,
    TimeRemainingColumn,
)
from rich.table import Table

from local.demo.client import ClientEvent
from local.demo.load import LoadSample, ReportProgress, ShardCounts

__all__ = ["Display", "RequestTimings", "chart", "percentile"]

_PROGRESS_LINES: Final = 10  # where there is no terminal
_MAX_CHART_LINES: Final = 40
_BAR_COLUMNS: Final = 20  # of the longest bar


class Display:
    """Writes to a console, and numbers its headings."""

    def __init__(self, console: Console) -> None:
        """Take the console."""
        self._console = console
        self._headings = 0

    def heading(self, title: str, *explanation: str) -> None:
        """Print the heading of a step, and lines that explain it."""
        self._headings += 1
        self._console.print(f"\n[bold]{self._headings}. {title}[/]", highlight=False)
        for line in explanation:
            self.print(line)

    def print(self, text: str) -> None:
        """Print a line as it is."""
        self._console.print(text, markup=False, highlight=False, soft_wrap=True)

    def done(self, text: str) -> None:
        """Print that something is done."""
        self._console.print(f"[green]✓[/] {text}", highlight=False, soft_wrap=True)

    def events(self, title: str, events: Sequence[ClientEvent]) -> None:
        """Print events as a small table."""
        names = list(events[0]["payload"]) if events else []
        rows = [
            [each["time"], each["id"], *(str(each["payload"][name]) for name in names)]
            for each in events
        ]
        self.table(title, ["time", "id", *names], rows)

    def table(self, title: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
        """Print a table."""
        table = Table(
            title=title or None, title_justify="left", title_style="", box=None, padding=(0, 2)
        )
        for name in columns:
            table.add_column(name, style=None, header_style="dim", no_wrap=True)
        for row in rows:
            table.add_row(*row)
        self._console.print(table, highlight=False)

    @contextmanager
    def progress(self, title: str, total: int) -> Generator[ReportProgress]:
        """Show progress while the block runs: a bar on a terminal, else plain lines.

        Yields the function to call with how many more are done.
        """
        if self._console.is_terminal:
            with self._make_bar() as bar:
                task = bar.add_task(title, total=total)
                yield lambda more: bar.advance(task, more)
        else:
            yield self._make_line_printer(title, total)

    def _make_bar(self) -> Progress:
        columns = (
            TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(),
            MofNCompleteColumn(), TimeRemainingColumn(elapsed_when_finished=True),
        )  # fmt: skip
        return Progress(*columns, console=self._console)

    def _make_line_printer(self, title: str, total: int) -> Callable[[int], None]:
        done = 0

        def report(more: int) -> None:
            nonlocal done
            before, done = done * _PROGRESS_LINES // total, done + more
            if done * _PROGRESS_LINES // total > before:
                self.print(f"  {title}: {done:,} of {total:,}")

        return report


class RequestTimings:
    """Seconds that requests took, by HTTP method."""

    def __init__(self) -> None:
        """Begin without any."""
        self._seconds: dict[str, list[float]] = defaultdict(list)

    def observe(self, method: str, seconds: float) -> None:
        """Add a request."""
        self._seconds[method].append(seconds)

    def of(self, method: str) -> Sequence[float]:
        """Return the seconds of a method's requests."""
        return self._seconds[method]


def percentile(values: Sequence[float], percent: float) -> float:
    """Return the least value that `percent` % of the values do not exceed; NaN of none."""
    if not values:
        return math.nan
    return sorted(values)[max(0, math.ceil(len(values) * percent / 100) - 1)]


class _ChartRow(NamedTuple):
    """Rates a second up to a time, and the layouts at that time."""

    at: float
    accepted: float
    throttled: float
    layouts: Sequence[ShardCounts]


def chart(samples: Sequence[LoadSample]) -> list[str]:
    """Draw a load in plain characters: a line a second or so, bars for rates, shards beside them.

    Both rates have the same scale. Many samples are drawn as averages over a few each; fewer than
    two make no chart. Lines have at most 100 columns for up to 4 series.
    """
    rows = [_chart_row(before, after) for before, after in pairwise(_thin_out(samples))]
    if not rows:
        return []
    max_rate = max(max(row.accepted, row.throttled) for row in rows) or 1.0
    return [
        *_chart_head(list(samples[-1].layouts)),
        *(_chart_line(row, max_rate) for row in rows),
    ]


def _thin_out(samples: Sequence[LoadSample]) -> Sequence[LoadSample]:
    """Return every n-th sample, always with the first and the last."""
    step = max(1, math.ceil((len(samples) - 1) / _MAX_CHART_LINES))
    return [*samples[:1], *samples[:0:-step][::-1]]


def _chart_row(before: LoadSample, after: LoadSample) -> _ChartRow:
    seconds = max(after.at - before.at, 1e-3)
    return _ChartRow(
        after.at,
        (after.written - before.written) / seconds,
        (after.throttled - before.throttled) / seconds,
        list(after.layouts.values()),
    )


def _chart_head(series: Sequence[str]) -> list[str]:
    columns = "".join(f"  {name:>9}" for name in series)
    return [
        f"{'':5}  {'':6}{'':{_BAR_COLUMNS}}  {'':6}{'':{_BAR_COLUMNS}}  shards (index shards)",
        f"{'s':>5}  {'accepted/s':{_BAR_COLUMNS + 6}}  {'throttled/s':{_BAR_COLUMNS + 6}}{columns}",
    ]


def _chart_line(row: _ChartRow, max_rate: float) -> str:
    accepted = _bar(row.accepted, max_rate, "#")
    throttled = _bar(row.throttled, max_rate, "x")
    return f"{row.at:5.0f}  {accepted}  {throttled}" + "".join(map(_shard_cell, row.layouts))


def _bar(rate: float, max_rate: float, character: str) -> str:
    """Return a rate and its bar, of at least one character if the rate is above zero."""
    length = min(_BAR_COLUMNS, math.ceil(rate / max_rate * _BAR_COLUMNS)) if rate > 0 else 0
    return f"{rate:5,.0f} {character * length:{_BAR_COLUMNS}}"


def _shard_cell(counts: ShardCounts) -> str:
    text = f"{counts.shards} ({counts.index_shards})" if counts.shards else "-"
    return f"  {text:>9}"
