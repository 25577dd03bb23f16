"""What a store offers to those who want figures instead of events."""

from collections.abc import Iterable
from datetime import datetime, timedelta

from spillway.aggregates.aggregator import aggregate
from spillway.aggregates.page import AggregatePage
from spillway.aggregates.query import AggregateQuery
from spillway.reading.budget import Budget
from spillway.reading.query import Order, ReadQuery
from spillway.reading.reader import Reader
from spillway.reading.scan import Scan
from spillway.reading.sources import Sources
from spillway.reading.spent import Spent

__all__ = ["Aggregating"]


class Aggregating:
    """The aggregates of an event store, which is one."""

    _sources: Sources
    _reader: Reader

    def aggregate(  # noqa: PLR0913  the parameters of a question
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
        read: str = "auto",
        max_rcu: float | None = None,
        timeout: float = 10,
    ) -> AggregatePage:
        r"""Return what a field's numbers in [start, end) come to, a row an interval, in order of time.

        Args:
            series: the series; an unknown one has no events.
            start: first time that is looked at, aware.
            end: first time that is not.
            interval: length of a row, such as `timedelta(hours=1)`; None for one row. Intervals are counted from
                1970-01-01T00:00Z, whole weeks from a Monday, so days begin at midnight UTC; the first and the last row
                cover only their part within the range.
            field: where in the payload the number is: `a.b` is the key `b` of the object at key `a`, `a\.b` the key
                `a.b`. Events with something else there, or nothing, are counted in `AggregateRow.skipped`. None to
                count events.
            functions: any of `count` (numbers; without a field events), `sum`, `min`, `max`, `avg`, `first`, `last`, `p50`,
                `p90`, `p99`; None for `count`, and with a field `avg`.
            fill: what stands in intervals without numbers: `none` leaves out those without events; `null`, `zero`,
                `previous`, `linear` (between the neighbours). `count` is 0 there. Nothing beyond the range is looked at.
            limit: most rows of the page, 1 to 10,000.
            cursor: of the page before, for the same question; it outlives any change of layout.
            consistent: whether every write acknowledged before is seen. Costs twice the read units.
            sharding_key: only its events: one shard is read, whose other keys are passed over.
            read: `table`, `index` or `auto`, as in `EventStore.read`.
            max_rcu: read units that the page may cost.
            timeout: seconds for which throttled and failed reads are retried; no round of reads begins in its second half.

        Sums and averages are exact until they are rounded once, and percentiles interpolate between ranks as NumPy
        and pandas do, so the same events always give the same rows, whatever the shards, pages or order of arrival. A row
        of over 100,000 numbers has percentiles from a sketch: within 0.5 % of the number at that rank, and
        `AggregateRow.approximate` says so.

        A page that reaches its time or `max_rcu` ends with the last finished row, and a cursor.
        Each row is read to its end within one page, since cursors carry no figures: for long
        intervals allow more `timeout` and `max_rcu`, or ask for shorter ones and add up.

        Costs what reading the range does, and no memory for it: one row at a time, and up to 20,000
        events on their way. Where intervals are filled by neighbours, each later page reads the
        last interval with numbers before it again.

        Raises:
            InvalidInputError: a parameter is wrong, or the cursor is not of this question; or, as `interval_too_long`,
                the next row, or the gap that a line is drawn over, has more events than time or
                `max_rcu` suffice for.
            StorageError: DynamoDB throttled or failed until the time was up, before anything was certain.
        """
        events = ReadQuery.checked(
            series,
            start,
            end,
            order=Order.ASCENDING,
            sharding_key=sharding_key,
            source=read,
            consistent=consistent,
        )
        query = AggregateQuery.checked(
            events, interval=interval, field=field, functions=functions, fill=fill
        )
        budget = Budget.lasting(timeout, self._sources.runtime, max_rcu)
        spent = Spent()

        def scan_from(part: ReadQuery, wanted: int | None) -> Scan:
            return self._reader.scan(part, wanted=wanted, budget=budget, spent=spent)

        return aggregate(query, scan_from, limit=limit, cursor=cursor)
