"""The OpenAPI document, generated from the types of requests and answers."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

import msgspec

from lambdas.api import types
from lambdas.api.parameters import (
    AggregateParameters,
    EventParameters,
    ExportParameters,
    IdentityParameters,
    PageParameters,
    SeriesParameters,
    describe_parameters,
)

__all__ = ["methods_of", "openapi_document"]

_TYPES: Final = (
    types.IngestRequest,
    types.IngestAnswer,
    types.EventsPage,
    types.EventOutput,
    types.AggregatesAnswer,
    types.LayoutRequest,
    types.LayoutAnswer,
    types.Deleted,
    types.ErrorAnswer,
    types.GatewayAnswer,
    types.Health,
)


def openapi_document() -> dict[str, Any]:
    """Return the API's OpenAPI 3.1 document."""
    _, components = msgspec.json.schema_components(
        _TYPES, ref_template="#/components/schemas/{name}"
    )
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Spillway",
            "version": "1",
            "description": "Write-heavy, time-ordered events: sharded ingest, ordered reads. "
            "Another "
            "method on one of these paths is answered by 405 with Allow, another path by 404, both "
            "as ErrorAnswer",
        },
        "paths": _paths(),
        "components": {"schemas": components},
    }


def methods_of(path: str) -> list[str]:
    """Return the methods that a path has, in order; none where there is no such path."""
    return sorted(method.upper() for method in _paths().get(path, ()))


def _paths() -> dict[str, Any]:
    missing = {"404": _answer("No such event", types.ErrorAnswer)}
    unknown = {"404": _answer("Nothing was written to the series yet", types.ErrorAnswer)}
    return {
        "/v1/events": {
            "post": _INGEST,
            "get": _call("Read a range in order", types.EventsPage, PageParameters),
        },
        "/v1/events/one": {
            "get": _call("Read one event", types.EventOutput, EventParameters, missing),
            "delete": _call("Delete one event", types.Deleted, IdentityParameters),
        },
        "/v1/aggregates": {
            "get": _call(
                "Aggregate a range by intervals", types.AggregatesAnswer, AggregateParameters
            )
        },
        "/v1/export": {
            "get": _call(
                "Read a range in bulk", types.EventOutput, ExportParameters, {"200": _EXPORTED}
            )
        },
        "/v1/layout": {
            "get": _call("Read a layout", types.LayoutAnswer, SeriesParameters, unknown),
            "put": {
                **_call("Set shard counts", types.LayoutAnswer, SeriesParameters),
                "requestBody": _body(types.LayoutRequest),
            },
        },
        "/v1/healthz": {"get": _call("Say that the service answers", types.Health)},
        "/v1/openapi.json": {
            "get": {"summary": "This document", "responses": {"200": _DOCUMENT, **_FAILURES}}
        },
    }


def _answer(description: str, *kinds: type) -> dict[str, Any]:
    """Return a response of JSON that is one of these types."""
    refs = [_ref(kind) for kind in kinds]
    schema = refs[0] if len(refs) == 1 else {"anyOf": refs}
    return {"description": description, "content": {"application/json": {"schema": schema}}}


def _retry(description: str, *kinds: type) -> dict[str, Any]:
    return {**_answer(description, *kinds), "headers": {"Retry-After": _RETRY_AFTER}}


def _body(kind: type) -> dict[str, Any]:
    return {"required": True, "content": {"application/json": {"schema": _ref(kind)}}}


def _ref(kind: type) -> dict[str, str]:
    return {"$ref": f"#/components/schemas/{kind.__name__}"}


def _call(
    summary: str,
    answer: type,
    parameters: type | None = None,
    further: Mapping[str, Any] = MappingProxyType({}),
) -> dict[str, Any]:
    described: dict[str, Any] = {
        "summary": summary,
        "responses": {"200": _answer("As asked", answer), **_FAILURES, **further},
    }
    if parameters is not None:
        described["parameters"] = [
            {"in": "query", **each._asdict()} for each in describe_parameters(parameters).values()
        ]
        described["responses"]["400"] = _INVALID
    return described


_RETRY_AFTER: Final = {
    "description": "Seconds to wait; API Gateway's own answers have none",
    "schema": {"type": "integer", "minimum": 1},
}
_INVALID: Final = _answer(
    "A parameter or the body is wrong: the message names it", types.ErrorAnswer
)
_FAILURES: Final = {
    "403": _answer("Not signed, or not allowed to call", types.ErrorAnswer, types.GatewayAnswer),
    "429": _retry("Throttled: try again", types.ErrorAnswer, types.GatewayAnswer),
    "500": _answer("A defect, or the function failed", types.ErrorAnswer, types.GatewayAnswer),
    "503": _retry("Storage is out of reach: try again", types.ErrorAnswer, types.GatewayAnswer),
}
_DOCUMENT: Final = {
    "description": "OpenAPI 3.1",
    "content": {"application/json": {"schema": {"type": "object"}}},
}
_TEXT_HEADER: Final = {"schema": {"type": "string"}}
_EXPORTED: Final = {
    "description": "Events, one a line. Only `Spillway-Complete: true` ends the export",
    "headers": {
        "Spillway-Complete": {
            "description": "Whether these were the last events",
            "required": True,
            "schema": {"type": "boolean"},
        },
        "Spillway-Cursor": {"description": "For the next answer", **_TEXT_HEADER},
        "Link": {"description": 'The next answer, `rel="next"`', **_TEXT_HEADER},
        "Spillway-Reason": {
            "description": "Why it is not complete: size, deadline, read_units, or the code of a "
            "storage error",
            **_TEXT_HEADER,
        },
        "Spillway-Requests": {"description": "Queries sent", "schema": {"type": "integer"}},
        "Spillway-Read-Units": {"description": "Read units spent", "schema": {"type": "number"}},
    },
    "content": {"application/x-ndjson": {"schema": _ref(types.EventOutput)}},
}
_REFUSED: Final = (types.IngestAnswer, types.ErrorAnswer, types.GatewayAnswer)
_INGEST: Final = {
    "summary": "Write up to 1,000 events and 4 MB; each is accepted or rejected by itself",
    "parameters": [
        {
            "in": "header",
            "name": "Idempotency-Key",
            "description": "Ids that are left out derive from it and the position, so the whole "
            "request can be sent again blindly",
            "schema": {"type": "string", "minLength": 1, "maxLength": 255},
        }
    ],
    "requestBody": {
        "required": True,
        "content": {
            "application/json": {"schema": _ref(types.IngestRequest)},
            "application/x-ndjson": {"schema": _ref(types.EventInput)},
        },
    },
    "responses": {
        "200": _answer("All accepted", types.IngestAnswer),
        "207": _answer("Some accepted, or worth retrying", types.IngestAnswer),
        "400": _answer(
            "Nothing accepted, nothing worth retrying: IngestAnswer; or the request as a whole is "
            "not valid: ErrorAnswer",
            types.IngestAnswer,
            types.ErrorAnswer,
        ),
        "403": _FAILURES["403"],
        "413": _answer("Over 1,000 events or 4 MB", types.ErrorAnswer, types.GatewayAnswer),
        "429": _retry("All throttled: try again", *_REFUSED),
        "500": _FAILURES["500"],
        "503": _retry("Storage is out of reach, or time ran out: try again", *_REFUSED),
    },
}
