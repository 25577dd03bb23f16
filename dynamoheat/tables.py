"""A table with its indexes: what writing and reading its items costs, given old and new images.

`ImageCache` keeps the latest images of written items, which later writes replace.
"""

from collections.abc import Iterable, Iterator
from typing import Any

from dynamoheat.consumption import Charge, IndexTarget, ItemCharges
from dynamoheat.parameters import ModelParameters
from dynamoheat.partitions import Partition
from dynamoheat.resources import Resource
from dynamoheat.settings import IndexSettings, TableSettings
from dynamoheat.sizes import (
    EVENTUAL,
    WRITE_UNIT_BYTES,
    Item,
    attributes_bytes,
    index_write_units,
    item_bytes,
    key_text,
    read_units,
    sortable_value,
    write_units,
)

__all__ = ["ImageCache", "Index", "Table"]

Identity = tuple[str, Any]


class ImageCache:
    """Item images by key, the most recently written `min_items` to twice as many.

    All operations O(1).

    An empty image stands for a deleted item: known to be absent.
    """

    __slots__ = ("_min_items", "_newer", "_older")

    def __init__(self, least: int) -> None:
        self._min_items = least
        self._newer: dict[Identity, Item] = {}
        self._older: dict[Identity, Item] = {}

    def __len__(self) -> int:
        return len(self._newer) + len(self._older)

    def get(self, identity: Identity) -> Item | None:
        """Return an item's image, an empty one if it is known to be absent, None if unknown."""
        found = self._newer.get(identity)
        return self._older.get(identity) if found is None else found

    def put(self, identity: Identity, image: Item) -> None:
        """Store an image (empty: absent)."""
        if not self._min_items:
            return
        self._newer[identity] = image
        if len(self._newer) >= self._min_items:
            self._older, self._newer = self._newer, {}

    def forget(self, identity: Identity) -> None:
        """Drop an item whose image is no longer known."""
        self._newer.pop(identity, None)
        self._older.pop(identity, None)


class Index:
    """A secondary index, and the entries that items have in it."""

    def __init__(self, settings: IndexSettings, table: TableSettings, resource: Resource) -> None:
        self.name = settings.name
        self.is_local = settings.local
        self.partition_name = settings.key.partition
        self.sort_name = settings.key.sort
        self.resource = resource
        self.partitions = resource.partitions
        self.target = IndexTarget(resource, settings.name, settings.local)
        self.projected: frozenset[str] | None = None
        if settings.projected is not None:
            self.projected = settings.projected.union(settings.key.names, table.key.names)
        self.key_names = settings.key.names

    def has_entry(self, item: Item) -> bool:
        """Return whether an item has an entry. Indexes are sparse."""
        return self.partition_name in item and (self.sort_name is None or self.sort_name in item)

    def project(self, item: Item) -> Item:
        """Return the projected attributes of an item that has an entry."""
        if self.projected is None:
            return item
        return {name: item[name] for name in self.projected if name in item}


