"""The events of one partition, fetched page by page as the merge needs them."""

from collections.abc import Callable
from operator import itemgetter
from typing import Any, Final, NamedTuple

from spillway import keys
from spillway.dynamodb.port import Call, Item, StorageError
from spillway.dynamodb.retries import DeadlinePassedError
from spillway.scanning.partitions import ScanPartition
from spillway.scanning.query import ReadQuery

__all__ = ["PartitionStream", "StoredEvent", "decode_event", "range_request", "sort_key_of"]


class StoredEvent(NamedTuple):
    """A stored event. The sort key comes first, so that records sort as events do."""

    sort_key: str
    partition_key: str
    payload: str
    expires: int | None

    @property
    def identity(self) -> keys.SortKey:
        """Stored time, sharding key and id."""
        return keys.parse_sort_key(self.sort_key)


sort_key_of: Final[Callable[[StoredEvent], str]] = itemgetter(0)


def decode_event(item: Item) -> StoredEvent:
    """Return the record of an item of the table or its index; KeyError if it is not an event."""
    expires = item.get(keys.EXPIRES)
    return StoredEvent(
        item[keys.SORT_KEY]["S"],
        item[keys.PARTITION_KEY]["S"],
        item[keys.PAYLOAD]["S"],
        None if expires is None else int(expires["N"]),
    )


class PartitionStream:
    """One partition's records in the order of the read. Used by one thread at a time.

    Attributes:
        partition: the partition that is queried.
        buffer: records fetched and not yet taken, in order.
        reached: the sort key up to which everything has been fetched. Before the first fetch, the
            bound of the partition or the position that the read starts after.
        is_exhausted: whether nothing is left to fetch.
        failure: the error of the last fetch; None if it succeeded.
        match_count: fetched items that belong to the read.
        filtered_out_count: fetched items that do not: those of other sharding keys.
    """

    __slots__ = (
        "_call",
        "_excluded",
        "_held_back",
        "_position",
        "_request",
        "_sharding_key",
        "buffer",
        "failure",
        "filtered_out_count",
        "is_exhausted",
        "match_count",
        "partition",
        "reached",
    )

    def __init__(
        self,
        call: Call,
        table: str,
        query: ReadQuery,
        partition: ScanPartition,
        after: str | None = None,
    ) -> None:
        """Prepare a stream from a partition's bound, or from the position `after` if it is further.

        A position narrows the range and never widens it: it may be the bound of a time bucket that
        begins before the range does.
        """
        low, high = partition.bound, query.end
        self.reached = low if after is None else max(low, after)
        if query.descending:
            low, high = query.start, partition.bound
            self.reached = high = high if after is None else min(high, after)
        elif after is not None:
            low = max(low, after + "\0")  # the next possible sort key
        self._call = call
        self._request = range_request(
            table,
            partition,
            low,
            high,
            descending=query.descending,
            consistent=query.consistent,
        )
        # BETWEEN includes the position of a descending read.
        self._excluded = after if query.descending else None
        self._sharding_key = query.sharding_key
        self._position: Item | None = None
        self._held_back: list[StoredEvent] = []
        self.partition = partition
        self.buffer: list[StoredEvent] = []
        self.is_exhausted = False
        self.failure: StorageError | None = None
        self.match_count = 0
        self.filtered_out_count = 0

    @property
    def blocks_merge(self) -> bool:
        """Whether this stream must be fetched before records after `reached` are final."""
        return not self.is_exhausted and not self.buffer

    @property
    def is_partly_fetched(self) -> bool:
        """Whether a page has been fetched and another follows."""
        return self._position is not None

    def fetch(self, limit: int) -> None:
        """Fetch one page of up to `limit` items.

        Costs one request; on the index more, as long as a page ends within the copies of its first
        event. A StorageError becomes `failure`, and the stream stays where it was.
        """
        try:
            fetched, position = self._fetch_page(limit)
        except StorageError as error:
            if self.failure is None or not isinstance(error, DeadlinePassedError):
                self.failure = error
            return
        self.failure = None
        self._position, self._held_back, self.is_exhausted = position, [], position is None
        if position is not None:
            self.reached = position[keys.SORT_KEY]["S"]
            if self.partition.on_index:
                complete = _without_last_event(fetched)
                self.reached = complete[-1].sort_key
                fetched, self._held_back = complete, fetched[len(complete) :]
        matching = fetched
        if self._excluded is not None or self._sharding_key is not None:
            matching = [record for record in fetched if self._matches(record)]
        self.match_count += len(matching)
        self.filtered_out_count += len(fetched) - len(matching)
        self.buffer += matching

    def take(self, count: int) -> list[StoredEvent]:
        """Remove and return the first `count` buffered records."""
        taken, self.buffer = self.buffer[:count], self.buffer[count:]
        return taken

    def _fetch_page(self, limit: int) -> tuple[list[StoredEvent], Item | None]:
        """Return the records held back, those of one more page, and the position after it.

        On the index the records include at least one event with all its copies.
        """
        fetched, position = list(self._held_back), self._position
        while True:
            request = {**self._request, "Limit": limit}
            if position is not None:
                request["ExclusiveStartKey"] = position
            response = self._call("Query", request)
            fetched += [decode_event(item) for item in response["Items"]]
            position = response.get("LastEvaluatedKey")
            if position is None or not self.partition.on_index or _without_last_event(fetched):
                return fetched, position

    def _matches(self, record: StoredEvent) -> bool:
        """Return whether a fetched record belongs to the read."""
        if record.sort_key == self._excluded:
            return False
        return self._sharding_key is None or (
            keys.parse_sort_key(record.sort_key).sharding_key == self._sharding_key
        )


def _without_last_event(records: list[StoredEvent]) -> list[StoredEvent]:
    """Return the records before the last sort key.

    The index holds the copies of an event side by side in no order, and a page may end among them.
    """
    count = len(records)
    while count and records[count - 1].sort_key == records[-1].sort_key:
        count -= 1
    return records[:count]


def range_request(  # noqa: PLR0913  a Query's own parameters
    table: str,
    partition: ScanPartition,
    low: str,
    high: str,
    *,
    descending: bool = False,
    consistent: bool,
) -> dict[str, Any]:
    """Return the Query, without limit and position, for sort keys from `low` to `high` inclusive.

    Costs per request 0.5 RCU (1 if consistent) for each started 4 KB that it reads, 1 MB at most,
    and at least one such unit.
    """
    name = keys.INDEX_PARTITION_KEY if partition.on_index else keys.PARTITION_KEY
    request: dict[str, Any] = {
        "TableName": table,
        "KeyConditionExpression": "#p = :p AND #s BETWEEN :low AND :high",
        "ExpressionAttributeNames": {"#p": name, "#s": keys.SORT_KEY},
        "ExpressionAttributeValues": {
            ":p": {"S": partition.key},
            ":low": {"S": low},
            ":high": {"S": high},
        },
        "ScanIndexForward": not descending,
        "ReturnConsumedCapacity": "TOTAL",
    }
    if partition.on_index:
        request["IndexName"] = keys.INDEX_NAME
    elif consistent:
        request["ConsistentRead"] = True
    return request
