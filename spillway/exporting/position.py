"""Where an export is, and the cursors that say so.

An export walks over blocks of consecutive shards, and through each block in order of time. So one sort key and the
block say what has been given out, however many shards there are and whatever becomes of the layout.
"""

import re
from enum import StrEnum
from typing import Final, NamedTuple

from spillway.reading.cursor import decode_cursor, encode_cursor, invalid_cursor, is_position
from spillway.reading.query import ReadQuery
from spillway.sharding import MAX_SHARDS

__all__ = ["MAX_POOL", "ExportMode", "Position", "Positions", "block_width"]

MAX_POOL: Final = 8  # as many requests as a store sends at the same time
_POSITION: Final = re.compile(r"(\d{1,3}):(\d{1,3}):(\d{1,10}):(.*)", re.ASCII | re.DOTALL)
_SAME: Final = "series, from, to and mode"


class ExportMode(StrEnum):
    """In which order an export reads the shards."""

    SHARDS = "shards"  # one after the other
    BLOCKS = "blocks"  # some at the same time, then the next ones
    ROUND_ROBIN = "round_robin"  # a page of each in turn


def block_width(mode: ExportMode, pool: int) -> int:
    """Return how many shards are walked through together."""
    return {ExportMode.SHARDS: 1, ExportMode.BLOCKS: pool, ExportMode.ROUND_ROBIN: MAX_SHARDS}[mode]


class Position(NamedTuple):
    """A point of an export: blocks of lower shards are done, and this block up to and with the sort key `after`.

    `after` may be a time alone, which sorts before its events, or empty where the block has not been begun.
    `started_at` is when the export began, in epoch seconds.
    """

    first: int
    width: int
    after: str = ""
    started_at: int = 0

    @property
    def end(self) -> int:
        """The first shard behind the block."""
        return self.first + self.width


class Positions:
    """Positions as cursors, bound to the series and range of an export and to its mode."""

    def __init__(self, query: ReadQuery, mode: ExportMode) -> None:
        self.series = query.series
        self._query = query
        self._binding = repr(("export", query.series, query.start, query.end, mode.value))

    def encode(self, position: Position) -> str:
        """Return an opaque text of at most 930 characters."""
        first, width, after, started_at = position
        return encode_cursor(f"{first}:{width}:{started_at}:{after}", self._binding)

    def decode(self, cursor: str) -> Position:
        """Return the position of a cursor; InvalidInputError where it is none of the export's."""
        match = _POSITION.fullmatch(decode_cursor(cursor, self._binding, _SAME))
        if match is None:
            raise invalid_cursor(_SAME)
        first, width, started_at, after = match.groups()
        position = Position(int(first), int(width), after, int(started_at))
        if not self._is_possible(position):
            raise invalid_cursor(_SAME)
        return position

    def _is_possible(self, position: Position) -> bool:
        after = position.after
        is_in_range = self._query.start <= after < self._query.end and is_position(after)
        return (
            position.first <= MAX_SHARDS
            and 1 <= position.width <= MAX_SHARDS
            and (not after or is_in_range)
        )
