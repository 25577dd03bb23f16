"""An in-memory DynamoDB behind the port: the requests and expressions that Spillway sends.

It refuses what it does not know, so a new request shape fails loudly instead of passing by
accident, and it keeps DynamoDB's limits: sizes of items, keys, batches and pages. It copies items
and records requests. `tests.support.atomic_table` does neither and is fast.
"""

import copy
import math
import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

from spillway import keys
from spillway.dynamodb.port import ConditionFailedError, Item, RefusedError
from tests.support.expressions import apply_update, is_met

__all__ = ["EVENTS", "LAYOUTS", "USAGE", "MemoryTable", "item_bytes", "memory_table", "targets_of"]

Response = dict[str, Any]

EVENTS: Final = "events"
LAYOUTS: Final = "layouts"
USAGE: Final = "usage"

_INDEXES: Final = {keys.INDEX_NAME: (keys.INDEX_PARTITION_KEY, keys.SORT_KEY)}
_CONDITION: Final = "#p = :p AND #s BETWEEN :low AND :high"
_ITEM_LIMIT: Final = 400 * 1024
_PAGE_LIMIT: Final = 1024 * 1024
_BATCH_LIMIT: Final = 16 * 1024 * 1024
_UNIT_BYTES: Final = 4 * 1024
_KEY_LIMITS: Final = (2_048, 1_024)


def memory_table() -> "MemoryTable":
    """Return the tables that a store needs."""
    return MemoryTable(
        **{
            EVENTS: (keys.PARTITION_KEY, keys.SORT_KEY),
            LAYOUTS: (keys.LAYOUT_KEY,),
            USAGE: (keys.USAGE_KEY, keys.USAGE_SORT_KEY),
        }
    )


