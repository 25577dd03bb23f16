"""Tells a person what the local cloud is doing: a tidy line for each step."""

from collections.abc import Generator
from contextlib import contextmanager
from time import perf_counter

from rich.console import Console

__all__ = ["ProgressPrinter"]


class ProgressPrinter:
    """Prints a line when a step is done; on a terminal, shows the step while it runs."""

    def __init__(self, console: Console) -> None:
        """Take the console to print on."""
        self._console = console

    @contextmanager
    def step(self, title: str) -> Generator[None]:
        """Run the block as a step."""
        began = perf_counter()
        with self._console.status(title):
            yield
        self._console.print(f"[green]✓[/] {title} [dim]({perf_counter() - began:.1f} s)[/]")

    def say(self, text: str) -> None:
        """Print text as it is."""
        self._console.print(text, markup=False, highlight=False, soft_wrap=True)
