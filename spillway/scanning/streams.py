"""The events of one partition, fetched page by page as the merge asks for them."""

from typing import Any, Final, NamedTuple

from spillway import keys
from spillway.dynamodb.port import Call, Item, StorageError
from spillway.dynamodb.retries import DeadlinePassedError
from spillway.scanning.partitions import ScanPartition
from spillway.scanning.query import ReadQuery

__all__ = ["PartitionStream", "RangeQuery", "StoredEvent", "decode_event"]


class StoredEvent(NamedTuple):
    """A stored event: its sort key first, so that records sort as events do."""

    sort_key: str
    partition_key: str
    payload: str
    expires: int | None

    @property
    def identity(self) -> keys.SortKey:
        """Stored time, sharding key and id."""
        return keys.parse_sort_key(self.sort_key)


def decode_event(item: Item) -> StoredEvent:
    """Read an item of the main table or of its index; KeyError where it is not an event."""
    expires = item.get(keys.EXPIRES)
    return StoredEvent(
        item[keys.SORT_KEY]["S"],
        item[keys.PARTITION_KEY]["S"],
        item[keys.PAYLOAD]["S"],
        None if expires is None else int(expires["N"]),
    )


_CONDITION: Final = "#p = :p AND #s BETWEEN :low AND :high"


class RangeQuery:
    """The Query that a read sends to each of its partitions, but for the partition, position and limit.

    Costs per request 0.5 RCU for each started 4 KB of items read (1 if consistent), at least one such unit.
    """

    def __init__(self, table: str, query: ReadQuery, after: str | None) -> None:
        self._table = table
        self._query = query
        self._after = after
        self._low, self._high = query.start, query.end
        # A position narrows the range and never widens it: it may be the bound of a bucket that
        # begins before the range does.
        if after is not None and query.descending:
            self._high = min(self._high, after)  # BETWEEN includes it; `wanted` leaves it out
        elif after is not None:
            self._low = max(self._low, after + "\0")  # the next possible sort key

    def request(
        self, partition: ScanPartition, limit: int, position: Item | None
    ) -> dict[str, Any]:
        """Return the request for up to `limit` more items of a partition."""
        name = keys.INDEX_PARTITION_KEY if partition.on_index else keys.PARTITION_KEY
        request: dict[str, Any] = {
            "TableName": self._table,
            "KeyConditionExpression": _CONDITION,
            "ExpressionAttributeNames": {"#p": name, "#s": keys.SORT_KEY},
            "ExpressionAttributeValues": {
                ":p": {"S": partition.key},
                ":low": {"S": self._low},
                ":high": {"S": self._high},
            },
            "ScanIndexForward": not self._query.descending,
            "Limit": limit,
            "ReturnConsumedCapacity": "TOTAL",
        }
        if partition.on_index:
            request["IndexName"] = keys.INDEX_NAME
        elif self._query.consistent:
            request["ConsistentRead"] = True
        if position is not None:
            request["ExclusiveStartKey"] = position
        return request

    def wanted(self, record: StoredEvent) -> bool:
        """Tell whether a fetched record lies within the read: after its cursor, and of its sharding key."""
        if record.sort_key == self._after:
            return False
        sharding_key = self._query.sharding_key
        return sharding_key is None or (
            keys.parse_sort_key(record.sort_key).sharding_key == sharding_key
        )


def _without_last_event(records: list[StoredEvent]) -> list[StoredEvent]:
    """Return the records before the last sort key: the index holds all copies of an event, in no order, over pages."""
    count = len(records)
    while count and records[count - 1].sort_key == records[-1].sort_key:
        count -= 1
    return records[:count]


class PartitionStream:
    """One partition's records in the order of the read. Used by one thread at a time.

    Attributes:
        partition: what is queried.
        buffer: records fetched and not yet taken, in order.
        reached: the sort key up to which everything has been fetched; at first where the partition's events may begin.
        exhausted: nothing is left to fetch.
        failure: why the last fetch brought nothing; None where it succeeded.
        kept, passed_over: items fetched that the read wants, and that it does not.
    """

    __slots__ = (
        "_call",
        "_held",
        "_position",
        "_template",
        "buffer",
        "exhausted",
        "failure",
        "kept",
        "partition",
        "passed_over",
        "reached",
    )

    def __init__(
        self, call: Call, template: RangeQuery, partition: ScanPartition, begin: str
    ) -> None:
        self._call = call
        self._template = template
        self._position: Item | None = None
        self._held: list[StoredEvent] = []
        self.partition = partition
        self.buffer: list[StoredEvent] = []
        self.reached = begin
        self.exhausted = False
        self.failure: StorageError | None = None
        self.kept = 0
        self.passed_over = 0

    @property
    def holds_up(self) -> bool:
        """Whether nothing after `reached` can be given out before more is fetched."""
        return not self.exhausted and not self.buffer

    def fetch(self, limit: int) -> None:
        """Fetch one page of up to `limit` items: one request; on the index more while all are copies of one event.

        A StorageError becomes `failure`, and the stream stays where it was.
        """
        try:
            fetched, position = self._page(limit)
        except StorageError as error:
            if self.failure is None or not isinstance(error, DeadlinePassedError):
                self.failure = error
            return
        self.failure = None
        self._position, self._held, self.exhausted = position, [], position is None
        if position is not None:
            self.reached = position[keys.SORT_KEY]["S"]
            if self.partition.on_index:
                complete = _without_last_event(fetched)
                self.reached = complete[-1].sort_key
                fetched, self._held = complete, fetched[len(complete) :]
        wanted = [record for record in fetched if self._template.wanted(record)]
        self.kept += len(wanted)
        self.passed_over += len(fetched) - len(wanted)
        self.buffer += wanted

    def _page(self, limit: int) -> tuple[list[StoredEvent], Item | None]:
        """Return what was held back and one more page, on the index with one whole event at least, and the position."""
        fetched, position = list(self._held), self._position
        while True:
            response = self._call("Query", self._template.request(self.partition, limit, position))
            fetched += [decode_event(item) for item in response["Items"]]
            position = response.get("LastEvaluatedKey")
            if position is None or not self.partition.on_index or _without_last_event(fetched):
                return fetched, position

    def take(self, count: int) -> list[StoredEvent]:
        """Remove and return the first `count` buffered records."""
        taken, self.buffer = self.buffer[:count], self.buffer[count:]
        return taken
