"""Query parameters: a type a route, from which they are checked, converted and described."""

import re
from collections.abc import Mapping
from datetime import datetime, timedelta
from functools import cache
from types import MappingProxyType
from typing import Annotated, Any, Final, NamedTuple, TypeVar
from urllib.parse import parse_qsl

import msgspec
from aws_lambda_powertools.event_handler.api_gateway import APIGatewayHttpResolver
from msgspec import Meta, Struct

from lambdas.api.errors import split_validation_error
from lambdas.api.types import EventId, Series, ShardingKey, Time
from spillway import (
    MAX_FIELD_BYTES,
    MAX_POOL,
    AggregateFunction,
    ExportMode,
    Fill,
    InvalidInputError,
    Order,
    Source,
    parse_time,
    shorten,
)

__all__ = [
    "AggregateParameters",
    "EventParameters",
    "ExportParameters",
    "IdentityParameters",
    "PageParameters",
    "Parameter",
    "RangeParameters",
    "SeriesParameters",
    "decode_parameters",
    "describe_parameters",
    "parse_duration",
    "raw_query",
    "split_query",
]

_MAX_LIMIT: Final = 1_000  # events or rows of one answer

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
# JSON Schema has no named groups.
_DURATION: Final = re.sub(r"\?P<\w>", "?:", f"^({_SHORT.pattern}|{_ISO.pattern})$")
_FUNCTION: Final = f"({'|'.join(AggregateFunction)})"
_KEY: Final = r'([^.\\"\x00-\x1f]|\\\.)+'

Cursor = Annotated[
    str,
    Meta(
        description="Of the answer before, for the same query",
        extra_json_schema={"pattern": "^[A-Za-z0-9_-]+$"},  # no padding
    ),
]
Consistent = Annotated[
    bool,
    Meta(
        description="Whether every write acknowledged before is seen; false costs half the read "
        "units and may use the index and the cache"
    ),
]
ReadSource = Annotated[
    Source,
    Meta(
        description="Read the table's shards or the index's time buckets; auto takes what costs "
        "least"
    ),
]
MaxReadUnits = Annotated[
    float,
    Meta(
        gt=0,
        le=999_999_999.999,
        description="Most read units to spend, at most three decimals; an answer that reaches "
        "them ends early, with a cursor",
    ),
]
OnlyShardingKey = Annotated[ShardingKey, Meta(description="Only events with this sharding key")]


class SeriesParameters(Struct, frozen=True, kw_only=True):
    """The series that a request is about."""

    series: Series


class RangeParameters(SeriesParameters, frozen=True, kw_only=True):
    """A range of times of a series."""

    start: Annotated[Time, Meta(description="First time that is read, RFC 3339 with zone")]
    end: Annotated[Time, Meta(description="First time that is not read, RFC 3339 with zone")]

    def times(self) -> tuple[datetime, datetime]:
        """Return start and end; InvalidInputError names the one that is wrong."""
        return _parse_time("start", self.start), _parse_time("end", self.end)


class PageParameters(RangeParameters, frozen=True, kw_only=True):
    """Parameters of a page of events."""

    limit: Annotated[
        int,
        Meta(
            ge=1,
            le=_MAX_LIMIT,
            description="Most events of the page; it may end earlier, with a cursor",
        ),
    ] = 100
    order: Annotated[Order, Meta(description="By time, then sharding key and id")] = Order.ASCENDING
    cursor: Cursor | None = None
    consistent: Consistent = True
    sharding_key: OnlyShardingKey | None = None
    source: ReadSource = Source.AUTO
    max_rcu: MaxReadUnits | None = None
    explain: Annotated[
        bool,
        Meta(
            description="Whether the answer has its plan, what it was expected to cost, and what "
            "it cost"
        ),
    ] = False


class AggregateParameters(RangeParameters, frozen=True, kw_only=True):
    """Parameters of rows of intervals."""

    interval: (
        Annotated[
            str,
            Meta(
                description="Length of a row: 30s, 5m, 1h, 1d, 1w, or ISO 8601's PT5M; left out: "
                "one row for the range",
                examples=["1h"],
                extra_json_schema={"pattern": _DURATION},
            ),
        ]
        | None
    ) = None
    field: (
        Annotated[
            str,
            Meta(
                description=r"Where in the payload the number is: a.b is b within a, a\.b the key "
                "a.b; left out: events are counted",
                examples=["delay"],
                extra_json_schema={
                    "minLength": 1,
                    "maxLength": MAX_FIELD_BYTES,
                    "pattern": rf"^{_KEY}(\.{_KEY})*$",
                },
            ),
        ]
        | None
    ) = None
    functions: (
        Annotated[
            str,
            Meta(
                description=f"Some of {', '.join(AggregateFunction)}, with commas between; left "
                "out: count, and with a field avg",
                examples=["count,avg,p99"],
                extra_json_schema={"pattern": f"^{_FUNCTION}(,{_FUNCTION})*$"},
            ),
        ]
        | None
    ) = None
    fill: Annotated[
        Fill,
        Meta(
            description="What stands in intervals without numbers; none leaves out those without "
            "events"
        ),
    ] = Fill.NONE
    limit: Annotated[
        int,
        Meta(
            ge=1,
            le=_MAX_LIMIT,
            description="Most rows of the answer; it may end earlier, with a cursor",
        ),
    ] = _MAX_LIMIT
    cursor: Cursor | None = None
    consistent: Consistent = True
    sharding_key: OnlyShardingKey | None = None
    source: ReadSource = Source.AUTO
    max_rcu: MaxReadUnits | None = None

    def row_length(self) -> timedelta | None:
        """Return the interval, None for one row; InvalidInputError."""
        if self.interval is None:
            return None
        try:
            return parse_duration(self.interval)
        except ValueError as error:
            raise _invalid("interval", f"{error}, not {shorten(self.interval)!r}") from error


