"""What an aggregate over a million events takes: peak memory above idle, CPU and time, in a process of its own.

The process is idle once it has answered a first small question: connections, threads and code are there. Its peak is the
kernel's (`VmHWM`), so nothing between two looks is missed. The first row counts events without decoding them: what is
above it is the aggregate's own CPU.
"""

import argparse
import json
import subprocess
import sys
import time
from datetime import timedelta
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks.loading import SECONDS_APART, load
from benchmarks.tables import EVENTS, LAYOUTS, START, connect, create_tables
from local.engine import running_engine
from spillway import EventStore, Settings

_SERIES = "ORD"
_QUESTIONS: dict[str, dict[str, Any]] = {
    "count, hourly": {"functions": ["count"], "hours": 1},
    "count,avg,p99, hourly": {"functions": ["count", "avg", "p99"], "hours": 1, "field": "delay"},
    "all but percentiles, one row": {
        "functions": ["count", "sum", "min", "max", "avg", "first", "last"],
        "field": "delay",
    },
    "p50,p90,p99, one row (sketch)": {"functions": ["p50", "p90", "p99"], "field": "delay"},
}


def _status(name: str) -> int:
    """Return a figure of this process's memory in KB."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(name))


def _ask(store: EventStore, events: int, question: dict[str, Any]) -> tuple[int, int]:
    """Ask to the end; return rows and pages."""
    hours = question.get("hours")
    end = START + timedelta(seconds=events * SECONDS_APART)
    rows = pages = seen = 0
    cursor: str | None = ""
    while cursor is not None:
        page = store.aggregate(
            _SERIES,
            START,
            end,
            interval=timedelta(hours=hours) if hours else None,
            field=question.get("field"),
            functions=question["functions"],
            cursor=cursor or None,
            consistent=False,
            source="table",
            timeout=1_200,
        )
        rows, pages, cursor = rows + len(page.rows), pages + 1, page.cursor
        seen += page.spent.items
    if seen < events:
        raise RuntimeError(f"read {seen:,} of {events:,} events")
    return rows, pages


def _measured(url: str, events: int, question: dict[str, Any]) -> dict[str, float]:
    store = EventStore(connect(url), table=EVENTS, layouts=LAYOUTS)
    _ask(store, 100, question)
    idle = _status("VmRSS")
    Path("/proc/self/clear_refs").write_text("5")  # the peak starts anew
    cpu, wall = time.process_time(), time.perf_counter()
    rows, pages = _ask(store, events, question)
    return {
        "rows": rows,
        "pages": pages,
        "cpu": time.process_time() - cpu,
        "wall": time.perf_counter() - wall,
        "idle": idle,
        "peak": _status("VmHWM"),
    }


def _print(events: int, shards: int, found: dict[str, dict[str, float]]) -> None:
    title = f"Aggregating {events:,} events of 200 bytes in {shards} shards"
    table = Table(title=title, title_justify="left")
    for heading in ("", "rows", "pages", "CPU µs/event", "wall µs/event", "idle MB", "peak above idle MB"):  # fmt: skip
        table.add_column(heading, justify="right" if heading else "left")
    for name, cost in found.items():
        table.add_row(
            name,
            f"{cost['rows']:,}",
            f"{cost['pages']:,}",
            f"{cost['cpu'] / events * 1e6:.2f}",
            f"{cost['wall'] / events * 1e6:.2f}",
            f"{cost['idle'] / 1024:.0f}",
            f"{(cost['peak'] - cost['idle']) / 1024:.0f}",
        )
    Console(width=120).print(table)


def main() -> None:
    """Load, measure each question in a process of its own, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=1_000_000)
    parser.add_argument("--shards", type=int, default=64)
    parser.add_argument("--measure", nargs=2, metavar=("URL", "QUESTION"), help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.measure:
        url, name = given.measure
        print(json.dumps(_measured(url, given.events, _QUESTIONS[name])))
        return
    with running_engine() as engine:
        client = connect(engine.url)
        create_tables(client)
        settings = Settings(shards=given.shards)
        writer = EventStore(client, table=EVENTS, layouts=LAYOUTS, settings=settings)
        writer.set_layout(_SERIES)
        load(engine.url, _SERIES, given.events, given.shards)
        found = {}
        for name in _QUESTIONS:
            command = [sys.executable, "-m", "benchmarks.aggregate", "--events", str(given.events), "--measure", engine.url, name]  # fmt: skip
            done = subprocess.run(command, check=True, capture_output=True, text=True)  # noqa: S603  ourselves
            found[name] = json.loads(done.stdout)
    _print(given.events, given.shards, found)


if __name__ == "__main__":
    main()
