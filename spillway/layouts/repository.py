"""The layout table.

Strongly consistent reads, conditional writes, and the list of sharded series.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any, Final

from spillway.dynamodb.port import Call, ConditionFailedError, Item, StorageError, ThrottledError
from spillway.dynamodb.retries import retry_until
from spillway.keys import LAYOUT_INDEX_KEY, LAYOUT_INDEX_NAME, LAYOUT_KEY
from spillway.layouts import transitions
from spillway.layouts.clock import ClockReading, check_clock, read_clocks
from spillway.layouts.codec import SHARDED, STOP, decode_layout, encode_layout, encode_stop
from spillway.layouts.model import GrowthStop, Layout, Snapshot
from spillway.runtime import Runtime
from spillway.settings import Settings

__all__ = [
    "LayoutChange",
    "LayoutContendedError",
    "LayoutRepository",
    "ShardedSeries",
    "decode_stored",
]


LayoutChange = Callable[[Layout, float], Layout]
"""A change of a layout at a wall clock.

Returns the very layout it is given where nothing has to change.
"""

_MAX_ATTEMPTS: Final = 20


class LayoutContendedError(StorageError):
    """Others changed the layout again and again; nothing was changed."""

    def __init__(self, series: str) -> None:
        super().__init__("LayoutContended", f"the layout of {series!r} changed again and again")


class LayoutRepository:
    """The layout table. Every write is one UpdateItem on a condition; methods raise StorageError.

    `now` is the wall clock in epoch seconds. Where the endpoint tells the date, all but `read` and
    `record_stop` compare the clock with it and raise ClockSkewError instead of acting by a wrong
    one.
    """

    def __init__(
        self, call: Call, table: str, settings: Settings, now: Callable[[], float]
    ) -> None:
        self._call = call
        self._table = table
        self._settings = settings
        self._now = now

    def read(self, series: str) -> Snapshot | None:
        """Return the layout by a strongly consistent read, None for none; 1 RCU up to 4 KB."""
        return self._read(series)[0]

    def read_or_create(self, series: str) -> Snapshot:
        """Return the layout, creating it with the configured counts for a new series.

        Of several creators one wins; the others go on with what the winner wrote.
        """
        found, clocks = self._read(series)
        check_clock(series, clocks.offset, self._settings.clock_error)
        return found if found is not None else self._create(series)

    def change(self, series: str, change: LayoutChange) -> Snapshot:
        """Apply a change to the layout in force and return the outcome.

        Creates the layout of a new series first.

        The write is conditional on the version that was read strongly. Whoever loses a race reads
        again and applies the change to what it finds, so it must say what shall be, not by how
        much. Costs 1 RCU and 1 WCU an attempt. LayoutContendedError after 20 lost races.
        """
        return self._until_done(series, partial(self.try_change, change=change))

    def try_change(self, snapshot: Snapshot, change: LayoutChange) -> Snapshot | None:
        """Apply a change to a snapshot, as `change` does, once.

        None where the layout has changed meanwhile.
        """
        return self._write(snapshot, change(snapshot.layout, self._now()))

    def close_retired(self, series: str, *, by_own_clock: bool = False) -> Snapshot:
        """Close the epochs that are retired and still open, if any.

        Closes them by DynamoDB's date, and where the endpoint does not tell it, `by_own_clock` or
        not at all: an epoch that closes too early hides events. Only writers' clocks must be right,
        so only writers may close by theirs.
        """

        def close(snapshot: Snapshot) -> Snapshot | None:
            now = self._now()  # after the snapshot was read: see `close_retired`
            if snapshot.server_time is not None:
                now = max(now, snapshot.server_time)
            elif not by_own_clock:
                return snapshot
            return self._write(snapshot, transitions.close_retired(snapshot.layout, now))

        return self._until_done(series, close)

    def record_stop(self, series: str, stop: GrowthStop) -> None:
        """Note on the layout that growth does not help.

        Leaves the version alone: nothing depends on the note.
        """
        request = {
            "TableName": self._table,
            "Key": {LAYOUT_KEY: {"S": series}},
            "UpdateExpression": "SET #stop = :stop",
            "ConditionExpression": "attribute_exists(#version)",
            "ExpressionAttributeNames": {"#stop": STOP, "#version": "version"},
            "ExpressionAttributeValues": {":stop": encode_stop(stop)},
        }
        with suppress(ConditionFailedError):  # a layout that is gone needs no note
            self._call("UpdateItem", request)

    def _until_done(self, series: str, attempt: Callable[[Snapshot], Snapshot | None]) -> Snapshot:
        for _ in range(_MAX_ATTEMPTS):
            changed = attempt(self.read_or_create(series))
            if changed is not None:
                return changed
        raise LayoutContendedError(series)

    def _create(self, series: str) -> Snapshot:
        layout = transitions.first_layout(series, self._settings, self._now())
        try:
            clocks = self._update(encode_layout(layout), condition="attribute_not_exists(#version)")
        except ConditionFailedError:
            found = self.read(series)
            if found is None:
                raise
            return found
        return Snapshot(layout, *clocks)

    def _write(self, snapshot: Snapshot, changed: Layout) -> Snapshot | None:
        """Write a layout on the snapshot's version; None where the table has another version."""
        if changed is snapshot.layout:
            return snapshot
        check_clock(changed.series, snapshot.clock_offset, self._settings.clock_error)
        changed = replace(changed, version=snapshot.layout.version + 1)
        if not self._replace(snapshot.layout, changed):
            return None
        return replace(snapshot, layout=changed)

    def _replace(self, old: Layout, new: Layout) -> bool:
        """Write `new` unless the version is no longer that of `old`.

        Tell whether it was written.
        """
        known = {"N": str(old.version)}
        try:
            self._update(encode_layout(new), condition="#version = :known", known=known)
        except ConditionFailedError:
            return False
        return True

    def _update(
        self, item: Item, *, condition: str, known: dict[str, str] | None = None
    ) -> ClockReading:
        """Set all attributes of a layout by one UpdateItem.

        The sparse index's key goes where it no longer applies.
        """
        names = {f"#{name}": name for name in item if name != LAYOUT_KEY}
        values = {f":{name}": value for name, value in item.items() if name != LAYOUT_KEY}
        expression = "SET " + ", ".join(f"#{name[1:]} = {name}" for name in values)
        if LAYOUT_INDEX_KEY not in item:
            names[f"#{LAYOUT_INDEX_KEY}"] = LAYOUT_INDEX_KEY
            expression += f" REMOVE #{LAYOUT_INDEX_KEY}"
        _, clocks = self._send(
            "UpdateItem",
            {
                "TableName": self._table,
                "Key": {LAYOUT_KEY: item[LAYOUT_KEY]},
                "UpdateExpression": expression,
                "ConditionExpression": condition,
                "ExpressionAttributeNames": names,
                "ExpressionAttributeValues": values
                if known is None
                else {**values, ":known": known},
            },
        )
        return clocks

    def _read(self, series: str) -> tuple[Snapshot | None, ClockReading]:
        request = {
            "TableName": self._table,
            "Key": {LAYOUT_KEY: {"S": series}},
            "ConsistentRead": True,
        }
        response, clocks = self._send("GetItem", request)
        item: Item | None = response.get("Item")
        return None if item is None else Snapshot(decode_stored(item), *clocks), clocks

    def _send(
        self, operation: str, request: Mapping[str, Any]
    ) -> tuple[dict[str, Any], ClockReading]:
        sent_at = self._now()
        response = self._call(operation, request)
        return response, read_clocks(response, sent_at, self._now())


def decode_stored(item: Item) -> Layout:
    """Read a layout item; StorageError where it is damaged."""
    try:
        return decode_layout(item)
    except (KeyError, ValueError) as error:
        series = item.get(LAYOUT_KEY, {}).get("S")
        raise StorageError("LayoutDamaged", f"the layout of {series!r}: {error!r}") from error


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
