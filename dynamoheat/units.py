"""Capacity units from sizes in bytes: the arithmetic alone, no state.

Rules: developer guide, read-write-operations and GSI. What an index write costs was measured against
DynamoDB on 2026-08-12/13 by the dynoxide project (its issues 176 and 178, pull requests 177 and 188): an
entry changed in place is charged once on its larger image, a moved one twice, each half on its own
image, and a transaction doubles what the table consumes but not what its indexes do.
"""

from typing import Final

__all__ = ["EVENTUAL", "STRONG", "TRANSACTIONAL", "index_write_units", "read_units", "write_units"]

EVENTUAL: Final = 0.5
STRONG: Final = 1.0
TRANSACTIONAL: Final = 2.0


def read_units(size: int, consistency: float) -> float:
    """Return the units of reading `size` bytes: an item, or a whole page of a query or scan.

    Nothing found costs as much as the least item. `consistency` is EVENTUAL, STRONG or TRANSACTIONAL.
    """
    return (-(-size // 4096) or 1) * consistency


def write_units(before: int, after: int = 0) -> float:
    """Return the units of writing an item: the larger of its sizes before and after (0: absent)."""
    return float(-(-(max(after, before)) // 1024) or 1)


def index_write_units(before: int | None, after: int | None, *, moved: bool) -> float:
    """Return the units of an index entry that changes: it appears, disappears, moves or changes in place.

    Sizes are the entry's own, None where the item is not in the index. An entry that a write leaves as
    it was costs nothing: don't ask.
    """
    if before is None or after is None:
        return 0.0 if before is after else write_units(before or 0, after or 0)
    return write_units(before) + write_units(after) if moved else write_units(before, after)
