"""What writing costs a client: EventStore.write against boto3's batch_writer, PynamoDB and pydynox.

All write the same items, 25 a BatchWriteItem, to one engine on this machine. Only EventStore also validates, encodes
the payload, chooses shards and answers for each event; the peers get ready-made items. CPU is this process's own.
"""

import argparse
from collections.abc import Callable
from typing import Any, cast

import boto3
from pydynox import DynamoDBClient as PydynoxClient
from pynamodb.attributes import UnicodeAttribute
from pynamodb.models import Model

from benchmarks.measure import measure, print_table
from benchmarks.tables import (
    EVENTS,
    LAYOUTS,
    arguments,
    connect,
    create_tables,
    flight,
    native_item,
)
from local.engine import running_engine
from spillway import EventStore, Settings


def _batch_writer(url: str, items: list[dict[str, str]]) -> Callable[[], None]:
    table = boto3.resource("dynamodb", **arguments(url)).Table(EVENTS)

    def write() -> None:
        with table.batch_writer() as batch:
            for item in items:
                batch.put_item(Item=item)

    return write


def _pynamodb(url: str, items: list[dict[str, str]]) -> Callable[[], None]:
    given = arguments(url)

    class Stored(Model):
        class Meta:
            table_name = EVENTS
            region = "us-east-1"
            host = url
            aws_access_key_id = given["aws_access_key_id"]
            aws_secret_access_key = given["aws_secret_access_key"]

        PK = UnicodeAttribute(hash_key=True)
        SK = UnicodeAttribute(range_key=True)
        GSI1PK = UnicodeAttribute()
        payload = UnicodeAttribute()

    def write() -> None:
        with Stored.batch_write() as batch:
            for item in items:
                batch.save(Stored(**cast("Any", item)))

    return write


def _pydynox(url: str, items: list[dict[str, str]]) -> Callable[[], None]:
    given = arguments(url)
    client = PydynoxClient(
        region="us-east-1",
        access_key=given["aws_access_key_id"],
        secret_key=given["aws_secret_access_key"],
        endpoint_url=url,
    )
    plain: list[dict[str, Any]] = list(items)
    return lambda: client.sync_batch_write(EVENTS, put_items=plain)


def _spillway(url: str, count: int) -> Callable[[], None]:
    store = EventStore(connect(url), table=EVENTS, layouts=LAYOUTS, settings=Settings(shards=16))
    events = [flight(number) for number in range(count)]

    def write() -> None:
        for start in range(0, count, 1_000):
            result = store.write(events[start : start + 1_000])
            if result.rejected:
                raise RuntimeError(f"rejected: {result.rejected[0]}")

    return write


def main() -> None:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=2_000, help="events a round")
    parser.add_argument(
        "--rounds", type=int, default=9, help="rounds, each contestant once a round"
    )
    given = parser.parse_args()
    with running_engine() as engine:
        create_tables(connect(engine.url))
        items = [native_item(number) for number in range(given.events)]
        contestants = {
            "boto3 batch_writer": _batch_writer(engine.url, items),
            "PynamoDB batch_write": _pynamodb(engine.url, items),
            "pydynox batch_write": _pydynox(engine.url, items),
            "EventStore.write": _spillway(engine.url, given.events),
        }
        costs = measure(contestants, given.rounds)
    title = f"Writing {given.events:,} events, 25 a BatchWriteItem, {given.rounds} rounds"
    print_table(title, costs, given.events, "boto3 batch_writer")


if __name__ == "__main__":
    main()
