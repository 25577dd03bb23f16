"""What the aggregates route does: parameters in, rows of intervals out."""

import json
from datetime import timedelta
from http import HTTPStatus
from typing import Any, Final

from aws_lambda_powertools.event_handler import Response

from lambdas.api.durations import DURATION, parse_duration
from lambdas.api.errors import answer_json
from lambdas.api.parameters import MAX_LIMIT, PAGE_PARAMETERS, Parameter, QueryParameters
from spillway import AggregatePage, AggregateRow, EventStore, InvalidInputError
from spillway.aggregating.fields import MAX_FIELD_BYTES
from spillway.aggregating.functions import Fill, Function
from spillway.errors import shorten
from spillway.keys import TIME_WIDTH
from spillway.timestamps import format_time

__all__ = ["AGGREGATE_PARAMETERS", "aggregate_events"]

_PAGE: Final = {each.name: each for each in PAGE_PARAMETERS}
_TEXT: Final = {"type": "string"}
_FUNCTION: Final = f"({'|'.join(Function)})"
_KEY: Final = r'([^.\\"\x00-\x1f]|\\\.)+'

AGGREGATE_PARAMETERS: Final = (
    *(_PAGE[name] for name in ("series", "from", "to")),
    Parameter(
        "interval",
        "Length of a row: 30s, 5m, 1h, 1d, 1w, or ISO 8601's PT5M; left out: one row for the range",
        {**_TEXT, "pattern": DURATION, "examples": ["1h"]},
    ),
    Parameter(
        "field",
        r"Where in the payload the number is: a.b is b within a, a\.b the key a.b; left out: events are counted",
        {
            **_TEXT,
            "minLength": 1,
            "maxLength": MAX_FIELD_BYTES,
            "pattern": rf"^{_KEY}(\.{_KEY})*$",
            "examples": ["delay"],
        },
    ),
    Parameter(
        "functions",
        f"Some of {', '.join(Function)}, with commas between; left out: count, and with a field avg",
        {
            **_TEXT,
            "pattern": f"^{_FUNCTION}(,{_FUNCTION})*$",
            "examples": ["count,avg,p99"],
        },
    ),
    Parameter(
        "fill",
        "What stands in intervals without numbers; none leaves out those without events",
        {"type": "string", "enum": list(Fill), "default": Fill.NONE},
    ),
    Parameter(
        "limit",
        "Most rows of the answer; it may end earlier, with a cursor",
        {"type": "integer", "minimum": 1, "maximum": MAX_LIMIT, "default": MAX_LIMIT},
    ),
    *(_PAGE[name] for name in ("cursor", "consistent", "sharding_key", "read", "max_rcu")),
)


def aggregate_events(store: EventStore, raw_query: str, seconds: float) -> Response[Any]:
    """Answer the rows of a series' range, within so many seconds."""
    given = QueryParameters(raw_query, AGGREGATE_PARAMETERS)
    functions = given.optional("functions")
    page = store.aggregate(
        given.text("series"),
        given.time("from"),
        given.time("to"),
        interval=_interval(given.optional("interval")),
        field=given.optional("field"),
        functions=None if functions is None else functions.split(","),
        fill=given.text("fill", Fill.NONE),
        limit=given.number("limit", MAX_LIMIT, MAX_LIMIT),
        cursor=given.optional("cursor"),
        consistent=given.flag("consistent", default=False),
        sharding_key=given.optional("sharding_key"),
        read=given.text("read", "auto"),
        max_rcu=given.decimal("max_rcu"),
        timeout=seconds,
    )
    # The standard library's, since numbers may have more than 64 bits.
    text = json.dumps(_answer(page), ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return answer_json(HTTPStatus.OK, text)


def _interval(text: str | None) -> timedelta | None:
    if text is None:
        return None
    try:
        return parse_duration(text)
    except ValueError as error:
        reason = f"{error}, not {shorten(text)!r}"
        raise InvalidInputError("invalid_query", "interval", reason) from error


def _answer(page: AggregatePage) -> dict[str, Any]:
    answer: dict[str, Any] = {
        "rows": [_row(row) for row in page.rows],
        "cursor": page.cursor,
        "complete": page.complete,
    }
    if not page.complete:
        answer["reason"] = page.reason
        answer["missing"] = [
            {"partition": each.partition, "reached": each.reached[:TIME_WIDTH], "error": each.error}
            for each in page.missing
        ]
        answer["missing_count"] = page.missing_count
    if page.percentiles is not None:
        answer |= {"percentiles": page.percentiles, "percentile_error": page.percentile_error}
    return answer


def _row(row: AggregateRow) -> dict[str, Any]:
    marked = {"approximate": True} if row.approximate else {}
    return {"start": format_time(row.start), **row.values, "skipped": row.skipped, **marked}
