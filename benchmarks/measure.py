"""Measuring: contestants take turns, so that drift of the machine's speed hits all of them alike."""

import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from rich.console import Console
from rich.table import Table

__all__ = ["Cost", "measure", "print_table"]


@dataclass(frozen=True, slots=True)
class Cost:
    """Seconds of one run: of this process's CPU over all its threads, and by the wall."""

    cpu: float
    wall: float


def _timed(work: Callable[[], None]) -> Cost:
    cpu, wall = time.process_time(), time.perf_counter()
    work()
    return Cost(time.process_time() - cpu, time.perf_counter() - wall)


def measure(contestants: Mapping[str, Callable[[], None]], rounds: int) -> dict[str, list[Cost]]:
    """Run every contestant once to warm up, then once a round in turn; costs by name, by round."""
    for work in contestants.values():
        work()
    costs: dict[str, list[Cost]] = {name: [] for name in contestants}
    for _ in range(rounds):
        for name, work in contestants.items():
            costs[name].append(_timed(work))
    return costs


def print_table(title: str, costs: Mapping[str, list[Cost]], events: int, peer: str) -> None:
    """Print microseconds an event (median, least to most) and the median of the ratios to `peer`, round by round."""
    table = Table(title=title, title_justify="left")
    for heading in ("", "CPU µs/event", "wall µs/event", f"CPU ÷ {peer}", f"wall ÷ {peer}"):
        table.add_column(heading, justify="right" if heading else "left")
    for name, runs in costs.items():
        cpu_ratio = statistics.median(a.cpu / b.cpu for a, b in zip(runs, costs[peer], strict=True))
        wall_ratio = statistics.median(
            a.wall / b.wall for a, b in zip(runs, costs[peer], strict=True)
        )
        table.add_row(
            name,
            _spread([run.cpu for run in runs], events),
            _spread([run.wall for run in runs], events),
            f"{cpu_ratio:.2f}",
            f"{wall_ratio:.2f}",
        )
    Console(width=110).print(table)


def _spread(seconds: list[float], events: int) -> str:
    micros = [each * 1e6 / events for each in seconds]
    return f"{statistics.median(micros):.1f} ({min(micros):.1f} to {max(micros):.1f})"
