"""What reading costs a client: 10,000 events from 1 and from 16 shards against boto3's paginator on one partition.

The paginator reads an unsharded partition, so it has no merge to do; the store merges, and returns decoded events.
"""

import argparse
import json
from collections.abc import Callable
from datetime import timedelta

from boto3.dynamodb.types import TypeDeserializer

from benchmarks.measure import measure, print_table
from benchmarks.tables import EVENTS, LAYOUTS, START, connect, create_tables, flight, native_item
from local.engine import running_engine
from spillway import Event, EventStore, Settings

_PLAIN = "bench-plain"
_FOREVER = timedelta(days=3_650)


def _paginator(url: str, count: int) -> Callable[[], None]:
    client = connect(url)
    create_tables(client, _PLAIN)
    for start in range(0, count, 25):
        puts = [_unsharded(number) for number in range(start, start + 25)]
        client.batch_write_item(
            RequestItems={_PLAIN: [{"PutRequest": {"Item": item}} for item in puts]}
        )
    decode = TypeDeserializer().deserialize

    def read() -> None:
        pages = client.get_paginator("query").paginate(
            TableName=_PLAIN,
            KeyConditionExpression="PK = :p",
            ExpressionAttributeValues={":p": {"S": "ORD"}},
            ConsistentRead=True,
        )
        found = [json.loads(decode(item["payload"])) for page in pages for item in page["Items"]]
        _check(len(found), count)

    return read


def _unsharded(number: int) -> dict[str, dict[str, str]]:
    item = {**native_item(number), "PK": "ORD"}
    return {name: {"S": value} for name, value in item.items()}


def _spillway(url: str, count: int, shards: int, limit: int) -> Callable[[], None]:
    client = connect(url)
    events = f"{EVENTS}-{shards}-{limit}"
    create_tables(client, events)
    series = f"ORD-{shards}"
    store = EventStore(client, table=events, layouts=LAYOUTS, settings=Settings(shards=shards))
    for start in range(0, count, 1_000):
        store.write(_renamed(flight(number), series) for number in range(start, start + 1_000))

    def read() -> None:
        found: list[Event] = []
        cursor: str | None = ""
        while cursor is not None:
            page = store.read(series, START, START + _FOREVER, limit=limit, cursor=cursor or None)
            found += page.events
            cursor = page.cursor
        _check(len(found), count)

    return read


def _renamed(event: Event, series: str) -> Event:
    return Event(series=series, time=event.time, id=event.id, payload=event.payload)


def _check(found: int, expected: int) -> None:
    if found != expected:
        raise RuntimeError(f"read {found} of {expected} events")


def main() -> None:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=10_000, help="events that are read")
    parser.add_argument(
        "--rounds", type=int, default=7, help="rounds, each contestant once a round"
    )
    given = parser.parse_args()
    with running_engine() as engine:
        contestants = {
            "boto3 paginator": _paginator(engine.url, given.events),
            **{
                f"{shards:2} shards, pages of {limit:,}": _spillway(
                    engine.url, given.events, shards, limit
                )
                for shards in (1, 16)
                for limit in (1_000, 10_000)
            },
        }
        costs = measure(contestants, given.rounds)
    title = f"Reading {given.events:,} events in order, {given.rounds} rounds"
    print_table(title, costs, given.events, "boto3 paginator")


if __name__ == "__main__":
    main()
