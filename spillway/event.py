"""The event, and the checks of its identity, which writes and reads share."""

from datetime import datetime
from typing import Any, Final

from msgspec import Struct

from spillway.errors import InvalidInputError

__all__ = [
    "MAX_ID_BYTES",
    "MAX_ITEM_BYTES",
    "MAX_SERIES_BYTES",
    "MAX_SHARDING_KEY_BYTES",
    "WRITE_UNIT_BYTES",
    "Event",
    "check_id",
    "check_series",
    "check_sharding_key",
]

MAX_SERIES_BYTES: Final = 1_024
MAX_ID_BYTES: Final = 128
MAX_SHARDING_KEY_BYTES: Final = 512
MAX_ITEM_BYTES: Final = 400 * 1_024  # DynamoDB's limit, attribute names included
WRITE_UNIT_BYTES: Final = 1_024  # of an item that each started write unit pays for


class Event(Struct, frozen=True, kw_only=True):
    """An immutable record of a series. Bounds are checked when it is written, not here.

    Series, time, sharding key and id identify an event: writing the same four again is the same
    event.

    Attributes:
        series: the logical, unsharded partition key, 1 to 1,024 bytes of UTF-8.
        time: when it happened; aware, stored in UTC with microseconds.
        payload: a JSON object.
        id: 1 to 128 bytes without `#`; made (UUIDv7) where it is None.
        sharding_key: 1 to 512 bytes; events that share one share a shard, and can be read by it.
    """

    series: str
    time: datetime
    payload: dict[str, Any]
    id: str | None = None
    sharding_key: str | None = None


def check_series(series: object, code: str) -> None:
    """Check a series name; InvalidInputError with `code` says what is wrong."""
    _check_text(code, "series", series, MAX_SERIES_BYTES)


def check_id(event_id: object, code: str) -> None:
    """Check an id; InvalidInputError with `code` says what is wrong."""
    text = _check_text(code, "id", event_id, MAX_ID_BYTES)
    if "#" in text:
        raise InvalidInputError(code, "id", "must not contain #")


def check_sharding_key(sharding_key: object, code: str) -> None:
    """Check a sharding key, where there is one.

    InvalidInputError with `code` says what is wrong.
    """
    if sharding_key is not None:
        _check_text(code, "sharding_key", sharding_key, MAX_SHARDING_KEY_BYTES)


def _check_text(code: str, field: str, value: object, max_bytes: int) -> str:
    if not isinstance(value, str):
        raise InvalidInputError(code, field, "must be text")
    if value.isascii():  # the common case, and fast: its length is its bytes
        size = len(value)
    else:
        try:
            size = len(value.encode())
        except UnicodeEncodeError as error:
            reason = "must be valid Unicode (a lone surrogate)"
            raise InvalidInputError(code, field, reason) from error
    if not 1 <= size <= max_bytes:
        raise InvalidInputError(code, field, f"must be 1 to {max_bytes:,} bytes of UTF-8")
    return value
