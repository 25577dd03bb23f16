"""The event: what is written, what is read, and the bounds that both keep."""

from datetime import datetime
from typing import Annotated, Any, Final

from msgspec import Meta, Struct

__all__ = ["MAX_ID_BYTES", "MAX_ITEM_BYTES", "MAX_SERIES_BYTES", "MAX_SHARDING_KEY_BYTES", "Event"]

MAX_SERIES_BYTES: Final = 1_024
MAX_ID_BYTES: Final = 128
MAX_SHARDING_KEY_BYTES: Final = 512
MAX_ITEM_BYTES: Final = 400 * 1_024  # DynamoDB's limit, attribute names included


class Event(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """An immutable record of a series. Bounds are checked when it is written, not here.

    Series, time, sharding key and id identify an event: writing the same four again is the same event.

    Attributes:
        series: the logical, unsharded partition key, 1 to 1,024 bytes of UTF-8.
        time: when it happened; aware, stored in UTC with microseconds.
        payload: a JSON object.
        id: 1 to 128 bytes without `#`; made (UUIDv7) where it is None.
        sharding_key: 1 to 512 bytes; events that share one share a shard, and can be read by it.
    """

    series: Annotated[
        str,
        Meta(
            description="The logical partition key, 1 to 1,024 bytes of UTF-8",
            examples=["SENSOR_READING"],
        ),
    ]
    time: Annotated[
        datetime,
        Meta(
            description="When it happened: RFC 3339 with zone, at most microseconds",
            examples=["2001-01-01T00:01:00Z"],
        ),
    ]
    payload: Annotated[dict[str, Any], Meta(description="A JSON object", examples=[{"delay": 33}])]
    id: Annotated[
        str | None,
        Meta(description="1 to 128 bytes without #; made by the service where it is left out"),
    ] = None
    sharding_key: Annotated[
        str | None,
        Meta(description="1 to 512 bytes; events that share one share a shard"),
    ] = None
