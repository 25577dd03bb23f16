"""Validate events and encode what is stored of them."""

import json
import math
from datetime import timedelta
from typing import Any, Final

import msgspec
import orjson
from msgspec import Struct

from spillway import keys
from spillway.errors import InvalidInputError
from spillway.event import (
    MAX_ITEM_BYTES,
    WRITE_UNIT_BYTES,
    Event,
    check_id,
    check_series,
    check_sharding_key,
)
from spillway.keys import sort_key
from spillway.settings import Settings
from spillway.sharding import routing_hash
from spillway.timestamps import format_epoch, format_time, to_epoch

__all__ = ["EventValidator", "PreparedEvent", "canonical", "encode_payload"]


_STRICT: Final = orjson.OPT_PASSTHROUGH_DATETIME | orjson.OPT_PASSTHROUGH_DATACLASS
_MAX_LEVELS: Final = 254  # orjson's limit; readers in other languages have limits too


def encode_payload(payload: Any) -> bytes:
    """Return a payload as JSON bytes.

    InvalidInputError where it is no object or JSON can't hold it.

    JSON has no NaN and no infinity; levels of nesting are limited to 254.
    """
    if not isinstance(payload, dict):
        raise _invalid("must be a JSON object")
    try:
        encoded = orjson.dumps(payload, option=_STRICT)
    except TypeError as error:
        encoded = _encode_wide(payload, str(error))
    # orjson writes NaN and infinity as null, so only a null makes the walk worth its time.
    if b"null" in encoded and _has_non_finite(payload):
        raise _invalid("must not hold NaN or an infinity: JSON has neither")
    return encoded


def _encode_wide(payload: dict[str, Any], reason: str) -> bytes:
    """Encode what orjson refuses and JSON can hold: integers beyond 64 bits."""
    if "64-bit" not in reason:
        raise _invalid(_explain(reason))
    _check_shape(payload)
    try:
        text = json.dumps(payload, allow_nan=False, ensure_ascii=False, separators=(",", ":"))
        return text.encode()
    except (TypeError, ValueError) as error:
        raise _invalid(_explain(str(error))) from error


def _check_shape(payload: dict[str, Any]) -> None:
    """Refuse what `json` takes and orjson does not.

    Deeper levels, and keys that would become text.
    """
    stack: list[tuple[Any, int]] = [(payload, 1)]
    while stack:
        value, level = stack.pop()
        if level > _MAX_LEVELS and isinstance(value, dict | list | tuple):
            raise _invalid(_explain("recursion"))
        if isinstance(value, dict):
            if not all(isinstance(key, str) for key in value):
                raise _invalid(_explain("keys must be text"))
            stack.extend((each, level + 1) for each in value.values())
        elif isinstance(value, list | tuple):
            stack.extend((each, level + 1) for each in value)


def _explain(reason: str) -> str:
    lowered = reason.lower()
    if "recursion" in lowered:
        return f"is nested too deeply: {_MAX_LEVELS} levels at most"
    if "surrogate" in lowered or "utf-8" in lowered:
        return "holds text that is not valid Unicode (a lone surrogate)"
    return f"can't be written as JSON: {reason}"


def _has_non_finite(payload: dict[str, Any]) -> bool:
    stack: list[Any] = [payload]
    while stack:
        value = stack.pop()
        if isinstance(value, dict):
            stack.extend(value.values())
        elif isinstance(value, list | tuple):
            stack.extend(value)
        elif isinstance(value, float) and not math.isfinite(value):
            return True
    return False


def canonical(text: str) -> bytes:
    """Return payload text with its keys sorted, so that equal objects are equal bytes."""
    return msgspec.json.encode(msgspec.json.decode(text), order="sorted")


def _invalid(reason: str) -> InvalidInputError:
    return InvalidInputError("invalid_event", "payload", reason)


