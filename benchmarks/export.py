"""What exporting costs: 64 shards of 200-byte events as NDJSON lines, by the three modes, by ordered pages and by plain boto3.

Every contestant makes the same lines from payload text, without decoding it. "4 MB a request" goes on by cursor from an export
of its own each time, as over HTTP. Peak memory is Python's own, from a run of its own, above what lay there before.
"""

import argparse
import json
import statistics
import time
import tracemalloc
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import Any, Final

from rich.console import Console
from rich.table import Table

from benchmarks.tables import EVENTS, LAYOUTS, START, connect, create_tables, flight
from local.engine import running_engine
from spillway import EventStore, Settings, keys
from spillway.dynamodb.boto import call_through
from spillway.dynamodb.port import Call
from spillway.keys import parse_sort_key

_END: Final = START + timedelta(days=3_650)
_SHARDS: Final = 64
_ANSWER: Final = 4_000_000


class _Metered:
    """A port that counts queries and the read units that they cost."""

    def __init__(self, call: Call) -> None:
        self._call = call
        self.requests = 0
        self.read_units = 0.0

    def __call__(self, operation: str, request: Mapping[str, Any], /) -> dict[str, Any]:
        response = self._call(operation, request)
        if operation == "Query":
            self.requests += 1
            self.read_units += float(response["ConsumedCapacity"]["CapacityUnits"])
        return response


@dataclass(frozen=True, slots=True)
class _Run:
    """One run: events, seconds of CPU and by the wall, queries and read units."""

    events: int
    cpu: float
    wall: float
    requests: int
    read_units: float


Source = Callable[[], Iterable[str]]


def _line(sort_key: str, payload: str) -> str:
    time_text, _, event_id = parse_sort_key(sort_key)
    return (
        f'{{"series":"ORD","time":"{time_text}","id":{json.dumps(event_id)},"payload":{payload}}}\n'
    )


def _exported(store: EventStore, mode: str, pool: int = 4) -> Iterator[str]:
    export = store.export("ORD", START, _END, mode=mode, pool=pool, consistent=False)
    for chunk in export.chunks():
        for record in chunk.records:
            yield _line(record.sort_key, record.payload)


def _by_requests(store: EventStore, mode: str) -> Iterator[str]:
    cursor = None
    while True:
        export = store.export("ORD", START, _END, mode=mode, cursor=cursor, consistent=False)
        chunk = export.chunk(_ANSWER)
        for record in chunk.records:
            yield _line(record.sort_key, record.payload)
        cursor = chunk.cursor
        if cursor is None:
            return


def _ordered(store: EventStore) -> Iterator[str]:
    cursor = None
    while True:
        page = store.read(
            "ORD", START, _END, limit=10_000, cursor=cursor, consistent=False, source="table"
        )
        for record in page.records:
            yield _line(record.sort_key, record.payload)
        cursor = page.cursor
        if cursor is None:
            return


def _plain(client: Any, meter: _Metered) -> Iterator[str]:
    """Query shard after shard with boto3's paginator, as most code does."""
    for shard in range(_SHARDS):
        pages = client.get_paginator("query").paginate(
            TableName=EVENTS,
            KeyConditionExpression="PK = :p",
            ExpressionAttributeValues={":p": {"S": keys.partition_key("ORD", shard)}},
            ReturnConsumedCapacity="TOTAL",
        )
        for page in pages:
            meter.requests += 1
            meter.read_units += float(page["ConsumedCapacity"]["CapacityUnits"])
            for item in page["Items"]:
                yield _line(item["SK"]["S"], item["payload"]["S"])


def _timed(source: Source, meter: _Metered) -> _Run:
    requests, units = meter.requests, meter.read_units
    cpu, wall = time.process_time(), time.perf_counter()
    events = sum(1 for _ in source())
    return _Run(
        events,
        time.process_time() - cpu,
        time.perf_counter() - wall,
        meter.requests - requests,
        meter.read_units - units,
    )


def _peak(source: Source) -> float:
    """Return the megabytes that a run needs at most."""
    tracemalloc.start()
    for _ in source():
        pass
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return peak / 1e6


def _contestants(client: Any, store: EventStore, meter: _Metered) -> dict[str, Source]:
    return {
        "boto3, shard by shard": partial(_plain, client, meter),
        "ordered read, pages of 10,000": partial(_ordered, store),
        "shards": partial(_exported, store, "shards"),
        "blocks, pool of 4": partial(_exported, store, "blocks", 4),
        "blocks, pool of 8": partial(_exported, store, "blocks", 8),
        "round_robin": partial(_exported, store, "round_robin"),
        "shards, 4 MB a request": partial(_by_requests, store, "shards"),
        "blocks of 4, 4 MB a request": partial(_by_requests, store, "blocks"),
        "round_robin, 4 MB a request": partial(_by_requests, store, "round_robin"),
    }


def _print(title: str, runs: Mapping[str, list[_Run]], peaks: Mapping[str, float]) -> None:
    table = Table(title=title, title_justify="left")
    for heading in ("", "events/s", "CPU µs/event", "requests", "RCUs", "peak MB"):
        table.add_column(heading, justify="right" if heading else "left")
    for name, each in runs.items():
        table.add_row(
            name,
            f"{statistics.median(run.events / run.wall for run in each):,.0f}",
            f"{statistics.median(run.cpu * 1e6 / run.events for run in each):.1f}",
            f"{each[-1].requests:,}",
            f"{each[-1].read_units:,.0f}",
            f"{peaks[name]:.1f}",
        )
    Console(width=110).print(table)


def main() -> None:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=100_000, help="events that are exported")
    parser.add_argument(
        "--rounds", type=int, default=3, help="rounds, each contestant once a round"
    )
    given = parser.parse_args()
    with running_engine() as engine:
        client = connect(engine.url)
        create_tables(client)
        meter = _Metered(call_through(client))
        store = EventStore(meter, table=EVENTS, layouts=LAYOUTS, settings=Settings(shards=_SHARDS))
        for start in range(0, given.events, 1_000):
            store.write(map(flight, range(start, min(start + 1_000, given.events))))
        contestants = _contestants(client, store, meter)
        runs: dict[str, list[_Run]] = {name: [] for name in contestants}
        for _ in range(given.rounds):
            for name, source in contestants.items():
                runs[name].append(_timed(source, meter))
        peaks = {name: _peak(source) for name, source in contestants.items()}
    if {run.events for each in runs.values() for run in each} != {given.events}:
        raise RuntimeError("a contestant missed events, or had some twice")
    _print(f"Exporting {given.events:,} events, {given.rounds} rounds", runs, peaks)


if __name__ == "__main__":
    main()
