"""Display."""

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
from local.demo.load import LoadSample, ShardCounts

__all__ = ["Display", "RequestTimings", "chart", "percentile"]


def percentile(values: Sequence[float], percent: float) -> float:
    """Return the least value that `percent` % of the values do not exceed; NaN of none."""
    if not values:
        return math.nan
    return sorted(values)[max(0, math.ceil(len(values) * percent / 100) - 1)]


class RequestTimings:
    """Seconds that requests took, by HTTP method."""

    def __init__(self) -> None:
        """Start with none."""
        self._seconds: dict[str, list[float]] = defaultdict(list)

    def observe(self, method: str, seconds: float) -> None:
        """Take note of a request."""
        self._seconds[method].append(seconds)

    def of(self, method: str) -> Sequence[float]:
        """Return the seconds of the requests of a method."""
        return self._seconds[method]


_MAX_LINES: Final = 40
_BAR: Final = 20  # characters of the longest
_ACCEPTED: Final = "#"
_THROTTLED: Final = "x"


class _ChartRow(NamedTuple):
    """Rates a second up to a time, and the layouts then."""

    at: float
    accepted: float
    throttled: float
    layouts: Sequence[ShardCounts]


def chart(samples: Sequence[LoadSample]) -> list[str]:
    """Return the lines of a chart: time runs downwards, both rates have one scale. At most 100 columns for 4 series.

    Many samples are drawn as averages over a few of them each. Fewer than two make no chart.
    """
    rows = [_row(before, after) for before, after in pairwise(_thinned(samples))]
    if not rows:
        return []
    most = max(max(row.accepted, row.throttled) for row in rows) or 1.0
    return [*_head(list(samples[-1].layouts)), *(_line(row, most) for row in rows)]


def _thinned(samples: Sequence[LoadSample]) -> Sequence[LoadSample]:
    """Return every so manyth sample, the first and the last always among them."""
    step = max(1, math.ceil((len(samples) - 1) / _MAX_LINES))
    return [*samples[:1], *samples[:0:-step][::-1]]


def _row(before: LoadSample, after: LoadSample) -> _ChartRow:
    seconds = max(after.at - before.at, 1e-3)
    return _ChartRow(
        after.at,
        (after.written - before.written) / seconds,
        (after.throttled - before.throttled) / seconds,
        list(after.layouts.values()),
    )


def _head(series: Sequence[str]) -> list[str]:
    columns = "".join(f"  {name:>9}" for name in series)
    return [
        f"{'':5}  {'':6}{'':{_BAR}}  {'':6}{'':{_BAR}}  shards (index shards)",
        f"{'s':>5}  {'accepted/s':{_BAR + 6}}  {'throttled/s':{_BAR + 6}}{columns}",
    ]


def _line(row: _ChartRow, most: float) -> str:
    accepted = _bar(row.accepted, most, _ACCEPTED)
    throttled = _bar(row.throttled, most, _THROTTLED)
    return f"{row.at:5.0f}  {accepted}  {throttled}" + "".join(map(_counts, row.layouts))


def _bar(rate: float, most: float, character: str) -> str:
    """Return a rate and its bar, one character at least for what is above zero."""
    length = min(_BAR, math.ceil(rate / most * _BAR)) if rate > 0 else 0
    return f"{rate:5,.0f} {character * length:{_BAR}}"


def _counts(counts: ShardCounts) -> str:
    text = f"{counts.shards} ({counts.index_shards})" if counts.shards else "-"
    return f"  {text:>9}"


_LINES = 10  # of progress, where there is no terminal


class Display:
    """Writes to a console; numbers its headings."""

    def __init__(self, console: Console) -> None:
        """Take the console."""
        self._console = console
        self._headings = 0

    def heading(self, title: str, *explanation: str) -> None:
        """Start a step: what it is, and a few lines on what it does."""
        self._headings += 1
        self._console.print(f"\n[bold]{self._headings}. {title}[/]", highlight=False)
        for line in explanation:
            self.say(line)

    def say(self, text: str) -> None:
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
    def progress(self, title: str, total: int) -> Generator[Callable[[int], None]]:
        """Show progress while the block runs; yields what is to be told how many more are done."""
        if self._console.is_terminal:
            with self._bar() as bar:
                task = bar.add_task(title, total=total)
                yield lambda more: bar.advance(task, more)
        else:
            yield self._lines(title, total)

    def _bar(self) -> Progress:
        columns = (
            TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(),
            MofNCompleteColumn(), TimeRemainingColumn(elapsed_when_finished=True),
        )  # fmt: skip
        return Progress(*columns, console=self._console)

    def _lines(self, title: str, total: int) -> Callable[[int], None]:
        done = 0

        def tell(more: int) -> None:
            nonlocal done
            before, done = done * _LINES // total, done + more
            if done * _LINES // total > before:
                self.say(f"  {title}: {done:,} of {total:,}")

        return tell
