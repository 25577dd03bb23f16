"""What one page costs a reader of a sharded series: 64 shards, events of 200 bytes, pages of 100 and of 10,000.

A page is the next events, in order, of a range that holds several times as many, from a random time on. Contestants read
the same data on the same engine, in turns, eventually consistently:

- Spillway, from the table's shards, and by its own plan (`source=auto`), which may be the index;
- an unsharded series, one boto3 Query: what a page costs where nothing had to be sharded;
- the common scatter-gather: boto3 queries to all shards over a pool of threads, everything read, then sorted;
- shard by shard: the same queries one after the other.

Peak memory is the kernel's, above an idle reader, in a process of its own.
"""

import argparse
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from random import Random
from typing import Any, Final

from boto3.dynamodb.types import TypeDeserializer
from rich.console import Console
from rich.table import Table

from benchmarks.loading import SECONDS_APART, load
from benchmarks.tables import EVENTS, LAYOUTS, START, connect, create_tables
from local.engine import running_engine
from spillway import EventStore, Settings, keys
from spillway.timestamps import format_time

SERIES: Final = "ORD"
PLAIN: Final = "PLAIN"  # the same events, unsharded
_SHARDS: Final = 64
_HELD: Final = {1: 400, 100: 10, 10_000: 4}  # pages that a range holds, by the page's size
_POOL: Final = 16
_CONDITION: Final = "PK = :p AND SK BETWEEN :low AND :high"


@dataclass
class Pages:
    """What a contestant's pages took, page by page."""

    requests: list[float] = field(default_factory=list)
    items: list[float] = field(default_factory=list)
    units: list[float] = field(default_factory=list)
    rounds: list[int] = field(default_factory=list)
    wall: list[float] = field(default_factory=list)
    cpu: list[float] = field(default_factory=list)


Took = tuple[int, int, float, int]  # requests, items, read units, rounds
Contestant = Callable[[datetime, datetime, int], Took]


def spillway(url: str, source: str) -> Contestant:
    """Return the store's own reader."""
    store = EventStore(connect(url), table=EVENTS, layouts=LAYOUTS)

    def page(start: datetime, end: datetime, limit: int) -> Took:
        page = store.read(SERIES, start, end, limit=limit, source=source, consistent=False)
        _check(len(page.events), limit)
        took = page.explanation
        return took.requests, took.items, took.read_units, took.rounds

    return page


@dataclass
class Boto:
    """Queries by a boto3 client: every page of a partition key in a range."""

    client: Any
    decode: Callable[[Any], Any] = field(default_factory=lambda: TypeDeserializer().deserialize)

    def query(
        self, key: str, start: datetime, end: datetime, limit: int | None
    ) -> tuple[list[Any], int, float]:
        """Return a partition's items, decoded, the requests and the read units; all pages where there is no limit."""
        found: list[Any] = []
        requests, units = 0, 0.0
        further: dict[str, Any] = {} if limit is None else {"Limit": limit}
        while True:
            answer = self.client.query(
                TableName=EVENTS,
                KeyConditionExpression=_CONDITION,
                ExpressionAttributeValues={
                    ":p": {"S": key},
                    ":low": {"S": format_time(start)},
                    ":high": {"S": format_time(end)},
                },
                ReturnConsumedCapacity="TOTAL",
                **further,
            )
            requests += 1
            units += answer["ConsumedCapacity"]["CapacityUnits"]
            for item in answer["Items"]:
                event = {name: self.decode(value) for name, value in item.items()}
                event["payload"] = json.loads(event["payload"])
                found.append(event)
            if limit is not None or "LastEvaluatedKey" not in answer:
                return found, requests, units
            further = {"ExclusiveStartKey": answer["LastEvaluatedKey"]}


def unsharded(url: str) -> Contestant:
    """Return one plain Query of an unsharded series."""
    boto = Boto(connect(url))

    def page(start: datetime, end: datetime, limit: int) -> Took:
        found: list[Any] = []
        requests, units = 0, 0.0
        while len(found) < limit:  # a Query ends at 1 MB
            more, sent, cost = boto.query(
                keys.partition_key(PLAIN, 0), start, end, limit - len(found)
            )
            found, requests, units = found + more, requests + sent, units + cost
            start = datetime.fromisoformat(found[-1]["SK"][:27]) + timedelta(microseconds=1)
        return requests, len(found), units, requests

    return page


def gathering(url: str, threads: int) -> Contestant:
    """Return the scatter-gather that reads everything in the range, and sorts; shard by shard with one thread."""
    boto = Boto(connect(url))
    pool = ThreadPoolExecutor(threads)

    def page(start: datetime, end: datetime, limit: int) -> Took:
        task = partial(boto.query, start=start, end=end, limit=None)
        parts = list(pool.map(task, [keys.partition_key(SERIES, n) for n in range(_SHARDS)]))
        events = sorted((each for part, _, _ in parts for each in part), key=lambda e: e["SK"])
        _check(len(events[:limit]), limit)
        requests = sum(sent for _, sent, _ in parts)
        rounds = max(sent for _, sent, _ in parts) if threads > 1 else requests
        return requests, len(events), sum(cost for _, _, cost in parts), rounds

    return page


