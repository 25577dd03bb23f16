"""Which of some events another shard holds too."""

from bisect import bisect_right
from collections.abc import Sequence
from typing import Final

from spillway import keys
from spillway.exporting.lane import Send, range_request
from spillway.reading.copies import unexpired
from spillway.reading.query import ReadQuery
from spillway.reading.stream import Record, to_record

__all__ = ["Lookup"]

_LEAST: Final = 20  # items of 200 bytes that the cheapest Query returns at no further cost
_MOST: Final = 10_000  # more than 1 MB holds


class Lookup:
    """Looks events up in other shards by walking along both, each request beginning at the next event looked for.

    Costs at least one Query a shard. Where the other shard holds little in that range, that is all; where it is
    dense, at most one Query for each event looked for. A BatchGetItem would cost a unit for every single one.
    """

    def __init__(self, table: str, query: ReadQuery, send: Send, now: float) -> None:
        self._table = table
        self._query = query
        self._send = send
        self._now = now

    def find(self, shard: int, wanted: Sequence[str]) -> dict[str, Record]:
        """Return the unexpired copies that a shard holds, by their sort keys; `wanted` is ascending."""
        looked_for = set(wanted)
        found: dict[str, Record] = {}
        at, limit = 0, max(_LEAST, min(2 * len(wanted), _MOST))
        while at < len(wanted):
            records, reached = self._page(shard, wanted[at], wanted[-1], limit)
            found.update((each.sort_key, each) for each in records if each.sort_key in looked_for)
            if reached is None:
                break
            settled = bisect_right(wanted, reached) - at
            limit = min(2 * limit, _MOST) if 4 * settled >= limit else max(_LEAST, limit // 2)
            at += settled
        return found

    def _page(self, shard: int, low: str, high: str, limit: int) -> tuple[list[Record], str | None]:
        key = keys.partition_key(self._query.series, shard)
        consistent = self._query.consistent
        response = self._send(
            key, range_request(self._table, key, low, high, limit=limit, consistent=consistent)
        )
        records = [to_record(item) for item in response["Items"]]
        position = response.get("LastEvaluatedKey")
        reached = None if position is None else position[keys.SORT_KEY]["S"]
        return unexpired(records, self._now), reached
