"""An in-memory DynamoDB that is fast enough for millions of steps, for simulations.

Single-item operations are atomic, a BatchWriteItem is not: its puts are separate steps. Items are
shared, never copied: the code under test builds new ones and changes none. It keeps no limits;
`tests.support.memory_table` does.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from sortedcontainers import SortedDict

from spillway import keys
from spillway.dynamodb.port import ConditionFailedError, Item
from tests.support.expressions import apply_update, is_met
from tests.support.memory_table import EVENTS, LAYOUTS

__all__ = ["AtomicTables"]


class AtomicTables:
    """The main table, its index and the layout table; calls never fail but for conditions."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.layouts: dict[str, Item] = {}
        self.usage: dict[tuple[str, str], Item] = {}
        self._partitions: dict[str, SortedDict[str, Item]] = {}
        self._index: dict[str, SortedDict[tuple[str, str], Item]] = {}

    def __call__(self, operation: str, request: Mapping[str, Any], /) -> dict[str, Any]:
        """Carry out any operation at once, a BatchWriteItem too."""
        self.counts[operation] += 1
        if operation == "BatchWriteItem":
            for put in request["RequestItems"][EVENTS]:
                self.put_event(put["PutRequest"]["Item"])
            return {}
        if operation == "PutItem":
            self.put_event(request["Item"])
            return {}
        if operation == "UpdateItem" and request["TableName"] != LAYOUTS:
            return self.add_numbers(request)
        if operation == "UpdateItem":
            return self.update_layout(request)
        if operation == "Query" and request["TableName"] != EVENTS:
            return self.query_usage(request)
        return self.get(request) if operation == "GetItem" else self.query(request)

    def get(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """GetItem."""
        key = request["Key"]
        item: Item | None
        if request["TableName"] == LAYOUTS:
            item = self.layouts.get(key[keys.LAYOUT_KEY]["S"])
        elif request["TableName"] != EVENTS:
            item = self.usage.get(_usage_key(request))
        else:
            partition = self._partitions.get(key[keys.PARTITION_KEY]["S"], {})
            item = partition.get(key[keys.SORT_KEY]["S"])
        return {} if item is None else {"Item": item}

    def put_layout(self, item: Item) -> None:
        """PutItem of a layout, without a condition."""
        self.layouts[item[keys.LAYOUT_KEY]["S"]] = item

    def update_layout(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """UpdateItem of a layout, on its condition."""
        series = request["Key"][keys.LAYOUT_KEY]["S"]
        names, values = request["ExpressionAttributeNames"], request["ExpressionAttributeValues"]
        old = self.layouts.get(series)
        condition = request.get("ConditionExpression")
        if condition is not None and not is_met(condition, old, names, values):
            raise ConditionFailedError("ConditionalCheckFailedException", "")
        item = dict(old or request["Key"])
        apply_update(request["UpdateExpression"], item, names, values)
        self.layouts[series] = item
        return {}

    def add_numbers(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """UpdateItem of a usage record: sets and adds, and answers with the whole item."""
        names, values = request["ExpressionAttributeNames"], request["ExpressionAttributeValues"]
        item = self.usage.setdefault(_usage_key(request), dict(request["Key"]))
        apply_update(request["UpdateExpression"], item, names, values)
        return {"Attributes": dict(item)}

    def put_event(self, item: Item) -> None:
        """One put of a BatchWriteItem, with its index entry."""
        primary, sort = item[keys.PARTITION_KEY]["S"], item[keys.SORT_KEY]["S"]
        partition = _opened(self._partitions, primary)
        old = partition.get(sort)
        if old is not None:
            del self._index[old[keys.INDEX_PARTITION_KEY]["S"]][sort, primary]
        partition[sort] = item
        indexed = _opened(self._index, item[keys.INDEX_PARTITION_KEY]["S"])
        indexed[sort, primary] = item

    def partition(self, key: str) -> list[str]:
        """Return the sort keys that lie under a partition key of the main table."""
        return list(self._partitions.get(key, ()))

    def query_usage(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Query of a usage record's windows, five a page."""
        values = request["ExpressionAttributeValues"]
        low, high = int(values[":low"]["N"]), int(values[":high"]["N"])
        after = request.get("ExclusiveStartKey")
        if after is not None:
            low = max(low, int(after[keys.USAGE_SORT_KEY]["N"]) + 1)
        starts = sorted(int(start) for series, start in self.usage if series == values[":p"]["S"])
        found = [
            self.usage[values[":p"]["S"], str(start)] for start in starts if low <= start <= high
        ]
        last = {} if len(found) <= 5 else {"LastEvaluatedKey": found[4]}
        return {"Items": found[:5], **last}

    def query(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Query of one partition, of the table or its index."""
        values = request["ExpressionAttributeValues"]
        low, high = values[":low"]["S"], values[":high"]["S"]
        partition, limit = values[":p"]["S"], request["Limit"]
        reverse = not request["ScanIndexForward"]
        after = request.get("ExclusiveStartKey")
        items: Iterator[Item]
        if "IndexName" in request:
            found = self._index.get(partition, SortedDict())
            start, end = (low, ""), (high, "\U0010ffff")
            position = after and (after["SK"]["S"], after["PK"]["S"])
            items = (found[key] for key in _keys(found, start, end, position, reverse=reverse))
        else:
            events = self._partitions.get(partition, SortedDict())
            position = after and after["SK"]["S"]
            items = (events[key] for key in _keys(events, low, high, position, reverse=reverse))
        page = [item for item, _ in zip(items, range(limit), strict=False)]
        response: dict[str, Any] = {"Items": page}
        if len(page) == limit:
            last = page[-1]
            response["LastEvaluatedKey"] = {"PK": last["PK"], "SK": last["SK"]}
        return response


def _usage_key(request: Mapping[str, Any]) -> tuple[str, str]:
    key = request["Key"]
    return key[keys.USAGE_KEY]["S"], key[keys.USAGE_SORT_KEY]["N"]


def _opened(partitions: dict[str, SortedDict[Any, Item]], key: str) -> SortedDict[Any, Item]:
    found = partitions.get(key)
    if found is None:
        found = partitions[key] = SortedDict()
    return found


def _keys(
    found: SortedDict[Any, Item], low: Any, high: Any, position: Any, *, reverse: bool
) -> Iterator[Any]:
    inclusive = (True, True)
    if position is not None and reverse:
        high, inclusive = position, (True, False)
    elif position is not None:
        low, inclusive = position, (False, True)
    iterator: Iterator[Any] = found.irange(low, high, inclusive, reverse=reverse)
    return iterator
