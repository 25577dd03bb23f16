"""Layouts in their table: read strongly, created once however many try at the same time."""

from collections.abc import Callable
from typing import Final

from spillway.keys import LAYOUT_KEY
from spillway.layouts.item import decode_layout, encode_layout, history_entry
from spillway.layouts.model import START, Epoch, Layout, Snapshot
from spillway.settings import Settings
from spillway.storage.port import Call, ConditionFailedError, Item, StorageError

__all__ = ["LayoutStore"]

_KEY: Final = frozenset({LAYOUT_KEY})


class LayoutStore:
    """The layout table. Every method is one or two requests and raises StorageError.

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
        response = self._call(
            "GetItem",
            {
                "TableName": self._table,
                "Key": {LAYOUT_KEY: {"S": series}},
                "ConsistentRead": True,
            },
        )
        item = response.get("Item")
        return None if item is None else Snapshot(_decode(item), loaded_at)

    def read_or_create(self, series: str) -> Snapshot:
        """Return the layout, creating it with the configured counts for a new series.

        Of several creators one wins; the others go on with what the winner wrote.
        """
        found = self.read(series)
        return found if found is not None else self._create(series)

    def _create(self, series: str) -> Snapshot:
        loaded_at = self._now()
        layout = self._first_layout(series, loaded_at)
        try:
            self._call("UpdateItem", _creation(self._table, encode_layout(layout)))
        except ConditionFailedError:
            found = self.read(series)
            if found is None:
                raise
            return found
        return Snapshot(layout, loaded_at)

    def _first_layout(self, series: str, now: float) -> Layout:
        settings = self._settings
        first = Epoch(
            id=1,
            shards=settings.shards,
            index_shards=settings.index_shards,
            mode=settings.mode,
            bucket=settings.bucket,
            low=START,
            horizon=settings.horizon,
        )
        return Layout(
            series=series,
            version=1,
            last_updated=round(now, 3),
            epochs=(first,),
            history=(history_entry(now, first.shards),),
        )


def _creation(table: str, item: Item) -> dict[str, object]:
    """Return the UpdateItem that sets a whole item where there is none."""
    names = {f"#{i}": name for i, name in enumerate(name for name in item if name not in _KEY)}
    return {
        "TableName": table,
        "Key": {LAYOUT_KEY: item[LAYOUT_KEY]},
        "UpdateExpression": "SET " + ", ".join(f"{each} = :{each[1:]}" for each in names),
        "ConditionExpression": "attribute_not_exists(#key)",
        "ExpressionAttributeNames": {**names, "#key": LAYOUT_KEY},
        "ExpressionAttributeValues": {f":{each[1:]}": item[name] for each, name in names.items()},
    }


def _decode(item: Item) -> Layout:
    try:
        return decode_layout(item)
    except (KeyError, ValueError) as error:
        series = item.get(LAYOUT_KEY, {}).get("S")
        raise StorageError("LayoutDamaged", f"the layout of {series!r}: {error!r}") from error
