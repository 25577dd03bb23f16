"""One BatchWriteItem of prepared events, and what became of each of them."""

from collections.abc import Sequence
from typing import Final

from spillway import keys
from spillway.dynamodb.port import (
    Call,
    Item,
    OutcomeUnknownError,
    RefusedError,
    StorageError,
    ThrottledError,
)
from spillway.layouts.model import Epoch
from spillway.sharding import shard_of
from spillway.writing.preparation import PreparedEvent

__all__ = ["BATCH_SIZE", "AddressedEvent", "address_event", "send_batch"]

BATCH_SIZE: Final = 25  # DynamoDB's limit; 25 items of 400 KB stay below its 16 MB a request

AddressedEvent = tuple[PreparedEvent, Item]
"""An event and the item that holds it, partition keys included."""


def address_event(event: PreparedEvent, epoch: Epoch) -> AddressedEvent:
    """Return the event with its item under the shards of an epoch."""
    shard = event.shard if event.shard is not None else shard_of(event.routing, epoch.shards)
    label = keys.bucket_label(event.time, epoch.bucket)
    index_shard = shard_of(event.routing, epoch.index_shards)
    item: Item = {
        keys.PARTITION_KEY: {"S": keys.partition_key(event.series, shard)},
        keys.SORT_KEY: {"S": event.sort_key},
        keys.INDEX_PARTITION_KEY: {"S": keys.index_key(event.series, label, index_shard)},
        keys.PAYLOAD: {"S": event.payload},
    }
    if event.expires is not None:
        item[keys.EXPIRES] = {"N": str(event.expires)}
    return event, item


def send_batch(call: Call, table: str, batch: Sequence[AddressedEvent]) -> list[PreparedEvent]:
    """Write up to 25 distinct events by one request, and return those that are not known to be stored.

    Each of these has `failure` set. A batch that DynamoDB finds invalid is written again event by event, so that
    one bad event does not sink the others. Costs 1 WCU for each started KB of an item, and the same for its index entry.
    """
    request = {"RequestItems": {table: [{"PutRequest": {"Item": item}} for _, item in batch]}}
    try:
        response = call("BatchWriteItem", request)
    except RefusedError as error:
        if error.is_invalid and len(batch) > 1:
            return [left for one in batch for left in send_batch(call, table, [one])]
        return _failed(batch, error)
    except StorageError as error:
        return _failed(batch, error)
    unprocessed = response.get("UnprocessedItems")
    if not unprocessed:
        return []
    return _failed(_matching(batch, unprocessed[table]), _UNPROCESSED)


# UnprocessedItems carry no reason.
_UNPROCESSED: Final = ThrottledError("UnprocessedItems", "DynamoDB did not process the item")


def _matching(batch: Sequence[AddressedEvent], unprocessed: list[Item]) -> list[AddressedEvent]:
    by_key = {_key(item): (event, item) for event, item in batch}
    return [by_key[_key(each["PutRequest"]["Item"])] for each in unprocessed]


def _key(item: Item) -> tuple[str, str]:
    return item[keys.PARTITION_KEY]["S"], item[keys.SORT_KEY]["S"]


def _failed(batch: Sequence[AddressedEvent], error: StorageError) -> list[PreparedEvent]:
    unknown = isinstance(error, OutcomeUnknownError)
    for event, item in batch:
        event.sent = item
        if unknown:
            event.leave_unsettled(item, error)
        else:
            event.fail(error)
    return [event for event, _ in batch]
