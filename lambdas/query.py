"""GET /v1/…: events, exports, aggregates, layouts, the service's own description; and the answer to unknown paths."""

from typing import Any

from aws_lambda_powertools import Logger
from aws_lambda_powertools.event_handler import Response
from aws_lambda_powertools.event_handler.api_gateway import APIGatewayHttpResolver
from aws_lambda_powertools.utilities.typing import LambdaContext

from lambdas.api import aggregates, export, fixed, reads
from lambdas.api.errors import handle_errors
from lambdas.api.openapi import methods_of
from lambdas.api.parameters import raw_query
from lambdas.api.timeouts import read_timeout_seconds
from lambdas.environment import open_store, read_environment

__all__ = ["handler"]

logger = Logger()
app = APIGatewayHttpResolver()
handle_errors(app, logger, methods_of)
app.get("/v1/healthz")(fixed.health)
app.get("/v1/openapi.json")(fixed.describe)
store = open_store(read_environment())


@app.get("/v1/events")
def read_events() -> Response[Any]:
    return reads.read_page(store, raw_query(app), read_timeout_seconds(app))


@app.get("/v1/export")
def export_events() -> Response[Any]:
    return export.export_events(store, raw_query(app), read_timeout_seconds(app))


@app.get("/v1/aggregates")
def aggregate_events() -> Response[Any]:
    return aggregates.aggregate_events(store, raw_query(app), read_timeout_seconds(app))


@app.get("/v1/events/one")
def read_event() -> Response[Any]:
    return reads.read_event(store, raw_query(app))


@app.get("/v1/layout")
def read_layout() -> Response[Any]:
    return reads.read_layout(store, raw_query(app))


@logger.inject_lambda_context(clear_state=True)
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    """Answer a request of the HTTP API."""
    answer = app.resolve(event, context)
    logger.info("answered", extra={"path": event.get("rawPath"), "status": answer["statusCode"]})
    return answer
