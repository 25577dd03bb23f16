"""Many events at once: items made here and sent straight to an engine, past the writer."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from functools import partial

from benchmarks.tables import EVENTS, START, connect
from spillway import keys
from spillway.dynamodb.boto import call_through
from spillway.dynamodb.port import Call, Item
from spillway.sharding import routing_hash, shard_of
from spillway.timestamps import format_time

__all__ = ["ITEM_BYTES", "SECONDS_APART", "load", "stored_item"]

ITEM_BYTES = 200
SECONDS_APART = 1
_BATCH = 25
_SENDERS = 4


def stored_item(series: str, number: int, shards: int) -> Item:
    """Return event `number` of a series as the store would hold it: `ITEM_BYTES` in all, one each second."""
    time = format_time(START + timedelta(seconds=number * SECONDS_APART))
    sort_key = keys.sort_key(time, None, f"{number:07d}")
    shard = shard_of(routing_hash(series, sort_key), shards)
    item = {
        keys.PARTITION_KEY: keys.partition_key(series, shard),
        keys.SORT_KEY: sort_key,
        keys.INDEX_PARTITION_KEY: keys.index_key(series, time[:13], 0),
        keys.PAYLOAD: f'{{"delay":{number * 7919 % 240 - 20},"distance":1020,"text":""}}',
    }
    missing = ITEM_BYTES - sum(len(name) + len(value) for name, value in item.items())
    item[keys.PAYLOAD] = item[keys.PAYLOAD].replace('""', f'"{"x" * missing}"')
    return {name: {"S": value} for name, value in item.items()}


def load(url: str, series: str, count: int, shards: int, table: str = EVENTS) -> None:
    """Put events 0 to `count` of a series into a table of an engine, for a layout of `shards` that covers all times.

    Takes a minute or two a million on two cores, and hardly any memory.
    """
    client = connect(url)
    call = call_through(client)
    with ThreadPoolExecutor(_SENDERS) as pool:
        for _ in pool.map(partial(_send, call, table), _batches(series, count, shards)):
            pass
    client.close()


def _batches(series: str, count: int, shards: int) -> Iterator[list[Item]]:
    for start in range(0, count, _BATCH):
        numbers = range(start, min(start + _BATCH, count))
        yield [stored_item(series, number, shards) for number in numbers]


def _send(call: Call, table: str, items: list[Item]) -> None:
    puts = [{"PutRequest": {"Item": item}} for item in items]
    answer = call("BatchWriteItem", {"RequestItems": {table: puts}})
    if answer.get("UnprocessedItems"):
        raise RuntimeError("the engine took only a part of a batch")
