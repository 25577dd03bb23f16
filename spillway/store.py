"""The event store: the library's face."""

from collections.abc import Iterable
from datetime import datetime
from typing import TYPE_CHECKING

from spillway.aggregating.aggregate import Aggregating
from spillway.dynamodb.boto import call_through
from spillway.dynamodb.fallback import Breaker, Fallback
from spillway.dynamodb.port import Call
from spillway.errors import InvalidInputError
from spillway.event import Event
from spillway.layouts.cache import StaleLayouts
from spillway.layouts.model import Layout
from spillway.layouts.source import LayoutSource
from spillway.runtime import Runtime
from spillway.scaling.autoscaler import WriterAutoscaler
from spillway.scaling.evidence import CapacityCheck, CapacityMetrics
from spillway.scaling.updates import Observer, ignore
from spillway.scaling.usage import UsageRecorder
from spillway.scanning.costs import ReadBudget
from spillway.scanning.exports import Exporting
from spillway.scanning.pages import Measure, Page, stored_size, to_event
from spillway.scanning.query import ReadQuery, check_identity, check_series
from spillway.scanning.reader import Reader
from spillway.scanning.series_stats import SeriesStatsCache
from spillway.scanning.sources import ReadSources
from spillway.settings import Settings
from spillway.writing.results import WriteResult
from spillway.writing.writer import Writer

if TYPE_CHECKING:
    from types_boto3_dynamodb import DynamoDBClient

__all__ = ["EventStore"]


