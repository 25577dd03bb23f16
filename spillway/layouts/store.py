"""Layouts in their table: read strongly, created once and changed one after the other, however many try."""

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any, Final

from spillway.keys import LAYOUT_INDEX_KEY, LAYOUT_KEY
from spillway.layouts.changes import first_layout, settled
from spillway.layouts.clock import ClockReading, check_clock, read_clocks
from spillway.layouts.item import STOP, decode_layout, encode_layout, encode_stop
from spillway.layouts.model import GrowthStop, Layout, Snapshot
from spillway.settings import Settings
from spillway.storage.port import Call, ConditionFailedError, Item, StorageError

__all__ = ["Change", "LayoutContendedError", "LayoutStore", "decode_stored"]

Change = Callable[[Layout, float], Layout]
"""A change of a layout at a wall clock; returns the very layout it is given where nothing has to change."""

_MOST_ATTEMPTS: Final = 20


class LayoutContendedError(StorageError):
    """Others changed the layout again and again; nothing was changed."""

    def __init__(self, series: str) -> None:
        super().__init__("LayoutContended", f"the layout of {series!r} changed again and again")


class LayoutStore:
    """The layout table. Every write is one UpdateItem on a condition; methods raise StorageError.

    `now` is the wall clock in epoch seconds. Where the endpoint tells the date, all but `read` and
    `note_stop` compare the clock with it and raise ClockSkewError instead of acting by a wrong one.
    """

    def __init__(
        self, call: Call, table: str, settings: Settings, now: Callable[[], float]
    ) -> None:
        self._call = call
        self._table = table
        self._settings = settings
        self._now = now

    def read(self, series: str) -> Snapshot | None:
        """Return the layout by a strongly consistent read (1 RCU up to 4 KB), None where the series has none."""
        return self._read(series)[0]

    def read_or_create(self, series: str) -> Snapshot:
        """Return the layout, creating it with the configured counts for a new series.

        Of several creators one wins; the others go on with what the winner wrote.
        """
        found, clocks = self._read(series)
        check_clock(series, clocks.offset, self._settings.clock_error)
        return found if found is not None else self._create(series)

    def change(self, series: str, change: Change) -> Snapshot:
        """Apply a change to the layout in force and return the outcome; creates the layout of a new series first.

        The write is conditional on the version that was read strongly. Whoever loses a race reads again and applies
        the change to what it finds, so it must say what shall be, not by how much. Costs 1 RCU and
        1 WCU an attempt. LayoutContendedError after 20 lost races.
        """
        return self._until_done(series, partial(self.try_change, change=change))

    def try_change(self, snapshot: Snapshot, change: Change) -> Snapshot | None:
        """Apply a change to a snapshot, as `change` does, once; None where the layout has changed meanwhile."""
        return self._write(snapshot, change(snapshot.layout, self._now()))

    def settle(self, series: str, *, by_own_clock: bool = False) -> Snapshot:
        """Close the epochs that are retired and still open, if any.

        Closes them by DynamoDB's date, and where the endpoint does not tell it, `by_own_clock` or
        not at all: an epoch that closes too early hides events. Only writers' clocks must be right,
        so only writers may close by theirs.
        """

        def close(snapshot: Snapshot) -> Snapshot | None:
            now = self._now()  # after the snapshot was read: see `settled`
            if snapshot.server_time is not None:
                now = max(now, snapshot.server_time)
            elif not by_own_clock:
                return snapshot
            return self._write(snapshot, settled(snapshot.layout, now))

        return self._until_done(series, close)

    def note_stop(self, series: str, stop: GrowthStop) -> None:
        """Note on the layout that growth does not help. Leaves the version alone: nothing depends on the note."""
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
        for _ in range(_MOST_ATTEMPTS):
            changed = attempt(self.read_or_create(series))
            if changed is not None:
                return changed
        raise LayoutContendedError(series)

    def _create(self, series: str) -> Snapshot:
        layout = first_layout(series, self._settings, self._now())
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
        """Write `new` unless the version is no longer that of `old`; tell whether it was written."""
        known = {"N": str(old.version)}
        try:
            self._update(encode_layout(new), condition="#version = :known", known=known)
        except ConditionFailedError:
            return False
        return True

    def _update(
        self, item: Item, *, condition: str, known: dict[str, str] | None = None
    ) -> ClockReading:
        """Set all attributes of a layout by one UpdateItem; the sparse index's key goes where it no longer applies."""
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
