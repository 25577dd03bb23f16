"""Series with more than one shard: keys from the sparse index, layouts from the table."""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any, Final

from spillway.backoff import retry_until
from spillway.keys import LAYOUT_INDEX_KEY, LAYOUT_INDEX_NAME, LAYOUT_KEY
from spillway.layouts.item import SHARDED
from spillway.layouts.model import Layout
from spillway.layouts.store import decode_stored
from spillway.runtime import Runtime
from spillway.storage.port import Call, Item, StorageError, ThrottledError

__all__ = ["ShardedSeries"]

_MAX_KEYS: Final = 100  # of one BatchGetItem
_TIMEOUT_SECONDS: Final = 10.0  # of a page's layouts, retries included


class ShardedSeries:
    """Lists the layouts of series with more than one shard, in order of their names."""

    def __init__(self, call: Call, table: str, runtime: Runtime) -> None:
        self._call = call
        self._table = table
        self._runtime = runtime

    def page(self, after: str | None, limit: int) -> tuple[Sequence[Layout], str | None]:
        """Return up to `limit` layouts after a series, and where to go on; None at the end.

        Both reads are eventually consistent: read a layout anew before changing it. Layouts that
        are damaged or gone are left out. Costs one Query of half a read unit for each 4 KB of keys,
        and for each 100 series one BatchGetItem of half a read unit for each layout's 4 KB: about
        26 units for 50 layouts of up to 4 KB. Raises StorageError, ThrottledError where the table
        has throttled for 10 seconds.
        """
        answer = self._call("Query", _request(self._table, after, limit))
        last = answer.get("LastEvaluatedKey")
        names = [item[LAYOUT_KEY]["S"] for item in answer["Items"]]
        layouts = {layout.series: layout for layout in self._read(names)}
        page = [layouts[name] for name in names if name in layouts]
        return page, None if last is None else last[LAYOUT_KEY]["S"]

    def _read(self, names: Sequence[str]) -> Iterator[Layout]:
        """Yield the layouts of series, in no order."""
        deadline = self._runtime.monotonic() + _TIMEOUT_SECONDS
        for start in range(0, len(names), _MAX_KEYS):
            for item in self._get(names[start : start + _MAX_KEYS], deadline):
                with suppress(StorageError):
                    yield decode_stored(item)

    def _get(self, names: Sequence[str], deadline: float) -> list[Item]:
        """Return the items of up to 100 series; asks again for those that were not processed."""
        found: list[Item] = []
        pending: dict[str, Any] = {
            self._table: {"Keys": [{LAYOUT_KEY: {"S": name}} for name in names]}
        }

        def get() -> None:
            nonlocal pending
            answer = self._call("BatchGetItem", {"RequestItems": pending})
            found.extend(answer["Responses"].get(self._table, ()))
            pending = answer.get("UnprocessedKeys") or {}
            if pending:
                raise ThrottledError("UnprocessedKeys", "some layouts were not read")

        retry_until(deadline, get, self._runtime)
        return found


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
