"""The admin function: an operator's changes by hand, each with an audit line."""

import json
from collections.abc import Callable, Mapping
from http import HTTPStatus
from typing import Any, Final
from urllib.parse import parse_qsl

import msgspec
from aws_lambda_powertools import Logger
from aws_lambda_powertools.event_handler import Response
from aws_lambda_powertools.event_handler.api_gateway import APIGatewayHttpResolver
from aws_lambda_powertools.utilities.typing import LambdaContext

from lambdas.api.answers import answer_layout
from lambdas.api.errors import RequestError, answer_json, handle_errors
from lambdas.api.ingest_body import describe_decode_error, read_body
from lambdas.api.parameters import (
    IdentityParameters,
    SeriesParameters,
    decode_parameters,
    raw_query,
)
from lambdas.api.types import Deleted, LayoutRequest
from spillway import EventStore

__all__ = ["create_app"]

_OUTCOME: Final = ("deleted", "version", "shards", "index_shards")

_layout_request = msgspec.json.Decoder(LayoutRequest)


def create_app(
    store: EventStore, logger: Logger
) -> Callable[[dict[str, Any], LambdaContext], dict[str, Any]]:
    """Return the handler of PUT /v1/layout and DELETE /v1/events/one."""
    app = APIGatewayHttpResolver()
    handle_errors(app, logger)
    app.put("/v1/layout")(
        lambda: _set_layout(store, raw_query(app), read_body(app.current_event.raw_event))
    )
    app.delete("/v1/events/one")(lambda: _delete_event(store, raw_query(app)))

    @logger.inject_lambda_context(clear_state=True)
    def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
        answer = app.resolve(event, context)
        logger.info("audit", extra=_audit_entry(event, answer))
        return answer

    return handler


def _set_layout(store: EventStore, query: str, body: bytes) -> Response[Any]:
    series = decode_parameters(query, SeriesParameters).series
    try:
        counts = _layout_request.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        message = describe_decode_error(error)
        raise RequestError(HTTPStatus.BAD_REQUEST, "invalid_request", message) from error
    layout = store.set_layout(series, shards=counts.shards, index_shards=counts.index_shards)
    return answer_layout(layout)


def _delete_event(store: EventStore, query: str) -> Response[Any]:
    identity = decode_parameters(query, IdentityParameters)
    deleted = store.delete(
        identity.series,
        identity.event_time(),
        identity.id,
        sharding_key=identity.sharding_key,
    )
    return answer_json(HTTPStatus.OK, Deleted(deleted=deleted))


def _audit_entry(event: Mapping[str, Any], answer: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of the audit line: who sent a request, its target and its outcome.

    `caller` is the ARN that signed the request, "-" where the stage asks for no signature. Payloads
    are never part of it.
    """
    context = event["requestContext"]
    http = context["http"]
    return {
        "action": f"{http['method']} {http['path']}",
        "caller": context.get("authorizer", {}).get("iam", {}).get("userArn", "-"),
        "ip": http["sourceIp"],
        "request": context["requestId"],
        "target": _requested_identity(event) | _requested_counts(event),
        "status": answer["statusCode"],
        "outcome": _outcome(json.loads(answer["body"])),
    }


def _requested_identity(event: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the query names, even if it is not valid, without other parameters."""
    query = str(event.get("rawQueryString") or "").encode(errors="replace").decode()
    identity = IdentityParameters.__struct_fields__
    return {name: text for name, text in parse_qsl(query) if name in identity}


def _requested_counts(event: Mapping[str, Any]) -> dict[str, Any]:
    try:
        counts = msgspec.structs.asdict(_layout_request.decode(read_body(event)))
    except (RequestError, msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return {}
    return {name: count for name, count in counts.items() if count is not None}


def _outcome(body: Mapping[str, Any]) -> dict[str, Any]:
    if "error" in body:
        return {"error": body["error"]["code"]}
    return {name: body[name] for name in _OUTCOME if name in body}
