"""Reads the parameters of CloudWatch's requests, whichever protocol they came by."""

import math
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from local.cloudwatch.errors import invalid, missing

__all__ = ["Parameters", "entries", "instant", "integer", "number", "period", "text"]

Parameters = Mapping[str, Any]


def text(asked: Parameters, name: str) -> str:
    """Return a text that must be there and not be empty."""
    value = asked.get(name)
    if value is None or value == "":
        raise missing(name)
    if not isinstance(value, str):
        raise invalid(f"The parameter {name} must be a string.")
    return value


def number(asked: Parameters, name: str, otherwise: float | None = None) -> float:
    """Return a finite number; `otherwise` where it is not given."""
    value = asked.get(name)
    if value is None and otherwise is not None:
        return otherwise
    if value is None:
        raise missing(name)
    try:
        found = float(value)
    except (TypeError, ValueError) as error:
        raise invalid(f"The parameter {name} must be a number.") from error
    if not math.isfinite(found):
        raise invalid(f"The parameter {name} must be a finite number.")
    return found


def integer(asked: Parameters, name: str, otherwise: int | None = None) -> int:
    """Return a whole number."""
    found = number(asked, name, None if otherwise is None else float(otherwise))
    if found != int(found):
        raise invalid(f"The parameter {name} must be an integer.")
    return int(found)


def period(asked: Parameters, name: str = "Period") -> int:
    """Return a period in seconds: 1, 5, 10, 20, 30 or a multiple of 60."""
    found = integer(asked, name)
    if found not in (1, 5, 10, 20, 30) and (found < 60 or found % 60):
        raise invalid(f"The parameter {name} must be 1, 5, 10, 20, 30 or a multiple of 60.")
    return found


def instant(asked: Parameters, name: str, otherwise: float | None = None) -> float:
    """Return a time in seconds since the epoch, stated as such or in ISO 8601."""
    value = asked.get(name)
    if isinstance(value, str) and not value.replace(".", "", 1).isdecimal():
        try:
            found = datetime.fromisoformat(value)
        except ValueError as error:
            raise invalid(f"The parameter {name} must be a time.") from error
        return (found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp()
    return number(asked, name, otherwise)


def entries(asked: Parameters, name: str) -> list[Any]:
    """Return a list, empty where it is not given."""
    value = asked.get(name)
    if value is None:
        return []
    if not isinstance(value, list):
        raise invalid(f"The parameter {name} must be a list.")
    return value