class EventStore(Aggregating, Exporting):
    """Events in a sharded DynamoDB table. Thread-safe; make one a process and keep it.

    Args:
        client: a boto3 DynamoDB client. Its credentials, endpoint, proxies, TLS settings and timeouts are used; its
            retries are not: the store's own policy decides. Short timeouts (connect 2 s, read 5 s) suit it best.
            Or an implementation of the port (`spillway.dynamodb.port.Call`).
        table: name of the main table.
        layouts: name of the layout table.
        usage: name of the usage table, by which all writers of a series know its rate and grow its layout in time; without it
            a layout grows only once it throttles, by doubling.
        settings: what the deployment decides; must be the same for all writers of a table.
        runtime: clocks, sleep, randomness and threads, for tests.
        cache: a port that answers from copies, such as `DaxCall`, for eventually consistent reads of closed ranges:
            those that ended longer ago than late events are expected (`Settings.late_limit`, else `slack`). Where it
            fails, DynamoDB answers; after three failures in a row it is left alone for 30 s. Such reads lag by at
            most `Settings.layout_ttl`, the TTL of the cache (DAX: 5 min by default) and DynamoDB's own lag. Nothing
            else ever asks it.
        capacity: figures of CloudWatch, such as `capacity_through` gives, for endpoints that name no throttling reasons:
            they tell used-up capacity from a hot key range. Asked once a minute at most, and only when it throttles.
        observe: told of every growth, in the thread that met it, and of stops and capacity limits, those that repeat once
            a minute.

    Example:
        >>> store = EventStore(boto3.client("dynamodb"), table="events", layouts="layouts")
        >>> store.write([Event(series="ORD", time=datetime.now(UTC), payload={"delay": 33})]).accepted
        1
    """

    def __init__(  # noqa: PLR0913  all but three have defaults
        self,
        client: "DynamoDBClient | Call",
        *,
        table: str,
        layouts: str,
        usage: str | None = None,
        settings: Settings | None = None,
        runtime: Runtime | None = None,
        cache: Call | None = None,
        capacity: CapacityMetrics | None = None,
        observe: Observer | None = None,
    ) -> None:
        call: Call = client if callable(client) else call_through(client)
        self._settings = settings or Settings()
        self._runtime = runtime = runtime or Runtime()
        self._fallback, lagging = None, None
        if cache is not None:
            self._fallback = Fallback(cache, call, Breaker(runtime.monotonic))
            ttl = self._settings.layout_ttl
            lagging = StaleLayouts(self._fallback, layouts, ttl, runtime.now)
        self._layouts = LayoutSource(call, layouts, self._settings, runtime, lagging=lagging)
        recorder = None
        if usage is not None:
            units = self._settings.growth.partition_wcu
            recorder = UsageRecorder(call, usage, runtime.now, runtime.random, units)
        grower = WriterAutoscaler(
            self._layouts, recorder, self._settings.growth, runtime, observe or ignore
        )
        check = None if capacity is None else CapacityCheck(capacity, runtime.monotonic)
        self._writer = Writer(call, table, self._layouts, grower, self._settings, runtime, check)
        self._sources = ReadSources(
            call=call,
            cached=self._fallback or call,
            experience=SeriesStatsCache(runtime.monotonic),
            index_has_payload=self._settings.index_has_payload,
            open_for=self._settings.open_for,
            table=table,
            layouts=self._layouts,
            runtime=runtime,
        )
        self._reader = Reader(self._sources, self._settings)

    @property
    def cache_failures(self) -> int:
        """How often `cache` failed, so that DynamoDB answered."""
        return 0 if self._fallback is None else self._fallback.failures

    def write(self, events: Iterable[Event], *, timeout: float | None = None) -> WriteResult:
        """Write events and answer for each: accepted means durably stored, nothing else does.

        Invalid events don't sink the others. The same identity twice is one event, if the payloads are equal.
        Throttled and failed writes are retried with full jitter until `timeout` seconds have passed
        (default: `Settings.write_timeout`, 20). Events that were never sent by then are rejected
        with the code `deadline`: write these again.

        Write up to 1,000 events at once. Larger writes are not faster, keep all their events in
        memory, and may run out of time: `timeout` includes taking the events from `events`.

        Costs one BatchWriteItem for each 25 events, for each 1 KB of an event 1 WCU and as much again for its index
        entry, and one consistent GetItem (0.5 to 1 RCU) a series and `layout_ttl`.
        """
        return self._writer.write(
            events, self._settings.write_timeout if timeout is None else timeout
        )

    def read(  # noqa: PLR0913  the parameters of a query
        self,
        series: str,
        start: datetime,
        end: datetime,
        *,
        limit: int = 100,
        order: str = "asc",
        cursor: str | None = None,
        consistent: bool = True,
        sharding_key: str | None = None,
        source: str = "auto",
        measure: Measure = stored_size,
        max_rcu: float | None = None,
        explain: bool = False,
        timeout: float = 10,
    ) -> Page:
        """Return a page of the events of [start, end) in order; an unknown series has an empty one.

        Args:
            series: the series.
            start: first time that is read, aware.
            end: first time that is not.
            limit: most events of the page, 1 to 10,000. A page also ends at `Settings.page_bytes`, with a cursor.
            order: `asc` or `desc`, by time, then sharding key and id.
            cursor: of the page before; it outlives any change of layout, and any other change of the query voids it.
            consistent: whether every write acknowledged before is seen. Costs twice the read units. A read that
                need not be lags by at most `Settings.layout_ttl` and DynamoDB's own lag, with a `cache` by its TTL too.
            sharding_key: only its events: one shard is read, whose other keys are passed over.
            source: `table`, `index` (one query a time bucket and index shard, eventually consistent), or `auto`, which
                takes what is estimated to cost least, and the other where it throttles.
            measure: bytes that a record adds to the page.
            max_rcu: read units that the page may cost; a page that reaches it ends early, with a cursor. Events larger
                than those before may take a round beyond it.
            explain: whether `Page.explanation` is to say beforehand what the page costs as well as it can: its estimate
                then rests on one shard read first, which takes a round more. Not with `max_rcu`.
            timeout: seconds for which throttled and failed reads are retried. A range that takes half of it, since
                it holds little of what is asked for, ends the page early, maybe without events, with a cursor.

        A page that ends early says so: `Page.complete`, `Page.reason`, and `Page.missing`, what was left off.

        Costs one GetItem and, for each shard that the range's layouts have, at least one Query: 0.5 RCU for each
        started 4 KB read, 1 if consistent. From the index one such Query a time bucket and index shard.

        Raises:
            InvalidInputError: a parameter is wrong, the cursor is not of this query, or `max_rcu` is less than the
                first round of requests costs.
            StorageError: DynamoDB throttled or failed until the deadline, before any event of the page was certain.
        """
        query = ReadQuery.checked(
            series,
            start,
            end,
            order=order,
            sharding_key=sharding_key,
            source=source,
            consistent=consistent,
        )
        budget = ReadBudget.lasting(timeout, self._runtime, max_rcu)
        return self._reader.page(
            query, limit=limit, cursor=cursor, measure=measure, budget=budget, explain=explain
        )

    def read_one(  # noqa: PLR0913  an identity has four parts
        self,
        series: str,
        time: datetime,
        event_id: str,
        *,
        sharding_key: str | None = None,
        consistent: bool = True,
        timeout: float = 10,
    ) -> Event | None:
        """Return one event by its identity, or None. Costs two GetItems, in random mode one more a shard.

        Raises InvalidInputError and StorageError as `read` does.
        """
        identity = check_identity(series, time, event_id, sharding_key)
        record = self._reader.one(series, identity, consistent=consistent, timeout=timeout)
        return None if record is None else to_event(series, record)

    def delete(
        self,
        series: str,
        time: datetime,
        event_id: str,
        *,
        sharding_key: str | None = None,
        timeout: float = 10,
    ) -> bool:
        """Remove one event from every shard that may hold it; tell whether there was one.

        A write of the same event that is still under way may store it again. Costs one GetItem and a DeleteItem for
        each distinct shard that the layouts covering its time give it, in random mode for every shard.
        Raises InvalidInputError and StorageError as `read` does.
        """
        identity = check_identity(series, time, event_id, sharding_key)
        return self._reader.delete(series, identity, timeout=timeout)

    def layout(self, series: str) -> Layout | None:
        """Return the layout in force with its epochs, None for an unknown series. Costs one consistent GetItem."""
        check_series(series)
        return self._layouts.read(series)

    def set_layout(
        self, series: str, *, shards: int | None = None, index_shards: int | None = None
    ) -> Layout:
        """Set the counts of a series by hand, up or down, such as ahead of a known peak; None keeps a count.

        Takes effect for writers within `Settings.layout_ttl`, for readers at once. Creates the layout of a new series.
        Costs one consistent GetItem and one conditional UpdateItem.

        Raises:
            InvalidInputError: a count is not 1 to 256, or not a power of two (the table's may be any in random mode).
            StorageError: DynamoDB throttled or failed, or others kept changing the layout.
            ClockSkewError: this process's clock is off by more than `Settings.clock_error`.
        """
        check_series(series)
        try:
            changed = self._layouts.set_counts(series, shards=shards, index_shards=index_shards)
        except ValueError as error:
            raise InvalidInputError("invalid_layout", "", str(error)) from error
        return changed.layout
