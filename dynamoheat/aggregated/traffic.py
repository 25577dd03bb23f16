"""Traffic: what is written or read, apart from how much of it."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from dynamoheat.aggregated.keys import Keys
from dynamoheat.units import EVENTUAL, read_units, write_units

__all__ = ["Entries", "Reads", "Traffic", "Writes"]


@dataclass(frozen=True, slots=True, eq=False)
class Traffic:
    """Writes or reads. Make them once and offer them at each step: they are told apart by identity."""

    table: str
    keys: Keys
    retried: bool = field(default=False, kw_only=True)
    """Whether what is throttled comes again with the next step; otherwise it is lost."""

    @property
    def item_units(self) -> float:
        """The units of one item or request."""
        raise NotImplementedError


@dataclass(frozen=True, slots=True, eq=False)
class Entries:
    """What a write leaves in a global index. An entry's key is drawn apart from the key of its item.

    Where the two hang together, as shards of table and index do, make one `Writes` for each shard.
    """

    keys: Keys
    entry_bytes: int | None = None
    """Size of an entry; None: as large as the item."""


@dataclass(frozen=True, slots=True, eq=False)
class Writes(Traffic):
    """Writes to a table, offered in write units of the table a second."""

    indexes: Mapping[str, Entries] = field(default_factory=dict)
    """Entries by the name of a global index; an index that is not named gets none."""
    item_bytes: int = field(default=1024, kw_only=True)
    """Size of an item, which says how many units it is."""
    grows: bool = field(default=True, kw_only=True)
    """Whether items are new, so that partitions grow and split for size."""

    @property
    def item_units(self) -> float:
        """The table's write units of an item."""
        return write_units(self.item_bytes)

    @property
    def growth(self) -> float:
        """The bytes by which a unit makes the table grow."""
        return self.item_bytes / self.item_units if self.grows else 0.0

    def entry_units(self, entries: Entries) -> float:
        """Return the units of an index entry for each unit of the table."""
        return write_units(self._entry_bytes(entries)) / self.item_units

    def entry_growth(self, entries: Entries) -> float:
        """Return the bytes of an index entry for each of its units."""
        size = self._entry_bytes(entries)
        return size / write_units(size) if self.grows else 0.0

    def _entry_bytes(self, entries: Entries) -> int:
        return self.item_bytes if entries.entry_bytes is None else entries.entry_bytes


@dataclass(frozen=True, slots=True, eq=False)
class Reads(Traffic):
    """Reads of a table or an index, offered in read units a second."""

    index: str | None = None
    """A global or local index; `keys` are then the index's."""
    consistency: float = field(default=EVENTUAL, kw_only=True)
    """EVENTUAL, STRONG or TRANSACTIONAL, of `dynamoheat.units`."""
    item_bytes: int = field(default=4096, kw_only=True)
    """Size of what one request reads, which says how many units it is."""

    @property
    def item_units(self) -> float:
        """The read units of a request."""
        return read_units(self.item_bytes, self.consistency)
