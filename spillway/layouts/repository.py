"""The layout table: strongly consistent reads, conditional writes, and the list of sharded series."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, Final

from spillway.dynamodb.port import Call, ConditionFailedError, Item, StorageError
from spillway.keys import LAYOUT_INDEX_KEY, LAYOUT_INDEX_NAME, LAYOUT_KEY
from spillway.layouts.codec import SHARDED, STOP, decode_layout, encode_layout, encode_stop
from spillway.layouts.model import GrowthStop, Layout, Snapshot
from spillway.layouts.transitions import close_retired, first_layout
from spillway.settings import Settings

__all__ = [
    "LayoutChange",
    "LayoutContendedError",
    "LayoutRepository",
    "ShardedSeries",
    "decode_stored",
]


LayoutChange = Callable[[Layout, float], Layout]
"""A change of a layout at a wall clock; returns the very layout it is given where nothing has to change."""

_MAX_ATTEMPTS: Final = 20


class LayoutContendedError(StorageError):
    """Others changed the layout again and again; nothing was changed."""

    def __init__(self, series: str) -> None:
        super().__init__("LayoutContended", f"the layout of {series!r} changed again and again")


class LayoutRepository:
    """The layout table. Every write is one UpdateItem on a condition; methods raise StorageError.

    `now` is the wall clock in epoch seconds.
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
        loaded_at = self._now()
        item = self._get(series)
        return None if item is None else Snapshot(decode_stored(item), loaded_at)

    def read_or_create(self, series: str) -> Snapshot:
        """Return the layout, creating it with the configured counts for a new series.

        Of several creators one wins; the others go on with what the winner wrote.
        """
        found = self.read(series)
        return found if found is not None else self._create(series)

    def change(self, series: str, change: LayoutChange) -> Snapshot:
        """Apply a change to the layout in force and return the outcome; creates the layout of a new series first.

        The write is conditional on the version that was read strongly. Whoever loses a race reads again and applies
        the change to what it finds, so it must say what shall be, not by how much. Epochs that someone retired and
        did not close are closed by the way. Costs 1 RCU and 1 WCU an attempt. LayoutContendedError after 20 lost races.
        """
        for _ in range(_MAX_ATTEMPTS):
            changed = self.try_change(self.read_or_create(series), change)
            if changed is not None:
                return changed
        raise LayoutContendedError(series)

    def try_change(self, snapshot: Snapshot, change: LayoutChange) -> Snapshot | None:
        """Apply a change to a snapshot, as `change` does, once; None where the layout has changed meanwhile."""
        now = self._now()  # after the snapshot was read: see `close_retired`
        changed = change(close_retired(snapshot.layout, now), now)
        if changed is snapshot.layout:
            return snapshot
        changed = replace(changed, version=snapshot.layout.version + 1)
        if not self._replace(snapshot.layout, changed):
            return None
        return Snapshot(changed, snapshot.loaded_at)

    def settle(self, series: str) -> Snapshot:
        """Close the epochs that are retired and still open, if any."""
        return self.change(series, lambda layout, _: layout)

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

    def _create(self, series: str) -> Snapshot:
        loaded_at = self._now()
        layout = first_layout(series, self._settings, loaded_at)
        try:
            self._update(encode_layout(layout), condition="attribute_not_exists(#version)")
        except ConditionFailedError:
            found = self.read(series)
            if found is None:
                raise
            return found
        return Snapshot(layout, loaded_at)

    def _replace(self, old: Layout, new: Layout) -> bool:
        """Write `new` unless the version is no longer that of `old`; tell whether it was written."""
        known = {"N": str(old.version)}
        try:
            self._update(encode_layout(new), condition="#version = :known", known=known)
        except ConditionFailedError:
            return False
        return True

    def _update(self, item: Item, *, condition: str, known: dict[str, str] | None = None) -> None:
        """Set all attributes of a layout by one UpdateItem; the sparse index's key goes where it no longer applies."""
        names = {f"#{name}": name for name in item if name != LAYOUT_KEY}
        values = {f":{name}": value for name, value in item.items() if name != LAYOUT_KEY}
        expression = "SET " + ", ".join(f"#{name[1:]} = {name}" for name in values)
        if LAYOUT_INDEX_KEY not in item:
            names[f"#{LAYOUT_INDEX_KEY}"] = LAYOUT_INDEX_KEY
            expression += f" REMOVE #{LAYOUT_INDEX_KEY}"
        self._call(
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

    def _get(self, series: str) -> Item | None:
        request = {
            "TableName": self._table,
            "Key": {LAYOUT_KEY: {"S": series}},
            "ConsistentRead": True,
        }
        item: Item | None = self._call("GetItem", request).get("Item")
        return item


def decode_stored(item: Item) -> Layout:
    """Read a layout item; StorageError where it is damaged."""
    try:
        return decode_layout(item)
    except (KeyError, ValueError) as error:
        series = item.get(LAYOUT_KEY, {}).get("S")
        raise StorageError("LayoutDamaged", f"the layout of {series!r}: {error!r}") from error


class ShardedSeries:
    """Lists the layouts of series with more than one shard, in order of their names."""

    def __init__(self, call: Call, table: str) -> None:
        self._call = call
        self._table = table

    def page(self, after: str | None, limit: int) -> tuple[Sequence[Layout], str | None]:
        """Return up to `limit` layouts of series after one, and the series to go on after, None at the end.

        Copies, eventually consistent: read a layout anew before changing it. Costs one Query and half a read unit for each
        4 KB: about 15 for 50 layouts. Damaged ones are left out: whoever reads these complains. Raises StorageError.
        """
        answer = self._call("Query", _request(self._table, after, limit))
        last = answer.get("LastEvaluatedKey")
        return list(_decoded(answer["Items"])), None if last is None else last[LAYOUT_KEY]["S"]


def _decoded(items: Iterable[Item]) -> Iterator[Layout]:
    for item in items:
        with suppress(StorageError):
            yield decode_stored(item)


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
