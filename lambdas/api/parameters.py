"""Query parameters, read from the raw query string: each named once, none unknown."""

import re
from collections.abc import Collection
from datetime import datetime
from typing import Any, Final, NamedTuple
from urllib.parse import parse_qsl

from aws_lambda_powertools.event_handler.api_gateway import APIGatewayHttpResolver

from lambdas.api.types import ID_BOUNDS, SERIES_BOUNDS, SHARDING_KEY_BOUNDS, TIME_FORM
from spillway import InvalidInputError
from spillway.errors import shorten
from spillway.scanning.export_position import MAX_POOL, ExportMode
from spillway.scanning.query import Order, Source
from spillway.timestamps import parse_time

__all__ = [
    "EVENT_PARAMETERS",
    "EXPORT_PARAMETERS",
    "IDENTITY_PARAMETERS",
    "LAYOUT_PARAMETERS",
    "MAX_LIMIT",
    "MAX_RCU",
    "PAGE_PARAMETERS",
    "Parameter",
    "QueryParameters",
    "raw_query",
]


class Parameter(NamedTuple):
    """A query parameter as the API describes it; `schema` is JSON Schema."""

    name: str
    description: str
    schema: dict[str, Any]
    required: bool = False


MAX_LIMIT: Final = 1_000  # events of one page over HTTP

_TEXT: Final = {"type": "string"}
_TIME: Final = {**_TEXT, **TIME_FORM}
_CURSOR: Final = {**_TEXT, "pattern": "^[A-Za-z0-9_-]+$"}  # no padding
_SERIES: Final = Parameter("series", "The series", {**_TEXT, **SERIES_BOUNDS}, required=True)
_SHARDING_KEY: Final = Parameter(
    "sharding_key", "Only events with this sharding key", {**_TEXT, **SHARDING_KEY_BOUNDS}
)
_CONSISTENT: Final = Parameter(
    "consistent",
    "Whether every write acknowledged before is seen; costs twice the read units",
    {"type": "boolean", "default": False},
)

MAX_RCU: Final = Parameter(
    "max_rcu",
    "Most read units to spend, at most three decimals; an answer that reaches them ends early, "
    "with a cursor",
    {"type": "number", "exclusiveMinimum": 0, "maximum": 999_999_999.999},
)

_FROM: Final = Parameter(
    "from", "First time that is read, RFC 3339 with zone", _TIME, required=True
)
_TO: Final = Parameter("to", "First time that is not read", _TIME, required=True)

PAGE_PARAMETERS: Final = (
    _SERIES,
    _FROM,
    _TO,
    Parameter(
        "limit",
        "Most events of the page; it may end earlier, with a cursor",
        {"type": "integer", "minimum": 1, "maximum": MAX_LIMIT, "default": 100},
    ),
    Parameter(
        "order",
        "By time, then sharding key and id",
        {"type": "string", "enum": list(Order), "default": Order.ASCENDING},
    ),
    Parameter("cursor", "Of the page before, for the same query", _CURSOR),
    _CONSISTENT,
    _SHARDING_KEY,
    Parameter(
        "read",
        "Read the table's shards or the index's time buckets; auto takes what costs least",
        {"type": "string", "enum": list(Source), "default": Source.AUTO},
    ),
    MAX_RCU,
    Parameter(
        "explain",
        "Whether the answer tells its plan, what it was expected to cost, and what it cost",
        {"type": "boolean", "default": False},
    ),
)
EXPORT_PARAMETERS: Final = (
    _SERIES,
    _FROM,
    _TO,
    Parameter(
        "mode",
        "One shard after the other, blocks of shards at the same time, or a page of each shard in turn",
        {"type": "string", "enum": list(ExportMode), "default": ExportMode.SHARDS},
    ),
    Parameter("cursor", "Of the answer before, for the same series, range and mode", _CURSOR),
    _CONSISTENT,
    Parameter(
        "pool",
        "Shards that mode=blocks reads at the same time",
        {"type": "integer", "minimum": 1, "maximum": MAX_POOL, "default": 4},
    ),
    MAX_RCU,
)
LAYOUT_PARAMETERS: Final = (_SERIES,)
IDENTITY_PARAMETERS: Final = (
    _SERIES,
    Parameter("time", "The event's time, RFC 3339 with zone", _TIME, required=True),
    Parameter("id", "The event's id", {**_TEXT, **ID_BOUNDS}, required=True),
    _SHARDING_KEY._replace(description="The event's sharding key, where it has one"),
)
EVENT_PARAMETERS: Final = (*IDENTITY_PARAMETERS, _CONSISTENT)

_NUMBER: Final = re.compile(r"[0-9]{1,9}", re.ASCII)
_DECIMAL: Final = re.compile(r"[0-9]{1,9}(\.[0-9]{1,3})?", re.ASCII)


def raw_query(app: APIGatewayHttpResolver) -> str:
    """Return the query string of the request being answered, as the client sent it."""
    return str(app.current_event.raw_event.get("rawQueryString") or "")


def _invalid(name: str, reason: str) -> InvalidInputError:
    return InvalidInputError("invalid_query", name, reason)


class QueryParameters:
    """The parameters of one request; every method raises InvalidInputError that names the parameter."""

    def __init__(self, raw_query: str, parameters: Collection[Parameter]) -> None:
        known = [parameter.name for parameter in parameters]
        try:
            pairs = parse_qsl(raw_query, keep_blank_values=True, errors="strict")
        except ValueError as error:
            raise _invalid("", f"the query string is not valid: {error}") from error
        self._values = dict(pairs)
        for name, _ in pairs:
            if name not in known:
                raise _invalid(name, f"is unknown; known are {', '.join(known)}")
        if len(self._values) < len(pairs):
            raise _invalid("", "each parameter may be given once")

    @property
    def given(self) -> dict[str, str]:
        """The parameters as they were given."""
        return dict(self._values)

    def text(self, name: str, default: str | None = None) -> str:
        """Return a parameter's text."""
        value = self._values.get(name, default)
        if value is None:
            raise _invalid(name, "is missing")
        return value

    def optional(self, name: str) -> str | None:
        """Return a parameter's text, None where it is left out."""
        return self._values.get(name)

    def number(self, name: str, default: int, most: int) -> int:
        """Return a whole number of 1 to `most`."""
        value = self._values.get(name)
        if value is None:
            return default
        if not _NUMBER.fullmatch(value) or not 1 <= int(value) <= most:
            raise _invalid(name, f"must be a whole number of 1 to {most:,}, not {shorten(value)!r}")
        return int(value)

    def decimal(self, name: str) -> float | None:
        """Return a number greater than 0, None where it is left out."""
        value = self._values.get(name)
        if value is None:
            return None
        if not _DECIMAL.fullmatch(value) or not float(value):
            raise _invalid(
                name, f"must be a number greater than 0, such as 12.5, not {shorten(value)!r}"
            )
        return float(value)

    def flag(self, name: str, *, default: bool) -> bool:
        """Return a parameter that is `true` or `false`."""
        value = self._values.get(name)
        if value is None:
            return default
        if value not in {"true", "false"}:
            raise _invalid(name, f"must be true or false, not {shorten(value)!r}")
        return value == "true"

    def time(self, name: str) -> datetime:
        """Return an RFC 3339 time with zone."""
        value = self.text(name)
        try:
            return parse_time(value)
        except ValueError as error:
            hint = " (write + as %2B in a URL)" if " " in value else ""
            raise _invalid(name, f"{error}{hint}") from error
