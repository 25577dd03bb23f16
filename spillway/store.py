"""The event store: the library's public face."""

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from spillway.aggregating.aggregate import AggregatePage, Aggregator
from spillway.aggregating.query import AggregateQuery
from spillway.dynamodb.boto import call_through
from spillway.dynamodb.fallback import Breaker, Fallback
from spillway.dynamodb.port import Call
from spillway.errors import InvalidInputError
from spillway.event import Event, check_series
from spillway.layouts.cache import StaleLayouts
from spillway.layouts.model import Layout
from spillway.layouts.source import LayoutSource
from spillway.runtime import Runtime
from spillway.scaling.autoscaler import WriterAutoscaler
from spillway.scaling.evidence import CapacityCheck, CapacityMetrics
from spillway.scaling.updates import Observer, ignore
from spillway.scaling.usage import UsageRecorder
from spillway.scanning.costs import ReadBudget
from spillway.scanning.exports import Export, Exporter
from spillway.scanning.pages import Measure, Page, stored_size, to_event
from spillway.scanning.query import Order, ReadQuery, Source, check_identity
from spillway.scanning.reader import Reader
from spillway.scanning.series_stats import SeriesStatsCache
from spillway.scanning.sources import ReadSources
from spillway.settings import Settings
from spillway.writing.conflicts import OnConflict
from spillway.writing.results import WriteResult
from spillway.writing.writer import Writer

if TYPE_CHECKING:
    from types_boto3_dynamodb import DynamoDBClient

__all__ = ["EventStore"]


