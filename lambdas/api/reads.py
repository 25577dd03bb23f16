"""What the read routes do: parameters in, a page, an event or a layout out."""

from http import HTTPStatus
from typing import Any, Final

from aws_lambda_powertools.event_handler import Response

from lambdas.api.answers import EventRenderer, answer_event, answer_layout, answer_page
from lambdas.api.errors import RequestError
from lambdas.api.parameters import (
    EVENT_PARAMETERS,
    LAYOUT_PARAMETERS,
    MAX_LIMIT,
    PAGE_PARAMETERS,
    QueryParameters,
)
from spillway import EventStore

__all__ = ["read_event", "read_layout", "read_page"]

_DEFAULT_LIMIT: Final = 100


def read_page(store: EventStore, raw_query: str, seconds: float) -> Response[Any]:
    """Answer one page of a series' range, within so many seconds."""
    given = QueryParameters(raw_query, PAGE_PARAMETERS)
    series = given.text("series")
    explained = given.flag("explain", default=False)
    renderer = EventRenderer(series)
    page = store.read(
        series,
        given.time("from"),
        given.time("to"),
        limit=given.number("limit", _DEFAULT_LIMIT, MAX_LIMIT),
        order=given.text("order", "asc"),
        cursor=given.optional("cursor"),
        consistent=given.flag("consistent", default=False),
        sharding_key=given.optional("sharding_key"),
        read=given.text("read", "auto"),
        measure=renderer.measure,
        max_rcu=given.decimal("max_rcu"),
        explain=explained,
        timeout=seconds,
    )
    return answer_page(page, renderer, explained=explained)


def read_event(store: EventStore, raw_query: str) -> Response[Any]:
    """Answer one event by its identity, or 404."""
    given = QueryParameters(raw_query, EVENT_PARAMETERS)
    event = store.read_one(
        given.text("series"),
        given.time("time"),
        given.text("id"),
        sharding_key=given.optional("sharding_key"),
        consistent=given.flag("consistent", default=False),
    )
    if event is None:
        raise RequestError(HTTPStatus.NOT_FOUND, "unknown_event", "there is no such event")
    return answer_event(event)


def read_layout(store: EventStore, raw_query: str) -> Response[Any]:
    """Answer the layout of a series, or 404."""
    given = QueryParameters(raw_query, LAYOUT_PARAMETERS)
    layout = store.layout(given.text("series"))
    if layout is None:
        raise RequestError(HTTPStatus.NOT_FOUND, "unknown_series", "nothing was written to it yet")
    return answer_layout(layout)
