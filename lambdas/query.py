"""GET /v1/…: events, layouts, the service's own description; and the answer to unknown paths."""

from http import HTTPStatus
from typing import Any, Final

from aws_lambda_powertools import Logger
from aws_lambda_powertools.event_handler import Response
from aws_lambda_powertools.event_handler.api_gateway import APIGatewayHttpResolver
from aws_lambda_powertools.utilities.typing import LambdaContext

from lambdas.api import reads
from lambdas.api.errors import answer_json, handle_errors
from lambdas.api.openapi import openapi_document
from lambdas.api.parameters import raw_query
from lambdas.api.types import Health
from lambdas.environment import open_store, read_environment

__all__ = ["handler"]

_READ_SECONDS: Final = 10.0
_MARGIN_SECONDS: Final = 1.0  # for an answer, before the function is stopped

logger = Logger()
app = APIGatewayHttpResolver()
handle_errors(app, logger)
store = open_store(read_environment())


@app.get("/v1/events")
def read_events() -> Response[Any]:
    return reads.read_page(store, raw_query(app), _patience())


@app.get("/v1/events/one")
def read_event() -> Response[Any]:
    return reads.read_event(store, raw_query(app))


@app.get("/v1/layout")
def read_layout() -> Response[Any]:
    return reads.read_layout(store, raw_query(app))


@app.get("/v1/healthz")
def health() -> Response[Any]:
    return answer_json(HTTPStatus.OK, Health(status="ok"))


@app.get("/v1/openapi.json")
def openapi() -> Response[Any]:
    return answer_json(HTTPStatus.OK, openapi_document())


def _patience() -> float:
    left = app.lambda_context.get_remaining_time_in_millis() / 1_000
    return min(_READ_SECONDS, left - _MARGIN_SECONDS)


@logger.inject_lambda_context(clear_state=True)
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    """Answer a request of the HTTP API."""
    answer = app.resolve(event, context)
    logger.info("answered", extra={"path": event.get("rawPath"), "status": answer["statusCode"]})
    return answer
