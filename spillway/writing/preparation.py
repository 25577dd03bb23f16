"""From an event to what is stored of it, or to the reason why it can't be."""

from datetime import timedelta

from spillway.errors import InvalidInputError
from spillway.event import (
    MAX_ID_BYTES,
    MAX_ITEM_BYTES,
    MAX_SERIES_BYTES,
    MAX_SHARDING_KEY_BYTES,
    Event,
)
from spillway.keys import sort_key
from spillway.settings import Settings
from spillway.sharding import routing_hash
from spillway.timestamps import format_epoch, format_time, to_epoch
from spillway.writing.payload import encode_payload
from spillway.writing.prepared import PreparedEvent

__all__ = ["Admission"]


class Admission:
    """The checks of one write: its bounds of time are fixed when it is made."""

    def __init__(self, settings: Settings, now: float) -> None:
        self._settings = settings
        self._latest = format_epoch(now + settings.future_skew)
        self._earliest, self._too_late = _earliest(settings, now)

    def prepare(self, index: int, event: Event, event_id: str) -> PreparedEvent:
        """Check an event, whose id is given apart, and return what is stored of it.

        InvalidInputError names the field; codes `invalid_event`, `in_future`, `too_late`, `item_too_large`.
        """
        series, sharding_key = event.series, event.sharding_key
        _check_text("series", series, MAX_SERIES_BYTES)
        _check_text("id", event_id, MAX_ID_BYTES)
        if "#" in event_id:
            raise InvalidInputError("invalid_event", "id", "must not contain #")
        if sharding_key is not None:
            _check_text("sharding_key", sharding_key, MAX_SHARDING_KEY_BYTES)
        time = self._check_time(event)
        stored = sort_key(time, sharding_key, event_id)
        try:
            # Hashing also finds what can't be encoded; a sharding key leaves the id out of the hash.
            routing = routing_hash(series, stored if sharding_key is None else sharding_key)
            if sharding_key is not None:
                event_id.encode()
        except UnicodeEncodeError as error:
            reason = "series, id and sharding_key must be valid Unicode (a lone surrogate)"
            raise InvalidInputError("invalid_event", "", reason) from error
        payload = encode_payload(event.payload)
        prepared = PreparedEvent(
            [index],
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


def _check_text(field: str, value: object, most: int) -> None:
    if not isinstance(value, str):
        raise InvalidInputError("invalid_event", field, "must be text")
    if not value:
        raise InvalidInputError("invalid_event", field, "must not be empty")
    if len(value) * 4 > most and _utf8_length(value) > most:
        raise InvalidInputError("invalid_event", field, f"must be at most {most:,} bytes of UTF-8")


def _utf8_length(text: str) -> int:
    return len(text.encode(errors="surrogatepass"))


def _check_size(prepared: PreparedEvent) -> None:
    size = prepared.stored_bytes
    if size > MAX_ITEM_BYTES:
        reason = f"makes an item of {size:,} bytes; DynamoDB takes {MAX_ITEM_BYTES:,}"
        raise InvalidInputError("item_too_large", "payload", reason)