class MemoryTable:
    """Tables by name; each item by its key. `counts` tells how often each operation was called."""

    def __init__(self, **tables: tuple[str, ...]) -> None:
        self._keys = tables
        self.items: dict[str, dict[tuple[str, ...], Item]] = {name: {} for name in tables}
        self.counts: dict[str, int] = {}
        self.requests: list[tuple[str, Mapping[str, Any]]] = []

    def __call__(self, operation: str, request: Mapping[str, Any], /) -> Response:
        self.counts[operation] = self.counts.get(operation, 0) + 1
        self.requests.append((operation, request))
        method = getattr(self, f"_{_snake(operation)}", None)
        if method is None:
            raise RefusedError("UnknownOperationException", operation)
        response: Response = method(copy.deepcopy(dict(request)))
        return response

    def requests_of(self, operation: str) -> list[Mapping[str, Any]]:
        """Return what was asked of one operation, in order."""
        return [request for name, request in self.requests if name == operation]

    def calls(self) -> set[tuple[str, str]]:
        """Return each (operation, table or table/index) that was called."""
        return {
            (operation, target)
            for operation, request in self.requests
            for target in targets_of(request)
        }

    def forget_calls(self) -> None:
        """Start counting anew; the items stay."""
        self.counts.clear()
        self.requests.clear()

    def key_of(self, table: str, item: Item) -> tuple[str, ...]:
        return tuple(next(iter(item[name].values())) for name in self._keys[table])

    def _table(self, name: str) -> dict[tuple[str, ...], Item]:
        if name not in self.items:
            raise RefusedError("ResourceNotFoundException", f"no table {name}")
        return self.items[name]

    def _get_item(self, request: Response) -> Response:
        table = request["TableName"]
        item = self._table(table).get(self.key_of(table, request["Key"]))
        return {} if item is None else {"Item": copy.deepcopy(item)}

    def _batch_get_item(self, request: Response) -> Response:
        responses: dict[str, list[Item]] = {}
        for table, wanted in request["RequestItems"].items():
            names = [self.key_of(table, key) for key in wanted["Keys"]]
            _check_keys(names)
            stored = self._table(table)
            found = [stored[name] for name in names if name in stored]
            responses[table] = copy.deepcopy(found[::-1])  # DynamoDB promises no order
        return {"Responses": responses, "UnprocessedKeys": {}}

    def _put_item(self, request: Response) -> Response:
        table, item = request["TableName"], request["Item"]
        old = self._table(table).get(self.key_of(table, item))
        self._check_condition(request, old)
        self._store(table, item)
        return {}

    def _check_condition(self, request: Response, old: Item | None) -> None:
        condition = request.get("ConditionExpression")
        names = request.get("ExpressionAttributeNames", {})
        values = request.get("ExpressionAttributeValues", {})
        if condition is None or is_met(condition, old, names, values):
            return
        wanted = request.get("ReturnValuesOnConditionCheckFailure") == "ALL_OLD"
        code, message = "ConditionalCheckFailedException", "The conditional request failed"
        raise ConditionFailedError(code, message, copy.deepcopy(old) if wanted else None)

    def _delete_item(self, request: Response) -> Response:
        table = request["TableName"]
        old = self._table(table).pop(self.key_of(table, request["Key"]), None)
        return {"Attributes": old} if old and request.get("ReturnValues") == "ALL_OLD" else {}

    def _check(self, table: str, item: Item) -> None:
        _check_item(item)
        index_key = [item[keys.INDEX_PARTITION_KEY]["S"]] if table == EVENTS else []
        for values in (self.key_of(table, item), index_key):
            for value, most in zip(values, _KEY_LIMITS, strict=False):
                if not 1 <= len(value.encode()) <= most:
                    raise _invalid("One or more parameter values were invalid: size of a key")

    def _store(self, table: str, item: Item) -> None:
        self._check(table, item)
        self._table(table)[self.key_of(table, item)] = item

    def _batch_write_item(self, request: Response) -> Response:
        batches: Mapping[str, list[Item]] = {
            table: [each["PutRequest"]["Item"] for each in writes]
            for table, writes in request["RequestItems"].items()
        }
        for table, items in batches.items():
            _check_batch([self.key_of(table, item) for item in items], items)
            for item in items:  # an invalid item sinks its whole batch
                self._check(table, item)
        for table, items in batches.items():
            for item in items:
                self._store(table, item)
        return {"UnprocessedItems": {}}

    def _update_item(self, request: Response) -> Response:
        table, key = request["TableName"], request["Key"]
        names = request.get("ExpressionAttributeNames", {})
        values = request.get("ExpressionAttributeValues", {})
        stored = self._table(table)
        old = stored.get(self.key_of(table, key))
        self._check_condition(request, old)
        item = copy.deepcopy(old) if old is not None else dict(key)
        apply_update(request["UpdateExpression"], item, names, values)
        stored[self.key_of(table, key)] = item
        return {"Attributes": item} if request.get("ReturnValues") == "ALL_NEW" else {}

    def _query(self, request: Response) -> Response:
        if request.get("IndexName") == keys.LAYOUT_INDEX_NAME:
            return self._list_sharded(request)
        names, values = request["ExpressionAttributeNames"], request["ExpressionAttributeValues"]
        assert request["KeyConditionExpression"] == _CONDITION
        assert request["Limit"] >= 1
        on_index = "IndexName" in request
        if on_index and request.get("ConsistentRead"):
            raise _invalid("Consistent reads are not supported on global secondary indexes")
        partition_name, sort_name = names["#p"], names["#s"]
        expected = (
            _INDEXES[request["IndexName"]] if on_index else (keys.PARTITION_KEY, keys.SORT_KEY)
        )
        assert (partition_name, sort_name) == expected
        low, high = values[":low"]["S"].encode(), values[":high"]["S"].encode()
        if max(len(low), len(high)) > _KEY_LIMITS[1]:
            raise _invalid("One or more parameter values were invalid: size of a key")
        if low > high:
            raise _invalid("The BETWEEN operator requires upper bound to be greater than lower")
        found = [
            item
            for item in self._table(request["TableName"]).values()
            if item.get(partition_name) == values[":p"]
            and low <= item[sort_name]["S"].encode() <= high
        ]
        return _page(found, sort_name, partition_name, request)

    def _list_sharded(self, request: Response) -> Response:
        """Query the sparse index of layouts, which holds keys only."""
        names, values = request["ExpressionAttributeNames"], request["ExpressionAttributeValues"]
        assert request["KeyConditionExpression"] == "#sharded = :yes"
        assert names == {"#sharded": keys.LAYOUT_INDEX_KEY}
        projected = (keys.LAYOUT_KEY, keys.LAYOUT_INDEX_KEY)
        found = [
            {name: item[name] for name in projected}
            for item in self._table(request["TableName"]).values()
            if item.get(keys.LAYOUT_INDEX_KEY) == values[":yes"]
        ]
        return _page(found, *projected, request)


