"""What a store offers to bulk readers."""

import math
from datetime import datetime

from spillway.errors import InvalidInputError
from spillway.exporting.export import Export
from spillway.exporting.position import MAX_POOL, ExportMode, Position, Positions
from spillway.exporting.walk import Walk, Way
from spillway.reading.budget import Budget
from spillway.reading.query import Order, ReadQuery, Source
from spillway.reading.sources import Sources

__all__ = ["Exporting"]


class Exporting:
    """The exports of an event store, which is one."""

    _sources: Sources

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
        """Return all events of [start, end), each once: iterate over it, or take `chunks`. Sends nothing until then.

        Args:
            series: the series; an unknown one has no events.
            start: first time that is read, aware.
            end: first time that is not.
            mode: `shards`: one shard after the other, each in order of time. `blocks`: `pool` shards at the same time,
                then the next ones; each block in order of time. `round_robin`: a page of each shard in turn, one
                request at a time, so that no partition is read at full speed; all in order of time.
            cursor: `Export.cursor` of an earlier export of the same range and mode, that stopped at any event; it
                outlives any change of layout.
            consistent: whether every write acknowledged before is seen. Costs twice the read units.
            pool: shards that `blocks` reads at the same time, 1 to 8.
            max_rcu: read units after which the export stops, with a cursor; the turn that reaches them is finished,
                and one turn is always made.
            max_seconds: seconds after which nothing is sent any more. No turn begins in their second half, which is
                for retries; the export stops, with a cursor.
            timeout: seconds for which each throttled or failed request is tried again.

        An event is given out once, also where epochs left copies in several shards, and while any
        copy is unexpired; one that is written again while the export runs may come twice. What was
        acknowledged before the export began is in it, also in ranges that are still being written,
        if `consistent`. An exception are copies that expire within a week of the beginning: an
        event that is written again meanwhile, with a longer retention, may be missed.

        Costs one GetItem and, for each shard, one Query for each 1 MB, at least one: 0.5 RCU for
        each started 4 KB (1 if consistent). In `shards` and `blocks` each page of times that
        layouts with different counts cover is looked up in the other shards that its events may
        have copies in: at least one Query each. In random mode these are all later shards (for
        events that expire within a week of the beginning all others), so that `round_robin`, which
        looks nothing up, is far cheaper there. Holds in memory at most 1 MB of items a shard that
        is read at the same time, in `round_robin` about 8 MB in all.

        Raises:
            InvalidInputError: a parameter is wrong, or the cursor is not of this range and mode.
            ExportError: while it is used: a shard was throttled or failed until the time was up. It names the
                shard, comes after every event that was read before, and has a cursor.
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
        way = Way(mode=_mode(mode), pool=_pool(pool), timeout=timeout)
        seconds = math.inf if max_seconds is None else max_seconds
        budget = Budget.lasting(seconds, self._sources.runtime, max_rcu)
        positions = Positions(query, way.mode)
        if cursor is None:
            begin = Position(0, way.width, started_at=int(self._sources.runtime.now()))
        else:
            begin = positions.decode(cursor)
        walk = Walk(self._sources, query, way, budget)
        return Export(walk, positions, begin)


def _mode(mode: str) -> ExportMode:
    try:
        return ExportMode(mode)
    except ValueError as error:
        known = ", ".join(ExportMode)
        raise InvalidInputError("invalid_query", "mode", f"must be one of {known}") from error


def _pool(pool: int) -> int:
    if not 1 <= pool <= MAX_POOL:
        raise InvalidInputError("invalid_query", "pool", f"must be 1 to {MAX_POOL}")
    return pool
