"""Event times: RFC 3339 in, 27 characters of UTC stored, so that byte order is time order."""

import re
from datetime import UTC, datetime, timedelta
from typing import Final

__all__ = [
    "format_epoch",
    "format_time",
    "is_stored_time",
    "parse_time",
    "to_datetime",
    "to_epoch",
]

_RFC3339: Final = re.compile(
    r"(\d{4}-\d\d-\d\d)[Tt ](\d\d:\d\d:\d\d)(?:\.(\d+))?([Zz]|[+-]\d\d:\d\d)", re.ASCII
)
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_LAST: Final = datetime.max.replace(tzinfo=UTC)
_FIRST: Final = datetime.min.replace(tzinfo=UTC)


def format_time(time: datetime) -> str:
    """Return an aware time as `2001-01-01T00:01:00.000000Z`.

    ValueError where it is naive or outside years 1-9999.
    """
    if time.tzinfo is not UTC:
        time = _in_utc(time)
    return time.isoformat(timespec="microseconds")[:26] + "Z"


def _in_utc(time: datetime) -> datetime:
    if time.utcoffset() is None:
        raise ValueError("must name its time zone, such as 2001-01-01T00:01:00Z")
    try:
        return time.astimezone(UTC)
    except OverflowError as error:
        raise ValueError("must lie in the years 1 to 9999, in UTC") from error


def parse_time(text: str) -> datetime:
    """Read an RFC 3339 time with zone; ValueError says what is wrong.

    More than six digits of a second are refused: dropping them would silently change the order of
    events.
    """
    match = _RFC3339.fullmatch(text)
    if match is None:
        raise ValueError("must be an RFC 3339 time with zone, such as 2001-01-01T00:01:00Z")
    date, clock, fraction, zone = match.groups()
    if fraction and len(fraction) > 6:
        raise ValueError("must have at most six digits of a second (microseconds)")
    offset = "+00:00" if zone in "Zz" else zone
    try:
        parsed = datetime.fromisoformat(f"{date}T{clock}.{(fraction or '0'):0<6}{offset}")
    except ValueError as error:
        raise ValueError(f"is not a date and time: {error}") from error
    return _in_utc(parsed)


def is_stored_time(text: str) -> bool:
    """Return whether a text is a time as it is stored."""
    try:
        return format_time(to_datetime(text)) == text
    except ValueError:
        return False


def to_datetime(text: str) -> datetime:
    """Return the aware time of a stored 27-character text."""
    return datetime.fromisoformat(text)


def to_epoch(text: str) -> float:
    """Return the epoch seconds of a stored 27-character text."""
    return (datetime.fromisoformat(text) - _EPOCH) / timedelta(seconds=1)


def format_epoch(seconds: float) -> str:
    """Return the stored text of epoch seconds, held within the years 1 to 9999."""
    try:
        return format_time(_EPOCH + timedelta(microseconds=round(seconds * 1_000_000)))
    except OverflowError:
        return format_time(_LAST if seconds > 0 else _FIRST)