def targets_of(request: Mapping[str, Any]) -> Iterable[str]:
    """Return each table, or table/index, that a request names."""
    if "RequestItems" in request:
        return list(request["RequestItems"])
    index = request.get("IndexName")
    return [request["TableName"] + (f"/index/{index}" if index else "")]


def _page(found: list[Item], sort_name: str, partition_name: str, request: Response) -> Response:
    """Return a page as DynamoDB cuts it: at the limit or 1 MB.

    A page cut at the limit has a position even if nothing follows it.
    """

    def position(item: Item) -> tuple[bytes, str]:
        return item[sort_name]["S"].encode(), item.get(keys.PARTITION_KEY, {"S": ""})["S"]

    forward = request.get("ScanIndexForward", True)
    found.sort(key=position, reverse=not forward)
    start = request.get("ExclusiveStartKey")
    if start is not None:
        at = position(start)
        found = [
            item for item in found if (position(item) > at if forward else position(item) < at)
        ]
    page: list[Item] = []
    size = 0
    for item in found:
        if len(page) == request["Limit"] or size >= _PAGE_LIMIT:
            break
        page.append(item)
        size += item_bytes(item)
    response: Response = {"Items": copy.deepcopy(page), "Count": len(page)}
    if request.get("ReturnConsumedCapacity") == "TOTAL":
        unit = 1.0 if request.get("ConsistentRead") else 0.5
        units = unit * max(1, math.ceil(size / _UNIT_BYTES))
        response["ConsumedCapacity"] = {"CapacityUnits": units}
    if page and (len(page) == request["Limit"] or len(page) < len(found)):
        last = page[-1]
        response["LastEvaluatedKey"] = {
            name: last[name]
            for name in {keys.PARTITION_KEY, sort_name, partition_name}
            if name in last
        }
    return response


def item_bytes(item: Item) -> int:
    """Return an item's size as DynamoDB counts it, for the attribute types that Spillway stores."""
    return sum(len(name.encode()) + _value_bytes(value) for name, value in item.items())


def _value_bytes(value: Mapping[str, Any]) -> int:
    ((kind, content),) = value.items()
    if kind == "S":
        return len(content.encode())
    if kind == "N":
        return (len(content.strip("-").replace(".", "")) + 1) // 2 + 1
    if kind == "SS":
        return sum(len(each.encode()) for each in content)
    members = content if kind == "L" else content.values()
    names = 0 if kind == "L" else sum(len(name.encode()) for name in content)
    return 3 + names + sum(1 + _value_bytes(each) for each in members)


def _check_item(item: Item) -> None:
    if item_bytes(item) > _ITEM_LIMIT:
        raise _invalid("Item size has exceeded the maximum allowed size")


def _check_batch(written: list[tuple[str, ...]], items: list[Item]) -> None:
    if not 1 <= len(items) <= 25:
        raise _invalid("Member must have length less than or equal to 25")
    if len(set(written)) < len(written):
        raise _invalid("Provided list of item keys contains duplicates")
    if sum(item_bytes(item) for item in items) > _BATCH_LIMIT:
        raise _invalid("Request size exceeds 16 MB")


def _check_keys(names: list[tuple[str, ...]]) -> None:
    if not 1 <= len(names) <= 100:
        raise _invalid("Too many items requested for the BatchGetItem call")
    if len(set(names)) < len(names):
        raise _invalid("Provided list of item keys contains duplicates")


def _invalid(message: str) -> RefusedError:
    return RefusedError("ValidationException", message)


def _snake(operation: str) -> str:
    return re.sub(r"(?<!^)(?=[A-Z])", "_", operation).lower()
