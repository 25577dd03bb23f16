"""What the demo shows: headings, tables, and progress as bars on a terminal, as plain lines elsewhere."""

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager

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

__all__ = ["Display"]

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
