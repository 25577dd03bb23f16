"""A table with its indexes: what writing and reading its items charges, given old and new images."""

from collections.abc import Iterable, Iterator
from typing import Any, Final

from dynamoheat.charges import Charge, IndexTarget, Work
from dynamoheat.image_cache import ImageCache
from dynamoheat.items import Item, attributes_bytes, comparable, item_bytes, key_text
from dynamoheat.parameters import ModelParameters
from dynamoheat.partitions import Partition
from dynamoheat.resources import Resource
from dynamoheat.settings import IndexSettings, TableSettings
from dynamoheat.units import EVENTUAL, index_write_units, read_units, write_units

__all__ = ["Index", "Table"]

_SMALL: Final = 1024


class Index:
    """A secondary index: which entry an item has in it."""

    def __init__(self, settings: IndexSettings, table: TableSettings, resource: Resource) -> None:
        self.name = settings.name
        self.local = settings.local
        self.partition_name = settings.key.partition
        self.sort_name = settings.key.sort
        self.resource = resource
        self.partitions = resource.partitions
        self.arm = IndexTarget(resource, settings.name, settings.local)
        self.projected: frozenset[str] | None = None
        if settings.projected is not None:
            self.projected = settings.projected.union(settings.key.names, table.key.names)
        self.key_names = settings.key.names

    def holds(self, item: Item) -> bool:
        """Say whether an item has an entry (an index is sparse)."""
        return self.partition_name in item and (self.sort_name is None or self.sort_name in item)

    def entry(self, item: Item) -> Item:
        """Return the entry of an item that has one."""
        if self.projected is None:
            return item
        return {name: item[name] for name in self.projected if name in item}


