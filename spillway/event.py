"""The event: what is written, what is read, and the bounds that both keep."""

from datetime import datetime
from typing import Any, Final

from msgspec import Struct

__all__ = [
    "MAX_ID_BYTES",
    "MAX_ITEM_BYTES",
    "MAX_SERIES_BYTES",
    "MAX_SHARDING_KEY_BYTES",
    "WRITE_UNIT_BYTES",
    "Event",
]

MAX_SERIES_BYTES: Final = 1_024
MAX_ID_BYTES: Final = 128
MAX_SHARDING_KEY_BYTES: Final = 512
MAX_ITEM_BYTES: Final = 400 * 1_024  # DynamoDB's limit, attribute names included
WRITE_UNIT_BYTES: Final = 1_024  # of an item that each started write unit pays for


class Event(Struct, frozen=True, kw_only=True):
    """An immutable record of a series. Bounds are checked when it is written, not here.

    Series, time, sharding key and id identify an event: writing the same four again is the same event.

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
