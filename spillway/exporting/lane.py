"""One shard's events in order of time, a page at a time, and which shards may hold events since when."""

from bisect import bisect_right
from collections.abc import Callable
from operator import itemgetter
from typing import Any, Final, NamedTuple

from spillway import keys
from spillway.keys import TIME_WIDTH
from spillway.layouts.model import Layout
from spillway.reading.query import ReadQuery
from spillway.reading.stream import Record, to_record
from spillway.storage.port import Item

__all__ = ["Lane", "Send", "Span", "range_request", "spans_of"]

Send = Callable[[str, dict[str, Any]], dict[str, Any]]
"""Sends a Query of the partition that is named, counted and tried again; raises ExportError."""

_sort_key = itemgetter(0)
_CONDITION: Final = "#p = :p AND #s BETWEEN :low AND :high"


def range_request(  # noqa: PLR0913  a Query's own parameters
    table: str, partition_key: str, low: str, high: str, *, limit: int, consistent: bool
) -> dict[str, Any]:
    """Return the Query for up to `limit` items of a shard from the sort key `low` to `high`, both included.

    Costs 0.5 RCU (1 if consistent) for each started 4 KB of what it reads, 1 MB at most; at least one such unit.
    """
    return {
        "TableName": table,
        "KeyConditionExpression": _CONDITION,
        "ExpressionAttributeNames": {"#p": keys.PARTITION_KEY, "#s": keys.SORT_KEY},
        "ExpressionAttributeValues": {
            ":p": {"S": partition_key},
            ":low": {"S": low},
            ":high": {"S": high},
        },
        "ScanIndexForward": True,
        "Limit": limit,
        "ReturnConsumedCapacity": "TOTAL",
        **({"ConsistentRead": True} if consistent else {}),
    }


class Span(NamedTuple):
    """A shard, and the least and the greatest time of the events that it may hold."""

    shard: int
    low: str
    close: str


def spans_of(layout: Layout, start: str, end: str) -> list[Span]:
    """Return the shards that may hold events of [start, end): `0 … max(fan_out) - 1` of the epochs that meet it."""
    epochs = layout.meeting(start, end)
    spans = []
    for shard in range(max((epoch.fan_out for epoch in epochs), default=0)):
        holding = [epoch for epoch in epochs if epoch.fan_out > shard]
        low = min(epoch.low for epoch in holding)
        spans.append(Span(shard, max(start, low), max(epoch.close for epoch in holding)))
    return spans


class Lane:
    """One shard's part of an export. Used by one thread at a time.

    Attributes:
        partition_key: the shard's.
        buffer: records fetched and not yet taken, in order.
        reached: the sort key up to which everything has been fetched; at first a time before all events.
        opened: whether anything has been fetched.
        exhausted: nothing is left to fetch.
    """

    __slots__ = (
        "_position",
        "_request",
        "buffer",
        "exhausted",
        "opened",
        "partition_key",
        "reached",
    )

    def __init__(self, table: str, query: ReadQuery, span: Span, after: str) -> None:
        """Begin where the shard's events may begin, and after a sort key, where that comes later."""
        self.partition_key = keys.partition_key(query.series, span.shard)
        self.reached = max(span.low, after)
        low = max(span.low, f"{after}\0")  # \0: the next possible sort key
        self._request = range_request(
            table, self.partition_key, low, query.end, limit=1, consistent=query.consistent
        )
        self._position: Item | None = None
        self.buffer: list[Record] = []
        self.opened = False
        self.exhausted = bool(after) and after[:TIME_WIDTH] > span.close

    @property
    def is_dry(self) -> bool:
        """Whether nothing after `reached` can be given out before more is fetched."""
        return not self.exhausted and not self.buffer

    def fetch(self, send: Send, limit: int) -> None:
        """Fetch one page of up to `limit` items, 1 MB at most: one request."""
        request = {**self._request, "Limit": limit}
        if self._position is not None:
            request["ExclusiveStartKey"] = self._position
        response = send(self.partition_key, request)
        self.buffer += [to_record(item) for item in response["Items"]]
        self.opened = True
        self._position = response.get("LastEvaluatedKey")
        self.exhausted = self._position is None
        if self._position is not None:
            self.reached = self._position[keys.SORT_KEY]["S"]

    def take(self, upto: str | None) -> list[Record]:
        """Remove and return the records up to a sort key, all where it is None."""
        if upto is None or (self.buffer and self.buffer[-1].sort_key <= upto):
            taken, self.buffer = self.buffer, []
            return taken
        count = bisect_right(self.buffer, upto, key=_sort_key)
        taken, self.buffer = self.buffer[:count], self.buffer[count:]
        return taken
