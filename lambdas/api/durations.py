"""Lengths of time in query parameters: `5m`, or ISO 8601's `PT5M`."""

import re
from datetime import timedelta
from typing import Final

__all__ = ["DURATION", "parse_duration"]

_UNITS: Final = {
    "ms": timedelta(milliseconds=1),
    "s": timedelta(seconds=1),
    "m": timedelta(minutes=1),
    "h": timedelta(hours=1),
    "d": timedelta(days=1),
    "w": timedelta(weeks=1),
}
_SHORT: Final = re.compile(r"(\d{1,9})(ms|s|m|h|d|w)", re.ASCII)
_ISO: Final = re.compile(
    r"P(?=.)(?:(?P<w>\d{1,9})W)?(?:(?P<d>\d{1,9})D)?"
    r"(?:T(?=.)(?:(?P<h>\d{1,9})H)?(?:(?P<m>\d{1,9})M)?(?:(?P<s>\d{1,9})S)?)?",
    re.ASCII,
)
DURATION: Final = re.sub(r"\?P<\w>", "?:", f"^({_SHORT.pattern}|{_ISO.pattern})$")
"""Lengths of time as a regular expression of JSON Schema, which has no names for groups."""


def parse_duration(text: str) -> timedelta:
    """Read a length of time above 0; ValueError says what is wrong.

    Months and years are none: they differ in length.
    """
    try:
        length = _parsed(text)
    except OverflowError:
        length = None
    if not length:
        units = ", ".join(_UNITS)
        raise ValueError(
            f"must be a whole number above 0 and one of {units}, such as 5m, or as PT5M"
        )
    return length


def _parsed(text: str) -> timedelta | None:
    short = _SHORT.fullmatch(text)
    if short is not None:
        return int(short[1]) * _UNITS[short[2]]
    iso = _ISO.fullmatch(text)
    if iso is None:
        return None
    parts = (int(count) * _UNITS[unit] for unit, count in iso.groupdict().items() if count)
    return sum(parts, timedelta(0))
