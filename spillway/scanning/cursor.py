"""Cursors: the sort key after which a read goes on, bound to its query.

A cursor holds no per-shard positions, so it stays valid across any change of layout and between table and index.
"""

import base64
import binascii
from typing import Final

import xxhash

from spillway.errors import InvalidInputError

__all__ = ["decode_cursor", "encode_cursor"]

_CHECK_BYTES: Final = 8


def encode_cursor(sort_key: str, binding: str) -> str:
    """Return an opaque text for the last sort key seen; `binding` names the query it belongs to."""
    stored = sort_key.encode()
    return base64.urlsafe_b64encode(_check(stored, binding) + stored).rstrip(b"=").decode()


def decode_cursor(cursor: str, binding: str) -> str:
    """Return the sort key of a cursor; InvalidInputError where it is damaged or another query's."""
    try:
        raw = base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True)
        check, stored = raw[:_CHECK_BYTES], raw[_CHECK_BYTES:]
        if check == _check(stored, binding):
            return stored.decode()
    except (binascii.Error, ValueError):
        pass
    reason = "is damaged, or belongs to another query: series, from, to, order and sharding_key must stay the same"
    raise InvalidInputError("invalid_cursor", "cursor", reason)


def _check(stored: bytes, binding: str) -> bytes:
    return xxhash.xxh64_digest(stored + b"\0" + binding.encode())