class Table:
    """A table prepared for charging requests: settings, resources, indexes, image cache."""

    def __init__(
        self,
        settings: TableSettings,
        resource: Resource,
        indexes: dict[str, Resource],
        limits: ModelParameters,
    ) -> None:
        self.settings = settings
        self.name = settings.name
        self.resource = resource
        self.partition_name = settings.key.partition
        self.sort_name = settings.key.sort
        self.key_names = settings.key.names
        self.target = IndexTarget(resource, None)
        self.indexes = {
            index.name: Index(index, settings, indexes.get(index.name, resource))
            for index in settings.indexes
        }
        self.image_cache = ImageCache(limits.image_cache_items)
        self._global = [index for index in self.indexes.values() if not index.is_local]
        self._has_only_global = len(self._global) == len(self.indexes)
        self._eventual_boost = limits.eventual_boost

    def resources(self) -> Iterator[Resource]:
        """Yield the table's own resource and those of its global indexes."""
        yield self.resource
        yield from self.index_resources()

    def index_resources(self) -> Iterator[Resource]:
        """Yield the resources of global indexes."""
        return (index.resource for index in self._global)

    def identity(self, item: Item) -> tuple[str, Any]:
        """Return an item's key: the partition key's text, and a comparable sort key or None."""
        sort = None if self.sort_name is None else sortable_value(item[self.sort_name])
        return key_text(item[self.partition_name]), sort

    def charge_put(self, item: Item, factor: float = 1.0) -> ItemCharges:
        """Return the charges of putting an item; `factor` is 2 in transactions.

        See `charge_puts`.
        """
        if factor == 1.0:
            return self.charge_puts((item,))[0]
        return self.charge_write(self.image_cache.get(self.identity(item)) or None, item, factor)

    def charge_puts(self, items: Iterable[Item]) -> list[ItemCharges]:
        """Return the charges of putting items, 1.5 to 2 µs each: the hot path of batches.

        The replaced image comes from the cache. Items that are not cached are taken to be new.
        """
        item_charges: list[ItemCharges] = []
        target, name, sort_name = self.target, self.partition_name, self.sort_name
        known, indexes, simple = self.image_cache.get, self._global, self._has_only_global
        partitions = self.resource.partitions
        cached = partitions.cache.get
        sort = None
        for item in items:
            value = item[name]
            key = value["S"] if "S" in value else key_text(value)
            if sort_name is not None:
                value = item[sort_name]
                sort = value["S"] if "S" in value else sortable_value(value)
            old = known((key, sort))
            if old or not simple:
                item_charges.append(self.charge_write(old or None, item))
                continue
            size = item_bytes(item)
            units = 1.0 if size <= WRITE_UNIT_BYTES else write_units(size)
            charges: list[Charge] = [
                (target, cached(key) or partitions.find(key, sort), units, key, sort, size)
            ]
            for index in indexes:  # a comprehension costs 4 µs a batch more
                if index.partition_name in item and index.has_entry(item):
                    charges.append(self._charge_new_entry(index, item, size, sort))  # noqa: PERF401
            item_charges.append(charges)
        return item_charges

    def charge_write(self, old: Item | None, new: Item | None, factor: float = 1.0) -> ItemCharges:
        """Return the charges of a write from `old` to `new` (None: absent).

        `factor` is 2 in transactions. ValueError if both are absent: use `charge_unchanged` for a
        delete that finds nothing.
        """
        item = new if new is not None else old
        if item is None:
            raise ValueError("a write needs an item")
        before = 0 if old is None else item_bytes(old)
        after = 0 if new is None else item_bytes(new)
        key, sort = self.identity(item)
        partition = self.resource.partitions.find(key, sort)
        units = write_units(before, after) * factor
        charges: list[Charge] = [(self.target, partition, units, key, sort, after - before)]
        for index in self.indexes.values():
            charges.extend(self._index_charges(index, old, new, partition))
        return tuple(charges)

    def charge_unchanged(self, key: Item, size: int = 0, factor: float = 1.0) -> ItemCharges:
        """Return the charge of a write that changes nothing.

        That is a condition check, or a delete that finds no item.
        """
        text, sort = self.identity(key)
        partition = self.resource.partitions.find(text, sort)
        return ((self.target, partition, write_units(size) * factor, text, sort, 0.0),)

    def charge_read(
        self, where: tuple[str, Any], size: int, consistency: float, index: Index | None = None
    ) -> ItemCharges:
        """Return the charge of reading `size` bytes at a key of the table or of an index."""
        target = self.target if index is None else index.target
        key, sort = where
        units = read_units(size, consistency)
        tokens = self.tokens_for_read(units, consistency)
        return ((target, target.resource.partitions.find(key, sort), units, key, sort, tokens),)

    def tokens_for_read(self, units: float, consistency: float) -> float:
        """Return the tokens that a read takes from its partition's bucket.

        Eventually consistent reads take fewer tokens than units, since any replica serves them.
        """
        return units / self._eventual_boost if consistency == EVENTUAL else units

    def _charge_new_entry(self, index: Index, item: Item, size: int, sort: Any) -> Charge:
        if index.projected is not None:
            size = attributes_bytes(item, index.projected)
        value = item[index.partition_name]
        key = value["S"] if "S" in value else key_text(value)
        if index.sort_name != self.sort_name:
            sort = None if index.sort_name is None else sortable_value(item[index.sort_name])
        partition = index.partitions.cache.get(key) or index.partitions.find(key, sort)
        units = 1.0 if size <= WRITE_UNIT_BYTES else write_units(size)
        return (index.target, partition, units, key, sort, size)

    def _index_charges(
        self, index: Index, old: Item | None, new: Item | None, home: Partition
    ) -> Iterator[Charge]:
        before = index.project(old) if old is not None and index.has_entry(old) else None
        after = index.project(new) if new is not None and index.has_entry(new) else None
        if before == after:
            return
        sizes = [None if entry is None else item_bytes(entry) for entry in (before, after)]
        if before and after and _place(index, before) != _place(index, after):
            yield self._charge_moved_entry(index, before, sizes[0], home, -1)
            yield self._charge_moved_entry(index, after, sizes[1], home, 1)
            return
        entry = after if after is not None else before
        key, sort = _place(index, entry or {})
        units = index_write_units(sizes[0], sizes[1], moved=False)
        partition = home if index.is_local else index.resource.partitions.find(key, sort)
        yield (index.target, partition, units, key, sort, (sizes[1] or 0) - (sizes[0] or 0))

    def _charge_moved_entry(
        self, index: Index, entry: Item, size: int | None, home: Partition, sign: int
    ) -> Charge:
        key, sort = _place(index, entry)
        partition = home if index.is_local else index.resource.partitions.find(key, sort)
        return (index.target, partition, write_units(size or 0), key, sort, sign * (size or 0))


def _place(index: Index, entry: Item) -> tuple[str, Any]:
    value = entry[index.partition_name]
    key = value.get("S") or key_text(value)
    if index.sort_name is None:
        return key, None
    value = entry[index.sort_name]
    return key, value.get("S") or sortable_value(value)
