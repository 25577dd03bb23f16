"""Conditional writes, which refuse an event whose identity is stored with another payload."""

from collections.abc import Callable, Sequence
from enum import StrEnum
from typing import Any

from spillway import keys
from spillway.dynamodb.port import (
    Call,
    ConditionFailedError,
    Item,
    OutcomeUnknownError,
    RefusedError,
    StorageError,
    ThrottledError,
    UnreachableError,
)
from spillway.writing.attempts import STORED, AddressedEvent, Outcome
from spillway.writing.preparation import canonical

__all__ = ["ConflictError", "OnConflict", "put_if_absent"]


class OnConflict(StrEnum):
    """What a write does with an event whose identity is stored with another payload."""

    REPLACE = "replace"
    REJECT = "reject"


class ConflictError(RefusedError):
    """Another payload is stored under the identity of an event; nothing was written."""

    def __init__(self) -> None:
        super().__init__("Conflict", "the identity is stored with another payload")


class _LookupFailedError(UnreachableError):
    """Copies could not be looked up, so nothing was written. Not a throttled write: no growth."""


def put_if_absent(
    call: Call, table: str, batch: Sequence[AddressedEvent], now: Callable[[], float]
) -> list[Outcome]:
    """Write events one by one where their identity is free; return their outcomes in order.

    An event that is stored with an equal payload counts as stored. With another payload it gets a
    ConflictError. An item that has expired counts as absent. `now` is in epoch seconds.

    Costs a consistent GetItem for each of an event's `candidate_keys` up to the first with a copy.
    Where there is none, one PutItem: 1 WCU for each started KB, also if it is refused.
    """
    return [_put(call, table, each, int(now())) for each in batch]


def _put(call: Call, table: str, addressed: AddressedEvent, now: int) -> Outcome:
    try:
        for key in addressed.candidate_keys:  # the first that holds a copy has what reads return
            stored = _look_up(call, table, key, addressed.item, now)
            if stored is not None:
                return _compare(addressed.item, stored)
        return _put_item(call, table, addressed.item, now)
    except StorageError as error:
        return error


def _put_item(call: Call, table: str, item: Item, now: int) -> Outcome:
    request = {
        "TableName": table,
        "Item": item,
        "ConditionExpression": "attribute_not_exists(#key) OR #expires <= :now",
        "ExpressionAttributeNames": {"#key": keys.PARTITION_KEY, "#expires": keys.EXPIRES},
        "ExpressionAttributeValues": {":now": {"N": str(now)}},
        "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
    }
    try:
        call("PutItem", request)
    except ConditionFailedError as error:
        if error.item is None:
            return OutcomeUnknownError(error.code, "the stored item was not returned")
        return _compare(item, error.item)
    return STORED


def _compare(item: Item, stored: Item) -> Outcome:
    """Return the outcome for an item whose identity is stored."""
    texts = item[keys.PAYLOAD]["S"], stored[keys.PAYLOAD]["S"]
    is_equal = texts[0] == texts[1] or canonical(texts[0]) == canonical(texts[1])
    return STORED if is_equal else ConflictError()


def _look_up(call: Call, table: str, partition_key: str, item: Item, now: int) -> Item | None:
    """Return the unexpired copy of an item under a partition key, None where there is none."""
    key = {keys.PARTITION_KEY: {"S": partition_key}, keys.SORT_KEY: item[keys.SORT_KEY]}
    request: dict[str, Any] = {"TableName": table, "Key": key, "ConsistentRead": True}
    try:
        stored: Item | None = call("GetItem", request).get("Item")
    except (ThrottledError, OutcomeUnknownError) as error:
        raise _LookupFailedError(error.code, error.message) from error
    if stored is None or int(stored.get(keys.EXPIRES, {"N": now + 1})["N"]) <= now:
        return None
    return stored
