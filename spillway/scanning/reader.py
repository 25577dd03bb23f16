"""The reader: pages of a range, and single events by their identity."""

from collections.abc import Iterator
from functools import partial
from itertools import chain
from typing import Any

from spillway import keys
from spillway.dynamodb.retries import retry_until
from spillway.errors import InvalidInputError
from spillway.layouts.model import Layout
from spillway.scanning.copies import candidate_shards, newest_copy, unexpired
from spillway.scanning.costs import ReadBudget, ReadCost
from spillway.scanning.cursor import decode_position, encode_position
from spillway.scanning.pages import Explanation, Measure, Page
from spillway.scanning.query import MAX_LIMIT, ReadQuery, Source
from spillway.scanning.scan import Scan
from spillway.scanning.sources import ReadSources, Staleness
from spillway.scanning.streams import StoredEvent, decode_event
from spillway.settings import Settings

__all__ = ["Reader"]


class Reader:
    """Reads under whatever layouts a range was written with. Thread-safe."""

    def __init__(self, sources: ReadSources, settings: Settings) -> None:
        self._sources = sources
        self._settings = settings

    def page(  # noqa: PLR0913  the parameters of a page
        self,
        query: ReadQuery,
        *,
        limit: int,
        cursor: str | None,
        measure: Measure,
        budget: ReadBudget,
        explain: bool = False,
    ) -> Page:
        """Return the page of up to `limit` events after a cursor, within `Settings.page_bytes`.

        If the read reaches its budget or fails in part, the page holds what was found, which may be
        nothing, and a cursor.
        """
        if not 1 <= limit <= MAX_LIMIT:
            raise InvalidInputError("invalid_query", "limit", f"must be 1 to {MAX_LIMIT:,}")
        started = self._sources.runtime.monotonic()
        # One more than the page takes shows whether another follows.
        after = None if cursor is None else decode_position(cursor, query)
        scan = self.scan(query, after=after, requested=limit + 1, budget=budget, explain=explain)
        events = chain.from_iterable(scan.batches())
        records, has_more = _take_page(events, limit, self._settings.page_bytes, measure)
        position = records[-1].sort_key if has_more else scan.stopped_at
        seconds = self._sources.runtime.monotonic() - started
        return Page(
            query.series,
            tuple(records),
            None if position is None else encode_position(position, query),
            reason=None if has_more else scan.reason,
            missing=() if has_more else scan.missing,
            missing_count=0 if has_more else scan.missing_count,
            explanation=_explanation(scan, len(records), seconds),
        )

    def scan(  # noqa: PLR0913  a read's whole situation
        self,
        query: ReadQuery,
        *,
        requested: int | None,
        budget: ReadBudget,
        after: str | None = None,
        explain: bool = False,
        cost: ReadCost | None = None,
    ) -> Scan:
        """Return a scan of a query's range; see `Scan`.

        Raises:
            InvalidInputError: the query reads the index, which has no payloads here.
        """
        if query.source is Source.INDEX and not self._settings.index_has_payload:
            reason = "the index of this deployment holds no payloads: use source=table"
            raise InvalidInputError("invalid_query", "source", reason)
        return Scan(
            self._sources,
            query,
            after=after,
            requested=requested,
            budget=budget,
            explain=explain,
            cost=cost,
        )

    def read_one(
        self, series: str, identity: keys.SortKey, *, consistent: bool, timeout: float
    ) -> StoredEvent | None:
        """Return one event, or None if there is none.

        Costs one GetItem for each shard that may hold it, in parallel. A miss of a cache before
        DynamoDB proves nothing, so a strongly consistent read follows it.
        """
        deadline = self._sources.runtime.monotonic() + timeout
        found = self._read_copy(series, identity, consistent=consistent, timeout=timeout)
        if (
            found is None
            and self._sources.staleness(identity.time, consistent=consistent) is Staleness.MINUTES
        ):
            left = deadline - self._sources.runtime.monotonic()
            return self._read_copy(series, identity, consistent=True, timeout=left)
        return found

    def _read_copy(
        self, series: str, identity: keys.SortKey, *, consistent: bool, timeout: float
    ) -> StoredEvent | None:
        request = {"ConsistentRead": consistent}
        layout, answers = self._call_each_shard(series, identity, "GetItem", request, timeout)
        if layout is None:
            return None
        now = self._sources.runtime.now()
        found = (decode_event(answer["Item"]) for answer in answers if "Item" in answer)
        copies = unexpired(found, now)
        return newest_copy(copies, series, layout) if copies else None

    def delete(self, series: str, identity: keys.SortKey, *, timeout: float) -> bool:
        """Delete one event from every shard that may hold it, in parallel.

        Return whether it existed.
        """
        request = {"ReturnValues": "ALL_OLD"}
        _, answers = self._call_each_shard(series, identity, "DeleteItem", request, timeout)
        deleted = (decode_event(each["Attributes"]) for each in answers if "Attributes" in each)
        return bool(unexpired(deleted, self._sources.runtime.now()))

    def _call_each_shard(
        self,
        series: str,
        identity: keys.SortKey,
        operation: str,
        request: dict[str, Any],
        timeout: float,
    ) -> tuple[Layout | None, list[dict[str, Any]]]:
        """Call an operation on an event's key in each shard that may hold it.

        Return the layout and the answers.
        """
        runtime = self._sources.runtime
        deadline = runtime.monotonic() + timeout
        consistent = request.get("ConsistentRead") is not False
        staleness = self._sources.staleness(identity.time, consistent=consistent)
        load = partial(self._sources.layout, series, staleness)
        layout = retry_until(deadline, load, runtime)
        if layout is None:
            return None, []
        sort_key = keys.sort_key(*identity)

        def call(shard: int) -> dict[str, Any]:
            key = {
                keys.PARTITION_KEY: {"S": keys.partition_key(series, shard)},
                keys.SORT_KEY: {"S": sort_key},
            }
            full = {"TableName": self._sources.table, "Key": key, **request}
            send = partial(self._sources.events(staleness), operation, full)
            return retry_until(deadline, send, runtime)

        shards = candidate_shards(sort_key, series, layout)
        return layout, runtime.parallel([partial(call, shard) for shard in shards])


def _take_page(
    events: Iterator[StoredEvent], limit: int, budget: int, measure: Measure
) -> tuple[list[StoredEvent], bool]:
    """Take events until a page is full, at least one; return also whether more may follow."""
    records: list[StoredEvent] = []
    size = 0
    for record in events:
        size += measure(record)
        if len(records) == limit or (records and size > budget):
            return records, True
        records.append(record)
    return records, False


def _explanation(scan: Scan, returned: int, seconds: float) -> Explanation:
    plan, cost = scan.plan, scan.cost
    return Explanation(
        source="table" if plan is None else plan.source.value,
        reason="the series is unknown" if plan is None else plan.reason,
        estimates={}
        if plan is None
        else {
            source.value: (each.requests, each.read_units)
            for source, each in plan.estimates.items()
        },
        requests=cost.requests,
        read_units=cost.read_units,
        rounds=cost.rounds,
        items=cost.items,
        returned=returned,
        seconds=seconds,
    )
