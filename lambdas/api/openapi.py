"""The OpenAPI document, generated from the types that requests and answers are made of."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final

import msgspec

from lambdas.api import types
from lambdas.api.aggregate_types import AggregatesAnswer
from lambdas.api.aggregates import AGGREGATE_PARAMETERS
from lambdas.api.parameters import (
    EVENT_PARAMETERS,
    EXPORT_PARAMETERS,
    IDENTITY_PARAMETERS,
    LAYOUT_PARAMETERS,
    PAGE_PARAMETERS,
    Parameter,
)

__all__ = ["openapi_document"]

_TYPES: Final = (
    types.IngestRequest,
    types.IngestAnswer,
    types.EventsPage,
    types.EventOutput,
    AggregatesAnswer,
    types.LayoutRequest,
    types.LayoutAnswer,
    types.Deleted,
    types.ErrorAnswer,
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
            "description": "Write-heavy, time-ordered events: sharded ingest, ordered reads",
        },
        "paths": _paths(),
        "components": {"schemas": components},
    }


def _paths() -> dict[str, Any]:
    missing = {"404": _answer("No such event", types.ErrorAnswer)}
    unknown = {"404": _answer("Nothing was written to the series yet", types.ErrorAnswer)}
    return {
        "/v1/events": {
            "post": _INGEST,
            "get": _call("Read a range in order", types.EventsPage, PAGE_PARAMETERS),
        },
        "/v1/events/one": {
            "get": _call("Read one event", types.EventOutput, EVENT_PARAMETERS, missing),
            "delete": _call("Delete one event", types.Deleted, IDENTITY_PARAMETERS),
        },
        "/v1/aggregates": {
            "get": _call("Aggregate a range by intervals", AggregatesAnswer, AGGREGATE_PARAMETERS)
        },
        "/v1/export": {
            "get": {
                **_call("Read a range in bulk", types.EventOutput, EXPORT_PARAMETERS),
                "responses": {"200": _EXPORTED, **_FAILURES},
            }
        },
        "/v1/layout": {
            "get": _call("Read a layout", types.LayoutAnswer, LAYOUT_PARAMETERS, unknown),
            "put": {
                **_call("Set shard counts", types.LayoutAnswer, LAYOUT_PARAMETERS),
                "requestBody": _body(types.LayoutRequest),
            },
        },
        "/v1/healthz": {"get": _call("Tell that the service answers", types.Health)},
        "/v1/openapi.json": {
            "get": {"summary": "This document", "responses": {"200": {"description": "OpenAPI"}}}
        },
    }


def _answer(description: str, kind: type) -> dict[str, Any]:
    return {"description": description, "content": {"application/json": {"schema": _ref(kind)}}}


def _body(kind: type) -> dict[str, Any]:
    return {"required": True, "content": {"application/json": {"schema": _ref(kind)}}}


def _ref(kind: type) -> dict[str, str]:
    return {"$ref": f"#/components/schemas/{kind.__name__}"}


def _call(
    summary: str,
    answer: type,
    parameters: Sequence[Parameter] = (),
    further: Mapping[str, Any] = MappingProxyType({}),
) -> dict[str, Any]:
    described: dict[str, Any] = {
        "summary": summary,
        "responses": {"200": _answer("As asked", answer), **further},
    }
    if parameters:
        described["parameters"] = [{"in": "query", **each._asdict()} for each in parameters]
        described["responses"].update(_FAILURES)
    return described


_FAILURES: Final = {
    "400": _answer("A parameter is wrong: the message names it", types.ErrorAnswer),
    "429": _answer("Throttled: try again after Retry-After seconds", types.ErrorAnswer),
    "503": _answer("DynamoDB is out of reach: try again", types.ErrorAnswer),
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
            "description": "Why it is not complete: size, deadline, read_units, or the code of a storage error",
            **_TEXT_HEADER,
        },
        "Spillway-Requests": {"description": "Queries sent", "schema": {"type": "integer"}},
        "Spillway-Read-Units": {"description": "Read units spent", "schema": {"type": "number"}},
    },
    "content": {"application/x-ndjson": {"schema": _ref(types.EventOutput)}},
}
_INGEST: Final = {
    "summary": "Write up to 1,000 events and 4 MB; each is accepted or rejected by itself",
    "parameters": [
        {
            "in": "header",
            "name": "Idempotency-Key",
            "description": "Ids that are left out derive from it and the position: a blind retry doubles nothing",
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
        "400": _answer("Nothing accepted, nothing worth retrying", types.IngestAnswer),
        "413": _answer("Over 1,000 events or 4 MB", types.ErrorAnswer),
        "429": _answer("All throttled: try again after Retry-After seconds", types.IngestAnswer),
        "503": _answer(
            "DynamoDB is out of reach, or time ran out: try again after Retry-After seconds",
            types.IngestAnswer,
        ),
    },
}
