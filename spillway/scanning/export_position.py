"""Positions of an export, and the cursors that carry them."""

import re
from enum import StrEnum
from typing import Final, NamedTuple

from spillway.scanning.cursor import decode_cursor, encode_cursor, invalid_cursor, is_position
from spillway.scanning.query import ReadQuery
from spillway.sharding import MAX_SHARDS

__all__ = ["MAX_POOL", "ExportCursors", "ExportMode", "ExportPosition", "block_width"]

MAX_POOL: Final = 8  # as many requests as a store sends at the same time


class ExportMode(StrEnum):
    """The order in which an export reads the shards."""

    SHARDS = "shards"  # one after the other
    BLOCKS = "blocks"  # some at the same time, then the next ones
    ROUND_ROBIN = "round_robin"  # a page of each in turn


def block_width(mode: ExportMode, pool: int) -> int:
    """Return how many shards are merged into one order."""
    return {ExportMode.SHARDS: 1, ExportMode.BLOCKS: pool, ExportMode.ROUND_ROBIN: MAX_SHARDS}[mode]


class ExportPosition(NamedTuple):
    """A point of an export, which reads one block of shards after the other.

    Attributes:
        first: the first shard of the block; all lower shards are done.
        width: number of shards in the block.
        after: the sort key up to which the block is done, inclusive. It may be a time alone, which
            sorts before the events of that time, or empty at the beginning of the block.
        started_at: when the export began, in epoch seconds.
    """

    first: int
    width: int
    after: str = ""
    started_at: int = 0

    @property
    def end(self) -> int:
        """The first shard after the block."""
        return self.first + self.width


_POSITION: Final = re.compile(r"(\d{1,3}):(\d{1,3}):(\d{1,10}):(.*)", re.ASCII | re.DOTALL)
_SAME: Final = "series, start, end and mode"


class ExportCursors:
    """Encodes positions as cursors, bound to the series, range and mode of an export."""

    def __init__(self, query: ReadQuery, mode: ExportMode) -> None:
        self.series = query.series
        self._query = query
        self._binding = repr(("export", query.series, query.start, query.end, mode.value))

    def encode(self, position: ExportPosition) -> str:
        """Return an opaque text of at most 930 characters."""
        first, width, after, started_at = position
        return encode_cursor(f"{first}:{width}:{started_at}:{after}", self._binding)

    def decode(self, cursor: str) -> ExportPosition:
        """Return the position of a cursor; InvalidInputError if it is not of this export."""
        match = _POSITION.fullmatch(decode_cursor(cursor, self._binding, _SAME))
        if match is None:
            raise invalid_cursor(_SAME)
        first, width, started_at, after = match.groups()
        position = ExportPosition(int(first), int(width), after, int(started_at))
        if not self._is_possible(position):
            raise invalid_cursor(_SAME)
        return position

    def _is_possible(self, position: ExportPosition) -> bool:
        after = position.after
        is_in_range = self._query.start <= after < self._query.end and is_position(after)
        return (
            position.first <= MAX_SHARDS
            and 1 <= position.width <= MAX_SHARDS
            and (not after or is_in_range)
        )
