"""The query function: reads, exports and aggregates events, and describes the API."""

from collections.abc import Callable
from http import HTTPStatus
from typing import Any, Final
from urllib.parse import urlencode

from aws_lambda_powertools import Logger
from aws_lambda_powertools.event_handler import Response
from aws_lambda_powertools.event_handler.api_gateway import APIGatewayHttpResolver
from aws_lambda_powertools.utilities.typing import LambdaContext

from lambdas.api.answers import (
    EventRenderer,
    answer_aggregates,
    answer_event,
    answer_layout,
    answer_page,
)
from lambdas.api.errors import RequestError, answer_json, handle_errors
from lambdas.api.openapi import methods_of, openapi_document
from lambdas.api.parameters import (
    AggregateParameters,
    EventParameters,
    ExportParameters,
    PageParameters,
    SeriesParameters,
    decode_parameters,
    raw_query,
    split_query,
)
from lambdas.api.types import Health
from spillway import EventStore, Export, ExportError

__all__ = ["create_app"]

_READ_SECONDS: Final = 10.0
_MARGIN_SECONDS: Final = 1.0  # for an answer, before the function is stopped
_EXPORT_BYTES: Final = 4_000_000


def create_app(
    store: EventStore, logger: Logger
) -> Callable[[dict[str, Any], LambdaContext], dict[str, Any]]:
    """Return the handler of the GET routes; it also answers unknown paths and methods."""
    app = APIGatewayHttpResolver()
    handle_errors(app, logger, methods_of)

    def timeout() -> float:
        left = app.lambda_context.get_remaining_time_in_millis() / 1_000
        return min(_READ_SECONDS, left - _MARGIN_SECONDS)

    app.get("/v1/events")(lambda: _read_page(store, raw_query(app), timeout()))
    app.get("/v1/export")(lambda: _export(store, raw_query(app), timeout()))
    app.get("/v1/aggregates")(lambda: _aggregate(store, raw_query(app), timeout()))
    app.get("/v1/events/one")(lambda: _read_event(store, raw_query(app)))
    app.get("/v1/layout")(lambda: _read_layout(store, raw_query(app)))
    app.get("/v1/healthz")(lambda: answer_json(HTTPStatus.OK, Health(status="ok")))
    app.get("/v1/openapi.json")(lambda: answer_json(HTTPStatus.OK, openapi_document()))

    @logger.inject_lambda_context(clear_state=True)
    def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
        answer = app.resolve(event, context)
        extra = {"path": event.get("rawPath"), "status": answer["statusCode"]}
        logger.info("answered", extra=extra)
        return answer

    return handler


def _read_page(store: EventStore, query: str, timeout: float) -> Response[Any]:
    parameters = decode_parameters(query, PageParameters)
    renderer = EventRenderer(parameters.series)
    page = store.read(
        parameters.series,
        *parameters.times(),
        limit=parameters.limit,
        order=parameters.order,
        cursor=parameters.cursor,
        consistent=parameters.consistent,
        sharding_key=parameters.sharding_key,
        source=parameters.source,
        measure=renderer.measure,
        max_rcu=parameters.max_rcu,
        explain=parameters.explain,
        timeout=timeout,
    )
    return answer_page(page, renderer, explained=parameters.explain)


def _read_event(store: EventStore, query: str) -> Response[Any]:
    parameters = decode_parameters(query, EventParameters)
    event = store.read_one(
        parameters.series,
        parameters.event_time(),
        parameters.id,
        sharding_key=parameters.sharding_key,
        consistent=parameters.consistent,
    )
    if event is None:
        raise RequestError(HTTPStatus.NOT_FOUND, "unknown_event", "there is no such event")
    return answer_event(event)


def _read_layout(store: EventStore, query: str) -> Response[Any]:
    layout = store.layout(decode_parameters(query, SeriesParameters).series)
    if layout is None:
        raise RequestError(HTTPStatus.NOT_FOUND, "unknown_series", "nothing was written to it yet")
    return answer_layout(layout)


def _aggregate(store: EventStore, query: str, timeout: float) -> Response[Any]:
    parameters = decode_parameters(query, AggregateParameters)
    page = store.aggregate(
        parameters.series,
        *parameters.times(),
        interval=parameters.row_length(),
        field=parameters.field,
        functions=None if parameters.functions is None else parameters.functions.split(","),
        fill=parameters.fill,
        limit=parameters.limit,
        cursor=parameters.cursor,
        consistent=parameters.consistent,
        sharding_key=parameters.sharding_key,
        source=parameters.source,
        max_rcu=parameters.max_rcu,
        timeout=timeout,
    )
    return answer_aggregates(page)


def _export(store: EventStore, query: str, timeout: float) -> Response[Any]:
    """Answer the next 4 MB of an export, or as much as could be read until the timeout.

    Raises StorageError where nothing could be read.
    """
    parameters = decode_parameters(query, ExportParameters)
    export = store.export(
        parameters.series,
        *parameters.times(),
        mode=parameters.mode,
        cursor=parameters.cursor,
        consistent=parameters.consistent,
        pool=parameters.pool,
        max_rcu=parameters.max_rcu,
        max_seconds=timeout,
        timeout=timeout,
    )
    renderer = EventRenderer(parameters.series, terminator="\n")
    try:
        chunk = export.chunk(_EXPORT_BYTES, renderer.measure)
    except ExportError as error:
        raise error.cause from error
    return Response(
        status_code=HTTPStatus.OK,
        content_type="application/x-ndjson",
        body="".join(renderer.texts(len(chunk.records))),
        headers={**_export_headers(export, query)},
    )


def _export_headers(export: Export, query: str) -> dict[str, str]:
    """Return headers that say whether the export is complete, and if not, why and how to go on."""
    headers = {
        "Spillway-Complete": "true",
        "Spillway-Requests": str(export.spent.requests),
        "Spillway-Read-Units": str(export.spent.read_units),
    }
    if export.cursor is None:
        return headers
    link = urlencode({**dict(split_query(query)), "cursor": export.cursor})
    return headers | {
        "Spillway-Complete": "false",
        "Spillway-Reason": _stop_reason(export),
        "Spillway-Cursor": export.cursor,
        "Link": f'<?{link}>; rel="next"',
    }


def _stop_reason(export: Export) -> str:
    if isinstance(export.failure, ExportError):
        return export.failure.code
    return export.stopped or "size"