# Names of the attributes, the index's partition key and `expires` at their longest.
_ITEM_OVERHEAD: Final = (
    sum(
        len(name)
        for name in (
            keys.PARTITION_KEY,
            keys.SORT_KEY,
            keys.PAYLOAD,
            keys.EXPIRES,
            keys.INDEX_PARTITION_KEY,
        )
    )
    + len("#255")
    + len("#2001-01-01T00:01#255")
    + 6  # a number of ten digits
)


class PreparedEvent(Struct, frozen=True, eq=False):
    """One distinct event in stored form. Immutable: what attempts came to stands in `PendingEvent`.

    Attributes:
        routing: its 64-bit hash, which any shard count turns into a shard.
        payload: JSON text.
        expires: epoch seconds at which it expires; None where it does not.
    """

    series: str
    time: str
    sharding_key: str | None
    sort_key: str
    routing: int
    payload: str
    expires: int | None

    @property
    def stored_bytes(self) -> int:
        """The size of the item at its largest; the series is in both partition keys."""
        names = 2 * len(self.series.encode()) + len(self.sort_key.encode())
        return _ITEM_OVERHEAD + names + len(self.payload.encode())

    @property
    def write_units(self) -> int:
        """Write units that storing it costs in the table: one for each started KB."""
        return -(-self.stored_bytes // WRITE_UNIT_BYTES)


class EventValidator:
    """The checks of one write: its bounds of time are fixed when it is made."""

    def __init__(self, settings: Settings, now: float) -> None:
        self._settings = settings
        self._latest = format_epoch(now + settings.future_skew)
        self._earliest, self._too_late = _earliest(settings, now)

    def prepare(self, event: Event, event_id: str) -> PreparedEvent:
        """Check an event and return it in stored form; `event_id` stands for `event.id`.

        InvalidInputError names the field. Its codes are `invalid_event`, `in_future`, `too_late`
        and `item_too_large`.
        """
        series, sharding_key = event.series, event.sharding_key
        check_series(series, "invalid_event")
        check_id(event_id, "invalid_event")
        check_sharding_key(sharding_key, "invalid_event")
        time = self._check_time(event)
        stored = sort_key(time, sharding_key, event_id)
        # A sharding key leaves the id out of the hash.
        routing = routing_hash(series, stored if sharding_key is None else sharding_key)
        payload = encode_payload(event.payload)
        prepared = PreparedEvent(
            series,
            time,
            sharding_key,
            stored,
            routing,
            payload.decode(),
            self._expires(time),
        )
        if len(payload) > MAX_ITEM_BYTES - 8_000:
            _check_size(prepared)
        return prepared

    def _check_time(self, event: Event) -> str:
        try:
            time = format_time(event.time)
        except (ValueError, AttributeError) as error:
            reason = str(error) if isinstance(error, ValueError) else "must be a datetime"
            raise InvalidInputError("invalid_event", "time", reason) from error
        if time > self._latest:
            skew = timedelta(seconds=self._settings.future_skew)
            raise InvalidInputError(
                "in_future", "time", f"lies more than {skew} ahead of the service's clock"
            )
        if time < self._earliest:
            raise InvalidInputError("too_late", "time", self._too_late)
        return time

    def _expires(self, time: str) -> int | None:
        retention = self._settings.retention
        return None if retention is None else int(to_epoch(time) + retention.total_seconds()) + 1


def _earliest(settings: Settings, now: float) -> tuple[str, str]:
    """Return the earliest time that is taken, and what to say of an earlier one."""
    limits = []
    if settings.late_limit is not None:
        late = settings.late_limit
        limits.append((now - late.total_seconds(), f"lies more than {late} back (late limit)"))
    if settings.retention is not None:
        kept = settings.retention
        limits.append((now - kept.total_seconds(), f"lies before the retention of {kept}"))
    if not limits:
        return "", ""
    seconds, reason = max(limits)
    return format_epoch(seconds), reason


def _check_size(prepared: PreparedEvent) -> None:
    size = prepared.stored_bytes
    if size > MAX_ITEM_BYTES:
        reason = f"makes an item of {size:,} bytes; DynamoDB takes {MAX_ITEM_BYTES:,}"
        raise InvalidInputError("item_too_large", "payload", reason)
