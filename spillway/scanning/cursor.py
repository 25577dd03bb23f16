"""Cursors: the position after which a read goes on, bound to its query.

A position is a sort key, or a time alone. A cursor holds no per-shard positions, so it stays valid
across any change of layout and between table and index. Its checksum finds damage and cursors of
other queries. It is no signature: whoever makes a cursor chooses the position. So a cursor carries
no figures, and every position is checked.
"""

import base64
import binascii
from typing import Final

import xxhash

from spillway.errors import InvalidInputError
from spillway.event import MAX_ID_BYTES, MAX_SHARDING_KEY_BYTES
from spillway.keys import TIME_WIDTH
from spillway.scanning.query import ReadQuery
from spillway.timestamps import is_stored_time

__all__ = [
    "decode_cursor",
    "decode_position",
    "encode_cursor",
    "encode_position",
    "invalid_cursor",
    "is_position",
]

_CHECK_BYTES: Final = 8
_SAME: Final = "series, start, end, order and sharding_key"
_MAX_POSITION_BYTES: Final = TIME_WIDTH + len("##") + MAX_SHARDING_KEY_BYTES + MAX_ID_BYTES
_AFTER_TIME: Final = "\U0010ffff"  # where the index's buckets begin in descending order


def encode_cursor(text: str, binding: str) -> str:
    """Return an opaque text that holds another; `binding` names the query it belongs to."""
    stored = text.encode()
    return base64.urlsafe_b64encode(_check(stored, binding) + stored).rstrip(b"=").decode()


def decode_cursor(cursor: str, binding: str, same: str = "the query") -> str:
    """Return the text of a cursor; InvalidInputError where it is damaged or another query's.

    `same` names for people what must stay the same from page to page.
    """
    try:
        raw = base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True)
        check, stored = raw[:_CHECK_BYTES], raw[_CHECK_BYTES:]
        if check == _check(stored, binding):
            return stored.decode()
    except (binascii.Error, ValueError, TypeError):
        pass
    raise invalid_cursor(same)


def invalid_cursor(same: str) -> InvalidInputError:
    """Return the error of a cursor that can't be used; `same` as in `decode_cursor`."""
    reason = f"is damaged, or belongs to another query: {same} must stay the same"
    return InvalidInputError("invalid_cursor", "cursor", reason)


def _check(stored: bytes, binding: str) -> bytes:
    return xxhash.xxh64_digest(stored + b"\0" + binding.encode())


def encode_position(position: str, query: ReadQuery) -> str:
    """Return the cursor of a read that goes on after a position."""
    # Partitions of the index may begin before the range.
    return encode_cursor(max(query.start, min(position, query.end)), query.binding)


def decode_position(cursor: str, query: ReadQuery) -> str:
    """Return the position of a cursor; InvalidInputError where it is none of the query's range."""
    position = decode_cursor(cursor, query.binding, _SAME)
    is_in_range = query.start <= position < query.end or (
        query.descending and position == query.end
    )
    if not is_in_range or not is_position(position):
        raise invalid_cursor(_SAME)
    return position


def is_position(text: str) -> bool:
    """Return whether a text is a stored time, alone or with the rest of a sort key."""
    time, rest = text[:TIME_WIDTH], text[TIME_WIDTH:]
    return (
        (rest in {"", _AFTER_TIME} or rest.startswith("#"))
        and len(text.encode()) <= _MAX_POSITION_BYTES
        and is_stored_time(time)
    )