class Table:
    """A table's settings turned into what the hot path needs, its resources, and what it remembers."""

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
        self.arm = IndexTarget(resource, None)
        self.indexes = {
            index.name: Index(index, settings, indexes.get(index.name, resource))
            for index in settings.indexes
        }
        self.remembered = ImageCache(limits.remembered_items)
        self._global = [index for index in self.indexes.values() if not index.local]
        self._simple = len(self._global) == len(self.indexes)
        self._boost = limits.eventual_boost

    def resources(self) -> Iterator[Resource]:
        """Yield the table's own resource and its global indexes'."""
        yield self.resource
        yield from self.index_resources()

    def index_resources(self) -> Iterator[Resource]:
        """Yield the global indexes' resources."""
        return (index.resource for index in self._global)

    def identity(self, item: Item) -> tuple[str, Any]:
        """Return an item's key: text of the partition key, comparable sort key or None."""
        sort = None if self.sort_name is None else comparable(item[self.sort_name])
        return key_text(item[self.partition_name]), sort

    def put(self, item: Item, factor: float = 1.0) -> Work:
        """Return the charges of putting an item; `factor` 2 in transactions. See `puts`."""
        if factor == 1.0:
            return self.puts((item,))[0]
        return self.write(self.remembered.get(self.identity(item)) or None, item, factor)

    def puts(self, items: Iterable[Item]) -> list[Work]:
        """Return the charges of putting items, 1.5 to 2 µs each: the hot path of batches.

        What a put replaces is taken from memory, and taken to be absent where memory has nothing.
        """
        works: list[Work] = []
        arm, name, sort_name = self.arm, self.partition_name, self.sort_name
        known, indexes, simple = self.remembered.get, self._global, self._simple
        partitions = self.resource.partitions
        cached = partitions.cache.get
        sort = None
        for item in items:
            value = item[name]
            key = value["S"] if "S" in value else key_text(value)
            if sort_name is not None:
                value = item[sort_name]
                sort = value["S"] if "S" in value else comparable(value)
            old = known((key, sort))
            if old or not simple:
                works.append(self.write(old or None, item))
                continue
            size = item_bytes(item)
            units = 1.0 if size <= _SMALL else write_units(size)
            work: list[Charge] = [
                (arm, cached(key) or partitions.find(key, sort), units, key, sort, size)
            ]
            for index in indexes:  # a comprehension costs 4 µs a batch more
                if index.partition_name in item and index.holds(item):
                    work.append(self._appears(index, item, size, sort))  # noqa: PERF401
            works.append(work)
        return works

    def write(self, old: Item | None, new: Item | None, factor: float = 1.0) -> Work:
        """Return the charges of a write from `old` to `new` (None: absent); `factor` 2 in transactions.

        A write of nothing over nothing (a delete) costs one unit; its key must then be in neither: use
        `touch`.
        """
        item = new if new is not None else old
        if item is None:
            raise ValueError("a write needs an item")
        before = 0 if old is None else item_bytes(old)
        after = 0 if new is None else item_bytes(new)
        key, sort = self.identity(item)
        partition = self.resource.partitions.find(key, sort)
        units = write_units(before, after) * factor
        charges: list[Charge] = [(self.arm, partition, units, key, sort, after - before)]
        for index in self.indexes.values():
            charges.extend(self._index_charges(index, old, new, partition))
        return tuple(charges)

    def touch(self, key: Item, size: int = 0, factor: float = 1.0) -> Work:
        """Return the charge of a write that changes nothing: a condition, or a delete of what isn't there."""
        text, sort = self.identity(key)
        partition = self.resource.partitions.find(text, sort)
        return ((self.arm, partition, write_units(size) * factor, text, sort, 0.0),)

    def read(
        self, where: tuple[str, Any], size: int, consistency: float, index: Index | None = None
    ) -> Work:
        """Return the charge of reading `size` bytes at a key of the table or of an index."""
        arm = self.arm if index is None else index.arm
        key, sort = where
        units = read_units(size, consistency)
        tokens = self.read_tokens(units, consistency)
        return ((arm, arm.resource.partitions.find(key, sort), units, key, sort, tokens),)

    def read_tokens(self, units: float, consistency: float) -> float:
        """Return what a read takes of its partition's bucket: less than its units where any replica serves it."""
        return units / self._boost if consistency == EVENTUAL else units

    def _appears(self, index: Index, item: Item, size: int, sort: Any) -> Charge:
        if index.projected is not None:
            size = attributes_bytes(item, index.projected)
        value = item[index.partition_name]
        key = value["S"] if "S" in value else key_text(value)
        if index.sort_name != self.sort_name:
            sort = None if index.sort_name is None else comparable(item[index.sort_name])
        partition = index.partitions.cache.get(key) or index.partitions.find(key, sort)
        units = 1.0 if size <= _SMALL else write_units(size)
        return (index.arm, partition, units, key, sort, size)

    def _index_charges(
        self, index: Index, old: Item | None, new: Item | None, home: Partition
    ) -> Iterator[Charge]:
        before = index.entry(old) if old is not None and index.holds(old) else None
        after = index.entry(new) if new is not None and index.holds(new) else None
        if before == after:
            return
        sizes = [None if entry is None else item_bytes(entry) for entry in (before, after)]
        if before and after and _place(index, before) != _place(index, after):
            yield self._half(index, before, sizes[0], home, -1)
            yield self._half(index, after, sizes[1], home, 1)
            return
        entry = after if after is not None else before
        key, sort = _place(index, entry or {})
        units = index_write_units(sizes[0], sizes[1], moved=False)
        partition = home if index.local else index.resource.partitions.find(key, sort)
        yield (index.arm, partition, units, key, sort, (sizes[1] or 0) - (sizes[0] or 0))

    def _half(
        self, index: Index, entry: Item, size: int | None, home: Partition, sign: int
    ) -> Charge:
        key, sort = _place(index, entry)
        partition = home if index.local else index.resource.partitions.find(key, sort)
        return (index.arm, partition, write_units(size or 0), key, sort, sign * (size or 0))


def _place(index: Index, entry: Item) -> tuple[str, Any]:
    value = entry[index.partition_name]
    key = value.get("S") or key_text(value)
    if index.sort_name is None:
        return key, None
    value = entry[index.sort_name]
    return key, value.get("S") or comparable(value)
