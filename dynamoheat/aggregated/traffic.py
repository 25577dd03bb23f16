"""Traffic: what is written or read, without its rate."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from dynamoheat.aggregated.key_distribution import KeyDistribution
from dynamoheat.sizes import EVENTUAL, READ_UNIT_BYTES, WRITE_UNIT_BYTES, read_units, write_units

__all__ = ["IndexEntries", "Reads", "Traffic", "Writes"]


@dataclass(frozen=True, slots=True, eq=False)
class Traffic:
    """Writes or reads. Make one object and offer it in each step: identity tells traffic apart."""

    table: str
    keys: KeyDistribution
    is_retried: bool = field(default=False, kw_only=True)
    """Whether throttled units are retried in the next step; otherwise they are lost."""

    @property
    def item_units(self) -> float:
        """The units of one item or request."""
        raise NotImplementedError


@dataclass(frozen=True, slots=True, eq=False)
class IndexEntries:
    """The entries that writes leave in a global index.

    Their keys are drawn independently of item keys.

    If the two are related, as shards of table and index are, make one `Writes` for each shard.
    """

    keys: KeyDistribution
    entry_bytes: int | None = None
    """Size of an entry; None: the item's size."""


@dataclass(frozen=True, slots=True, eq=False)
class Writes(Traffic):
    """Writes to a table, offered in write units of the table a second."""

    indexes: Mapping[str, IndexEntries] = field(default_factory=dict)
    """Entries by the name of a global index. Other indexes get none."""
    item_bytes: int = field(default=WRITE_UNIT_BYTES, kw_only=True)
    """Size of an item, which decides its units."""
    adds_items: bool = field(default=True, kw_only=True)
    """Whether items are new, so that partitions grow and split for size."""

    @property
    def item_units(self) -> float:
        """The table's write units of an item."""
        return write_units(self.item_bytes)

    @property
    def bytes_per_unit(self) -> float:
        """Bytes by which a unit makes the table grow."""
        return self.item_bytes / self.item_units if self.adds_items else 0.0

    def entry_units(self, entries: IndexEntries) -> float:
        """Return the units of an index entry for each unit of the table."""
        return write_units(self._entry_bytes(entries)) / self.item_units

    def entry_bytes_per_unit(self, entries: IndexEntries) -> float:
        """Return the bytes of an index entry for each of its units."""
        size = self._entry_bytes(entries)
        return size / write_units(size) if self.adds_items else 0.0

    def _entry_bytes(self, entries: IndexEntries) -> int:
        return self.item_bytes if entries.entry_bytes is None else entries.entry_bytes


@dataclass(frozen=True, slots=True, eq=False)
class Reads(Traffic):
    """Reads of a table or an index, offered in read units a second."""

    index: str | None = None
    """A global or local index; `keys` are then the index's."""
    consistency: float = field(default=EVENTUAL, kw_only=True)
    """EVENTUAL, STRONG or TRANSACTIONAL of `dynamoheat.sizes`."""
    item_bytes: int = field(default=READ_UNIT_BYTES, kw_only=True)
    """Size of what one request reads, which decides its units."""

    @property
    def item_units(self) -> float:
        """The read units of a request."""
        return read_units(self.item_bytes, self.consistency)
