"""Where an aggregate goes on: a row's number, and what is known already of it and of those before."""

import json

import msgspec
from msgspec import Struct

from spillway.aggregates.fills import Neighbour
from spillway.aggregates.grid import Grid
from spillway.aggregates.tally import Tally
from spillway.errors import InvalidInputError
from spillway.reading.cursor import decode_cursor, encode_cursor

__all__ = ["Progress", "decode_progress", "encode_progress"]


class Progress(Struct, frozen=True, kw_only=True):
    """What a page leaves to the next one.

    Attributes:
        row: the first interval that was not given out.
        before: the last one before with numbers, where intervals are filled from it.
        after: the position that the page has reached within that interval.
        tally: what the events up to there come to; None where there were none.
    """

    row: int
    before: Neighbour | None = None
    after: str | None = None
    tally: Tally | None = None


def encode_progress(progress: Progress, binding: str) -> str:
    """Return an opaque text of some hundred bytes for a progress; `binding` names the query it belongs to."""
    # Not msgspec's own JSON: integers may have more than 64 bits.
    return encode_cursor(json.dumps(msgspec.to_builtins(progress)), binding)


def decode_progress(cursor: str | None, binding: str, grid: Grid) -> Progress:
    """Return the progress of a cursor, without one the beginning; InvalidInputError where it is another query's."""
    if cursor is None:
        return Progress(row=grid.first)
    try:
        progress = msgspec.convert(json.loads(decode_cursor(cursor, binding)), Progress)
    except (InvalidInputError, ValueError) as error:
        reason = "is damaged, or belongs to another query: all but limit, consistent, read and max_rcu must stay the same"
        raise InvalidInputError("invalid_cursor", "cursor", reason) from error
    return progress