class ExportParameters(RangeParameters, frozen=True, kw_only=True):
    """Parameters of an export."""

    mode: Annotated[
        ExportMode,
        Meta(
            description="One shard after the other, blocks of shards at the same time, or a page "
            "of each shard in turn"
        ),
    ] = ExportMode.SHARDS
    cursor: (
        Annotated[
            Cursor, Meta(description="Of the answer before, for the same series, range and mode")
        ]
        | None
    ) = None
    consistent: Consistent = True
    pool: Annotated[
        int,
        Meta(ge=1, le=MAX_POOL, description="Shards that mode=blocks reads at the same time"),
    ] = 4
    max_rcu: MaxReadUnits | None = None


class IdentityParameters(SeriesParameters, frozen=True, kw_only=True):
    """The identity of one event."""

    time: Annotated[Time, Meta(description="The event's time, RFC 3339 with zone")]
    id: Annotated[EventId, Meta(description="The event's id")]
    sharding_key: (
        Annotated[ShardingKey, Meta(description="The event's sharding key, where it has one")]
        | None
    ) = None

    def event_time(self) -> datetime:
        """Return the event's time; InvalidInputError."""
        return _parse_time("time", self.time)


class EventParameters(IdentityParameters, frozen=True, kw_only=True):
    """Parameters of a read of one event."""

    consistent: Consistent = True


Parameters = TypeVar("Parameters", bound=SeriesParameters)


def raw_query(app: APIGatewayHttpResolver) -> str:
    """Return the query string of the request being answered, as the client sent it."""
    return str(app.current_event.raw_event.get("rawQueryString") or "")


def split_query(raw: str) -> list[tuple[str, str]]:
    """Return names and values of a query string; InvalidInputError where it is not valid UTF-8."""
    try:
        return parse_qsl(raw, keep_blank_values=True, errors="strict")
    except ValueError as error:
        raise _invalid("", f"the query string is not valid: {error}") from error


def decode_parameters(raw: str, kind: type[Parameters]) -> Parameters:
    """Return the parameters of a query string.

    Raises InvalidInputError, which names the parameter, where one is unknown, missing, given twice
    or not what `kind` says.
    """
    pairs = split_query(raw)
    values = dict(pairs)
    known = kind.__struct_fields__
    for name in values:
        if name not in known:
            raise _invalid(name, f"is unknown; known are {', '.join(known)}")
    if len(values) < len(pairs):
        raise _invalid("", "each parameter may be given once")
    try:
        decoded = msgspec.convert(values, kind, strict=False)
    except msgspec.ValidationError as error:
        name, reason = split_validation_error(error)
        if name in values:
            reason = _expectation(kind, name, values[name])
        raise _invalid(name, reason) from error
    for name, text in values.items():
        if not _is_plain(text, getattr(decoded, name)):
            raise _invalid(name, _expectation(kind, name, text))
    return decoded


_INTEGER: Final = re.compile(r"[0-9]{1,9}", re.ASCII)
_DECIMAL: Final = re.compile(r"[0-9]{1,9}(\.[0-9]{1,3})?", re.ASCII)


def _is_plain(text: str, value: object) -> bool:
    """Return whether text is the one form that is described; msgspec takes `1e2` and `True` too."""
    if isinstance(value, bool):
        return text in {"true", "false"}
    if isinstance(value, int | float):
        form = _DECIMAL if isinstance(value, float) else _INTEGER
        return form.fullmatch(text) is not None
    return value is not None  # `null` is no number


def _expectation(kind: type[Struct], name: str, text: str) -> str:
    """Say what a parameter must be, by its schema."""
    match describe_parameters(kind)[name].schema:
        case {"enum": values}:
            return f"must be one of {', '.join(values)}, not {shorten(text)!r}"
        case {"type": "boolean"}:
            return f"must be true or false, not {shorten(text)!r}"
        case {"type": "integer", "minimum": low, "maximum": high}:
            return f"must be a whole number of {low} to {high:,}, not {shorten(text)!r}"
        case {"type": "number"}:
            return f"must be a number greater than 0, such as 12.5, not {shorten(text)!r}"
    raise AssertionError(f"{name} takes any text")


# In the order of their definition, which msgspec's schema doesn't keep.
_CHOICES: Final = {each.__name__: list(each) for each in (ExportMode, Fill, Order, Source)}


class Parameter(NamedTuple):
    """A query parameter as the API describes it; `schema` is JSON Schema."""

    name: str
    description: str
    schema: dict[str, Any]
    required: bool


@cache
def describe_parameters(kind: type[Struct]) -> Mapping[str, Parameter]:
    """Return the parameters of a type by name, in order."""
    _, components = msgspec.json.schema_components([kind], ref_template="{name}")
    own = components[kind.__name__]
    found = {}
    for name, described in own["properties"].items():
        # A query string can't say null: it leaves the parameter out.
        described = described["anyOf"][0] if "anyOf" in described else described  # noqa: PLW2901
        description = described.pop("description")
        if "$ref" in described:
            described |= {"type": "string", "enum": _CHOICES[described.pop("$ref")]}
        found[name] = Parameter(name, description, described, name in own["required"])
    return MappingProxyType(found)


def _parse_time(name: str, text: str) -> datetime:
    try:
        return parse_time(text)
    except ValueError as error:
        hint = " (write + as %2B in a URL)" if " " in text else ""
        raise _invalid(name, f"{error}{hint}") from error


def _invalid(name: str, reason: str) -> InvalidInputError:
    return InvalidInputError("invalid_query", name, reason)


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
