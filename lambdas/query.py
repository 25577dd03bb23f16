"""GET /v1/…: pages of events, single events, the service's own description; and the answer to unknown paths."""

from functools import partial
from http import HTTPStatus
from typing import Any, Final

from aws_lambda_powertools import Logger
from aws_lambda_powertools.event_handler import Response
from aws_lambda_powertools.event_handler.api_gateway import APIGatewayHttpResolver
from aws_lambda_powertools.utilities.typing import LambdaContext

from lambdas.api.answers import answer_event, answer_page, escaped_size
from lambdas.api.errors import RequestError, answer_json, handle_errors
from lambdas.api.openapi import openapi_document
from lambdas.api.parameters import (
    EVENT_PARAMETERS,
    MAX_LIMIT,
    PAGE_PARAMETERS,
    Parameter,
    Parameters,
)
from lambdas.api.types import Health
from lambdas.environment import open_store, read_environment

__all__ = ["handler"]

logger = Logger()
app = APIGatewayHttpResolver()
handle_errors(app, logger)
store = open_store(read_environment())

_DEFAULT_LIMIT: Final = 100


@app.get("/v1/events")
def read_events() -> Response[Any]:
    """Answer one page of a series' range."""
    given = _parameters(PAGE_PARAMETERS)
    series = given.text("series")
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
        measure=partial(escaped_size, series),
    )
    return answer_page(page)


@app.get("/v1/events/one")
def read_event() -> Response[Any]:
    """Answer one event by its identity, or 404."""
    given = _parameters(EVENT_PARAMETERS)
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


@app.get("/v1/healthz")
def health() -> Response[Any]:
    """Answer that the function runs."""
    return answer_json(HTTPStatus.OK, Health(status="ok"))


@app.get("/v1/openapi.json")
def openapi() -> Response[Any]:
    """Answer the API's description."""
    return answer_json(HTTPStatus.OK, openapi_document())


def _parameters(known: tuple[Parameter, ...]) -> Parameters:
    return Parameters(app.current_event.raw_event.get("rawQueryString", ""), known)


@logger.inject_lambda_context(clear_state=True)
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    """Answer a request of the HTTP API."""
    answer = app.resolve(event, context)
    logger.info("answered", extra={"path": event.get("rawPath"), "status": answer["statusCode"]})
    return answer
