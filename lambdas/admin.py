"""PUT /v1/layout and DELETE /v1/events/one: what an operator changes by hand."""

from typing import Any

from aws_lambda_powertools import Logger
from aws_lambda_powertools.event_handler import Response
from aws_lambda_powertools.event_handler.api_gateway import APIGatewayHttpResolver
from aws_lambda_powertools.utilities.typing import LambdaContext

from lambdas.api import changes
from lambdas.api.audit import audit_entry
from lambdas.api.body import read_body
from lambdas.api.errors import handle_errors
from lambdas.api.parameters import raw_query
from lambdas.environment import open_store, read_environment

__all__ = ["handler"]

logger = Logger()
app = APIGatewayHttpResolver()
handle_errors(app, logger)
store = open_store(read_environment())


@app.put("/v1/layout")
def set_layout() -> Response[Any]:
    return changes.set_layout(store, raw_query(app), read_body(app.current_event.raw_event))


@app.delete("/v1/events/one")
def delete_event() -> Response[Any]:
    return changes.delete_event(store, raw_query(app))


@logger.inject_lambda_context(clear_state=True)
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    """Answer a request of the HTTP API, and log who sent it and what came of it."""
    answer = app.resolve(event, context)
    logger.info("audit", extra=audit_entry(event, answer))
    return answer