class EventStore:
    """Events in a sharded DynamoDB table. Thread-safe; make one a process and keep it.

    Args:
        client: a boto3 DynamoDB client. Its credentials, endpoint, proxies, TLS settings and
            timeouts are used. Its retries are not: the store has a policy of its own. Short
            timeouts (connect 2 s, read 5 s) suit it best. Or an implementation of the port
            (`spillway.dynamodb.port.Call`).
        table: name of the main table.
        layouts: name of the layout table.
        usage: name of the usage table. By it all writers of a series know its rate, and grow its
            layout before it throttles. Without it a layout grows only once it throttles, by
            doubling.
        settings: what the deployment decides; must be the same for all writers of a table.
        runtime: clocks, sleep, randomness and threads, for tests.
        cache: a port that answers from copies, such as `DaxCall`. Only eventually consistent reads
            of closed ranges ask it: those that ended longer ago than late events are expected
            (`Settings.late_limit`, else `slack`). Where it fails, DynamoDB answers; after three
            failures in a row it is not asked for 30 s. Such reads lag by at most
            `Settings.layout_ttl`, the TTL of the cache (DAX: 5 min by default) and DynamoDB's own
            lag.
        capacity: the table's capacity by CloudWatch, for endpoints that throttle without a reason.
            It distinguishes used-up capacity, which no shard adds to, from a hot key range. Pass
            `spillway.control.capacity_through(client, table, time.time)`. Called once a minute at
            most, and only while writes throttle without a reason.
        observe: called for every growth, in the thread that causes it. Also for stops and capacity
            limits; of those that repeat, once a minute.

    Example:
        >>> store = EventStore(boto3.client("dynamodb"), table="events", layouts="layouts")
        >>> store.write([Event(series="ORD", time=now, payload={"delay": 33})]).accepted
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
        self._fallback, stale = None, None
        if cache is not None:
            self._fallback = Fallback(cache, call, Breaker(runtime.monotonic))
            ttl = self._settings.layout_ttl
            stale = StaleLayouts(self._fallback, layouts, ttl, runtime.now)
        self._layouts = LayoutSource(call, layouts, self._settings, runtime, stale_layouts=stale)
        recorder = None
        if usage is not None:
            units = self._settings.growth.partition_wcu
            recorder = UsageRecorder(call, usage, runtime.now, runtime.random, units)
        autoscaler = WriterAutoscaler(
            self._layouts, recorder, self._settings.growth, runtime, observe or ignore
        )
        check = None if capacity is None else CapacityCheck(capacity, runtime.monotonic)
        self._writer = Writer(
            call, table, self._layouts, autoscaler, self._settings, runtime, check
        )
        sources = ReadSources(
            call=call,
            cached=self._fallback or call,
            stats=SeriesStatsCache(runtime.monotonic),
            index_has_payload=self._settings.index_has_payload,
            open_for=self._settings.open_for,
            table=table,
            layouts=self._layouts,
            runtime=runtime,
        )
        self._reader = Reader(sources, self._settings)
        self._aggregator = Aggregator(sources, self._reader)
        self._exporter = Exporter(sources)

    @property
    def cache_failures(self) -> int:
        """How often `cache` failed, so that DynamoDB answered."""
        return 0 if self._fallback is None else self._fallback.failures

    def write(
        self,
        events: Iterable[Event],
        *,
        timeout: float | None = None,
        on_conflict: str = "replace",
    ) -> WriteResult:
        """Write events and return one outcome each. Only accepted events are durably stored.

        An invalid event does not fail the others. The same identity twice is one event, if the
        payloads are equal. Throttled and failed writes are retried with full jitter until `timeout`
        seconds have passed (default: `Settings.write_timeout`, 20). Events that were never sent by
        then are rejected with the code `deadline`: write these again.

        Write up to 1,000 events at once. Larger writes are not faster, keep all their events in
        memory, and may run out of time: `timeout` includes taking the events from `events`.

        Costs one BatchWriteItem for each 25 events, for each 1 KB of an event 1 WCU and as much
        again for its index entry, and one consistent GetItem (0.5 to 1 RCU) a series and
        `layout_ttl`.

        An identity that is already stored with another payload is replaced without notice. With
        `on_conflict="reject"` it is rejected with the code `conflict`; an equal payload is
        accepted. Every event that was accepted before the write began is found, whatever the layout
        was. Of concurrent writes of one identity only one is accepted, with two exceptions: the
        layout changes meanwhile, or the mode is random. Then each may be accepted in a shard of its
        own, and reads return one of them. Writes with `replace` still replace. A conflict is
        reported as `unknown_outcome` where an earlier attempt of the write is in doubt: send the
        event again to learn which.

        `reject` costs one PutItem an event instead of a batch, at 1 WCU for each 1 KB and as much
        for the index; a refused one costs the table's part too. Each attempt reads the layout of
        every series strongly. Where several epochs cover an event, or in random mode, the shards
        that may hold it are looked up first, by one consistent GetItem each.

        Raises:
            InvalidInputError: `on_conflict` is neither `replace` nor `reject`.
        """
        try:
            mode = OnConflict(on_conflict)
        except ValueError as error:
            reason = f"must be one of {', '.join(OnConflict)}"
            raise InvalidInputError("invalid_write", "on_conflict", reason) from error
        seconds = self._settings.write_timeout if timeout is None else timeout
        return self._writer.write(events, seconds, mode)

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
        """Return a page of the events of [start, end) in order. An unknown series has none.

        Args:
            series: the series.
            start: first time that is read, aware.
            end: first time that is not.
            limit: maximum of events in the page, 1 to 10,000. A page also ends at
                `Settings.page_bytes`, with a cursor.
            order: `asc` or `desc`, by time, then sharding key and id.
            cursor: of the page before. It stays valid across any change of layout; any other change
                of the query voids it.
            consistent: whether every write acknowledged before is seen. Costs twice the read units.
                Other reads lag by at most `Settings.layout_ttl` and DynamoDB's own lag, with a
                `cache` by its TTL too.
            sharding_key: only its events. One shard is read; its other keys are skipped.
            source: `table`, `index` (one query a time bucket and index shard, eventually consistent),
                or `auto`: the one with the lower estimated cost, and the other where it throttles.
            measure: bytes that a record adds to the page.
            max_rcu: read units that the page may cost; a page that reaches it ends early, with a
                cursor. Events larger than those before may take a round beyond it.
            explain: whether `Page.explanation` states a careful estimate of the cost. It then rests
                on one shard read first, which takes a round more. Not with `max_rcu`.
            timeout: seconds for which throttled and failed reads are retried. A range that takes
                half of it, since few of its events match, ends the page early, maybe without
                events, with a cursor.

        A page that ends early says so: `Page.complete`, `Page.reason`, and `Page.missing`, the
        partitions that were not read.

        Costs one GetItem and, for each shard that the range's layouts have, at least one Query:
        0.5 RCU for each started 4 KB read, 1 if consistent. From the index one such Query a time
        bucket and index shard.

        Raises:
            InvalidInputError: a parameter is wrong, the cursor is not of this query, or `max_rcu`
                is less than the first round of requests costs.
            StorageError: DynamoDB throttled or failed until the deadline, before any event of the
                page was certain.
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
        """Return one event by its identity, or None.

        Costs two GetItems, in random mode one more a shard. Raises InvalidInputError and
        StorageError as `read` does.
        """
        identity = check_identity(series, time, event_id, sharding_key)
        record = self._reader.read_one(series, identity, consistent=consistent, timeout=timeout)
        return None if record is None else to_event(series, record)

    def aggregate(  # noqa: PLR0913  the parameters of a query
        self,
        series: str,
        start: datetime,
        end: datetime,
        *,
        interval: timedelta | None = None,
        field: str | None = None,
        functions: Iterable[str] | None = None,
        fill: str = "none",
        limit: int = 1_000,
        cursor: str | None = None,
        consistent: bool = True,
        sharding_key: str | None = None,
        source: str = "auto",
        max_rcu: float | None = None,
        timeout: float = 10,
    ) -> AggregatePage:
        r"""Return aggregates of a field's numbers in [start, end): one row an interval, by time.

        Args:
            series: the series; an unknown one has no events.
            start: first time that is read, aware.
            end: first time that is not.
            interval: length of a row, such as `timedelta(hours=1)`; None for one row. Intervals are
                counted from 1970-01-01T00:00Z, whole weeks from a Monday, so days begin at midnight
                UTC. The first and the last row cover only their part within the range.
            field: where in the payload the number is: `a.b` is the key `b` of the object at key
                `a`, `a\.b` the key `a.b`. Events with something else there, or nothing, are counted
                in `AggregateRow.skipped`. None to count events.
            functions: any of `count` (numbers; without a field events), `sum`, `min`, `max`, `avg`,
                `first`, `last`, `p50`, `p90`, `p99`; None for `count`, and with a field `avg`.
            fill: what stands in intervals without numbers: `none` leaves out those without events;
                `null`, `zero`, `previous`, `linear` (between the neighbours). `count` is 0 there.
                Nothing beyond the range is read.
            limit: maximum of rows in the page, 1 to 10,000.
            cursor: of the page before, for the same query. It stays valid across any change of
                layout.
            consistent: whether every write acknowledged before is seen. Costs twice the read units.
            sharding_key: only its events. One shard is read; its other keys are skipped.
            source: `table`, `index` or `auto`, as in `read`.
            max_rcu: read units that the page may cost.
            timeout: seconds for which throttled and failed reads are retried. No round of reads
                begins in its second half.

        Sums and averages are exact until they are rounded once, and percentiles interpolate between
        ranks as NumPy and pandas do. So the same events always give the same rows, whatever the
        shards, pages or order of arrival. A row of over 100,000 numbers has percentiles from a
        sketch: within 0.5 % of the number at that rank, and `AggregateRow.approximate` says so.

        A page that reaches its time or `max_rcu` ends with the last finished row, and a cursor.
        Each row is read to its end within one page, because cursors carry no figures. For long
        intervals allow more `timeout` and `max_rcu`, or ask for shorter ones and add up.

        Costs what reading the range costs. Memory does not grow with the range: it holds one row
        at a time, and up to 20,000 events in transit. Where intervals are filled by neighbours,
        each later page reads the last interval with numbers before it again.

        Raises:
            InvalidInputError: a parameter is wrong, or the cursor is not of this query. With the
                code `interval_too_long`: the next row, or the gap that a line is drawn over, has
                more events than time or `max_rcu` suffice for.
            StorageError: DynamoDB throttled or failed until the time was up, before any row was
                certain.
        """
        events = ReadQuery.checked(
            series,
            start,
            end,
            order=Order.ASCENDING,
            sharding_key=sharding_key,
            source=source,
            consistent=consistent,
        )
        query = AggregateQuery.checked(
            events, interval=interval, field=field, functions=functions, fill=fill
        )
        return self._aggregator.page(
            query, limit=limit, cursor=cursor, max_rcu=max_rcu, timeout=timeout
        )

    def export(  # noqa: PLR0913  the parameters of an export
        self,
        series: str,
        start: datetime,
        end: datetime,
        *,
        mode: str = "shards",
        cursor: str | None = None,
        consistent: bool = True,
        pool: int = 4,
        max_rcu: float | None = None,
        max_seconds: float | None = None,
        timeout: float = 10,
    ) -> Export:
        """Return all events of [start, end), each once. Sends nothing until it is used.

        Iterate over the export, or take its `chunks`.

        Args:
            series: the series; an unknown one has no events.
            start: first time that is read, aware.
            end: first time that is not.
            mode: `shards`: one shard after the other, each in order of time. `blocks`: `pool`
                shards at the same time, then the next ones; each block in order of time.
                `round_robin`: a page of each shard in turn, one request at a time, so that no
                partition is read at full speed; all in order of time.
            cursor: `Export.cursor` of an earlier export of the same range and mode, that stopped at
                any event. It stays valid across any change of layout.
            consistent: whether every write acknowledged before is seen. Costs twice the read units.
            pool: shards that `blocks` reads at the same time, 1 to 8.
            max_rcu: read units after which the export stops, with a cursor. The turn that reaches
                them is finished, and one turn is always made.
            max_seconds: seconds after which nothing is sent any more. No turn begins in their
                second half, which is for retries; the export stops, with a cursor.
            timeout: seconds for which each throttled or failed request is tried again.

        An event comes once, also where epochs left copies in several shards. One that is written
        again while the export runs may come twice. If `consistent`, what was acknowledged before
        the export began is in it, also in ranges that are still being written. An event is given
        out while any copy is unexpired. One whose copy expires within a week of the beginning, and
        that is written again meanwhile with a longer retention, may be missed.

        Costs one GetItem and, for each shard, one Query for each 1 MB, at least one: 0.5 RCU for
        each started 4 KB (1 if consistent). In `shards` and `blocks` each page of times that
        layouts with different counts cover is looked up in the other shards that its events may
        have copies in: at least one Query each. In random mode these are all later shards, and for
        events that expire within a week all others, so `round_robin`, which looks nothing up, is
        far cheaper there. Holds in memory at most 1 MB of
        items a shard that is read at the same time, in `round_robin` about 8 MB in all.

        Raises:
            InvalidInputError: a parameter is wrong, or the cursor is not of this range and mode.
            ExportError: while it is used: a shard was throttled or failed until the time was up. It
                names the shard, comes after every event that was read before, and has a cursor.
            StorageError: while it is used: the layout could not be read.

        Example:
            >>> for event in store.export("ORD", start, end):
            ...     print(event.time, event.payload)
        """
        query = ReadQuery.checked(
            series,
            start,
            end,
            order=Order.ASCENDING,
            sharding_key=None,
            source=Source.TABLE,
            consistent=consistent,
        )
        return self._exporter.export(
            query,
            mode=mode,
            pool=pool,
            cursor=cursor,
            max_rcu=max_rcu,
            max_seconds=max_seconds,
            timeout=timeout,
        )

    def delete(
        self,
        series: str,
        time: datetime,
        event_id: str,
        *,
        sharding_key: str | None = None,
        timeout: float = 10,
    ) -> bool:
        """Delete one event from every shard that may hold it; return whether there was one.

        A write of the same event that is still under way may store it again. Costs one GetItem, and
        a DeleteItem for each distinct shard that the layouts covering its time give it, in random
        mode for every shard. Raises InvalidInputError and StorageError as `read` does.
        """
        identity = check_identity(series, time, event_id, sharding_key)
        return self._reader.delete(series, identity, timeout=timeout)

    def layout(self, series: str) -> Layout | None:
        """Return the layout in force with its epochs, None for an unknown series.

        Costs one consistent GetItem.
        """
        check_series(series, "invalid_query")
        return self._layouts.read(series)

    def set_layout(
        self, series: str, *, shards: int | None = None, index_shards: int | None = None
    ) -> Layout:
        """Set the counts of a series, up or down, such as ahead of a known peak.

        None keeps a count. Takes effect for writers within `Settings.layout_ttl`, for readers at
        once. Creates the layout of a new series. Costs one consistent GetItem and one conditional
        UpdateItem.

        Raises:
            InvalidInputError: a count is not 1 to 256, or not a power of two (the table's may be
                any in random mode).
            StorageError: DynamoDB throttled or failed, or others kept changing the layout.
            ClockSkewError: this process's clock is off by more than `Settings.clock_error`.
        """
        check_series(series, "invalid_query")
        try:
            changed = self._layouts.set_counts(series, shards=shards, index_shards=index_shards)
        except ValueError as error:
            raise InvalidInputError("invalid_layout", "", str(error)) from error
        return changed.layout
