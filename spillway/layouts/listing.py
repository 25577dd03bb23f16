"""The sparse index over series with more than one shard."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from typing import Any

from spillway.keys import LAYOUT_INDEX_KEY, LAYOUT_INDEX_NAME, LAYOUT_KEY
from spillway.layouts.item import SHARDED
from spillway.layouts.model import Layout
from spillway.layouts.store import decode_stored
from spillway.storage.port import Call, Item, StorageError

__all__ = ["ShardedSeries"]


class ShardedSeries:
    """Lists the layouts of series with more than one shard, in order of their names."""

    def __init__(self, call: Call, table: str) -> None:
        self._call = call
        self._table = table

    def page(self, after: str | None, limit: int) -> tuple[Sequence[Layout], str | None]:
        """Return up to `limit` layouts of series after one, and the series to go on after, None at the end.

        Copies, eventually consistent: read a layout anew before changing it. Costs one Query and half a read unit for each
        4 KB: about 15 for 50 layouts. Damaged ones are left out: whoever reads these complains. Raises StorageError.
        """
        answer = self._call("Query", _request(self._table, after, limit))
        last = answer.get("LastEvaluatedKey")
        return list(_decoded(answer["Items"])), None if last is None else last[LAYOUT_KEY]["S"]


def _decoded(items: Iterable[Item]) -> Iterator[Layout]:
    for item in items:
        with suppress(StorageError):
            yield decode_stored(item)


def _request(table: str, after: str | None, limit: int) -> dict[str, Any]:
    request: dict[str, Any] = {
        "TableName": table,
        "IndexName": LAYOUT_INDEX_NAME,
        "KeyConditionExpression": "#sharded = :yes",
        "ExpressionAttributeNames": {"#sharded": LAYOUT_INDEX_KEY},
        "ExpressionAttributeValues": {":yes": {"S": SHARDED}},
        "Limit": limit,
    }
    if after is not None:
        start = {LAYOUT_INDEX_KEY: {"S": SHARDED}, LAYOUT_KEY: {"S": after}}
        request["ExclusiveStartKey"] = start
    return request
