"""One request's worth of addressed events, and what came of each of them."""

from collections.abc import Sequence
from typing import Final

from spillway import keys
from spillway.dynamodb.port import Call, Item, RefusedError, StorageError, ThrottledError
from spillway.layouts.model import Epoch
from spillway.sharding import shard_of
from spillway.writing.attempts import STORED, AddressedEvent, Outcome
from spillway.writing.preparation import PreparedEvent

__all__ = ["BATCH_SIZE", "build_item", "send_batch"]

BATCH_SIZE: Final = 25  # DynamoDB's limit; 25 items of 400 KB stay below its 16 MB a request


def build_item(event: PreparedEvent, epoch: Epoch, shard: int) -> Item:
    """Return the item of an event in one shard of an epoch."""
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
    return item


def send_batch(call: Call, table: str, batch: Sequence[AddressedEvent]) -> list[Outcome]:
    """Write up to 25 distinct events by one BatchWriteItem; return their outcomes in order.

    A batch that DynamoDB finds invalid is written again event by event, so that one bad event does
    not fail the others. Costs 1 WCU for each started KB of an item, and the same for its index
    entry.
    """
    puts = [{"PutRequest": {"Item": each.item}} for each in batch]
    try:
        response = call("BatchWriteItem", {"RequestItems": {table: puts}})
    except RefusedError as error:
        if error.is_invalid and len(batch) > 1:
            return [outcome for each in batch for outcome in send_batch(call, table, [each])]
        return [error] * len(batch)
    except StorageError as error:
        return [error] * len(batch)
    unprocessed = response.get("UnprocessedItems")
    if not unprocessed:
        return [STORED] * len(batch)
    left_out = {_key(each["PutRequest"]["Item"]) for each in unprocessed[table]}
    return [_UNPROCESSED if _key(each.item) in left_out else STORED for each in batch]


# UnprocessedItems carry no reason.
_UNPROCESSED: Final = ThrottledError("UnprocessedItems", "DynamoDB did not process the item")


def _key(item: Item) -> tuple[str, str]:
    return item[keys.PARTITION_KEY]["S"], item[keys.SORT_KEY]["S"]