CONTESTANTS: Final[dict[str, Callable[[str], Contestant]]] = {
    "Spillway, table": partial(spillway, source="table"),
    "Spillway, auto": partial(spillway, source="auto"),
    "(a) one unsharded Query": unsharded,
    f"(b) scatter-gather, {_POOL} threads": partial(gathering, threads=_POOL),
    "(c) shard by shard": partial(gathering, threads=1),
}


def _check(found: int, expected: int) -> None:
    if found != expected:
        raise RuntimeError(f"read {found} of {expected} events")


def _range(random: Random, limit: int, events: int) -> tuple[datetime, datetime]:
    held = _HELD[limit] * limit
    first = random.randrange(max(1, events - held))
    start = START + timedelta(seconds=first * SECONDS_APART)
    return start, start + timedelta(seconds=held * SECONDS_APART)


def measure(url: str, limit: int, count: int, events: int) -> dict[str, Pages]:
    """Read pages, each contestant the same one in turn, in an order that changes from page to page."""
    ready = {name: make(url) for name, make in CONTESTANTS.items()}
    pages = {name: Pages() for name in ready}
    random = Random(limit)
    for number in range(-2, count):  # two to warm up
        start, end = _range(random, limit, events)
        for name in random.sample(list(ready), len(ready)):
            cpu, wall = time.process_time(), time.perf_counter()
            took = ready[name](start, end, limit)
            wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
            if number >= 0:
                _note(pages[name], took, wall, cpu)
    return pages


def _note(pages: Pages, took: Took, wall: float, cpu: float) -> None:
    requests, items, units, rounds = took
    pages.requests.append(requests)
    pages.items.append(items)
    pages.units.append(units)
    pages.rounds.append(rounds)
    pages.wall.append(wall)
    pages.cpu.append(cpu)


def memory(url: str, name: str, limit: int, events: int) -> float:
    """Return the MB that pages take at their peak, above an idle reader; asked of a process of its own."""
    read = CONTESTANTS[name](url)
    random = Random(limit)
    read(*_range(random, 1, events), 1)
    idle = _status("VmRSS")
    Path("/proc/self/clear_refs").write_text("5")  # the peak starts anew
    for _ in range(3):
        read(*_range(random, limit, events), limit)
    return (_status("VmHWM") - idle) / 1024


def _status(name: str) -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(name))


def show(limit: int, pages: dict[str, Pages], peaks: dict[str, float]) -> None:
    """Print one table: medians a page, and what the goals are about."""
    count = len(next(iter(pages.values())).wall)
    title = f"Pages of {limit:,} of ranges of {_HELD[limit] * limit:,} events, {_SHARDS} shards, {count} pages each"
    table = Table(title=title, title_justify="left")
    for heading in ("", "requests", "fetched ÷ returned", "RCU", "rounds", "in one round", "p50 ms", "p99 ms", "CPU ms", "peak MB"):  # fmt: skip
        table.add_column(heading, justify="right" if heading else "left")
    for name, each in pages.items():
        table.add_row(
            name,
            f"{statistics.mean(each.requests):.1f}",
            f"{statistics.mean(each.items) / limit:.3f}",
            f"{statistics.mean(each.units):.1f}",
            f"{statistics.mean(each.rounds):.1f}",
            f"{sum(n == 1 for n in each.rounds) / count:.0%}",
            f"{statistics.median(each.wall) * 1e3:.1f}",
            f"{sorted(each.wall)[int(0.99 * count)] * 1e3:.1f}",
            f"{statistics.median(each.cpu) * 1e3:.1f}",
            f"{peaks[name]:.1f}",
        )
    Console(width=150).print(table)
    least = 0.5 * _SHARDS
    ours = statistics.mean(pages["Spillway, table"].units)
    print(
        f"Least possible from the table, one minimum read a shard: {least:g} RCU; Spillway {ours / least:.2f} of it.\n"
    )


def main() -> None:
    """Load, measure both sizes of pages, and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)  # fmt: skip
    parser.add_argument("--events", type=int, default=200_000)
    parser.add_argument(
        "--pages", type=int, default=200, help="pages of 100; a tenth of it of 10,000"
    )
    parser.add_argument(
        "--memory", nargs=3, metavar=("URL", "NAME", "LIMIT"), help=argparse.SUPPRESS
    )
    given = parser.parse_args()
    if given.memory:
        url, name, limit = given.memory
        print(memory(url, name, int(limit), given.events))
        return
    with running_engine() as engine:
        client = connect(engine.url)
        create_tables(client, indexed=True)
        for series, shards in ((SERIES, _SHARDS), (PLAIN, 1)):
            settings = Settings(shards=shards)
            EventStore(client, table=EVENTS, layouts=LAYOUTS, settings=settings).set_layout(series)
            load(engine.url, series, given.events, shards)
        for limit, count in ((100, given.pages), (10_000, max(10, given.pages // 10))):
            pages = measure(engine.url, limit, count, given.events)
            peaks = {name: _peak(engine.url, name, limit, given.events) for name in CONTESTANTS}
            show(limit, pages, peaks)


def _peak(url: str, name: str, limit: int, events: int) -> float:
    command = [sys.executable, "-m", "benchmarks.query", "--events", str(events), "--memory", url, name, str(limit)]  # fmt: skip
    return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)  # noqa: S603  ourselves


if __name__ == "__main__":
    main()
