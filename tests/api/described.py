"""Requests and answers held against the API's own description."""

from collections.abc import Iterable, Mapping
from typing import Any, Final
from urllib.parse import parse_qsl

from jsonschema import Draft202012Validator, FormatChecker

from lambdas.api.openapi import openapi_document
from tests.support.gateway import Answer

__all__ = ["DOCUMENT", "check_answer", "check_taken"]

DOCUMENT: Final = openapi_document()
_MAX_LINES: Final = 20  # of an export that are looked at
_FORMATS: Final = FormatChecker(["date-time"])


def _whole(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    return {**schema, "components": DOCUMENT["components"]}


def _check(schema: Mapping[str, Any], value: Any) -> None:
    Draft202012Validator(_whole(schema), format_checker=_FORMATS).validate(value)


def _check_request(schema: Mapping[str, Any], value: Any) -> None:
    # Times are taken in forms that are close to RFC 3339: their format is not held against them.
    Draft202012Validator(_whole(schema)).validate(value)


def _operations(path: str) -> Mapping[str, Any]:
    return {method.upper(): each for method, each in DOCUMENT["paths"].get(path, {}).items()}


def check_answer(method: str, path: str, answer: Answer) -> None:
    """Check status, headers and body of an answer; ValidationError or AssertionError."""
    operations = _operations(path)
    if method not in operations:
        _check({"$ref": "#/components/schemas/ErrorAnswer"}, answer.body)
        assert answer.status == (405 if operations else 404)
        allowed = answer.headers.get("Allow", "")
        assert set(filter(None, allowed.split(", "))) == set(operations)
        return
    described = operations[method]["responses"][str(answer.status)]
    for name, header in described.get("headers", {}).items():
        assert name in answer.headers or not header.get("required")
        if name in answer.headers:
            _check(header["schema"], _typed(header["schema"], answer.headers[name]))
    kind = answer.headers["Content-Type"]
    schema = described["content"][kind]["schema"]
    lines = answer.body[:_MAX_LINES] if kind == "application/x-ndjson" else [answer.body]
    for each in lines:
        _check(schema, each)


def check_taken(
    method: str, path: str, query: str, headers: Mapping[str, str], bodies: Iterable[Any]
) -> None:
    """Check that a request which was answered as asked is one that the description allows.

    `bodies` are the JSON values of the body: one a line of NDJSON.
    """
    operation = _operations(path)[method]
    parameters = {(each["in"], each["name"]): each for each in operation.get("parameters", ())}
    given: dict[tuple[str, str], str] = {
        ("query", name): text for name, text in parse_qsl(query, keep_blank_values=True)
    }
    named = {name.lower(): text for name, text in headers.items()}
    for where, name in parameters:
        if where == "header" and name.lower() in named:
            given[where, name] = named[name.lower()]
    for key, text in given.items():
        schema = parameters[key]["schema"]
        _check_request(schema, _typed(schema, text))
    assert {key for key, each in parameters.items() if each.get("required")} <= given.keys()
    if "requestBody" in operation:
        kind = named.get("content-type", "application/json").partition(";")[0].lower()
        schema = operation["requestBody"]["content"][kind]["schema"]
        for each in bodies:
            _check_request(schema, each)


def _typed(schema: Mapping[str, Any], text: str) -> Any:
    """Return a parameter's or header's value as its schema names its type."""
    match schema.get("type"):
        case "integer":
            return int(text)
        case "number":
            return float(text)
        case "boolean":
            return {"true": True, "false": False}.get(text, text)
        case _:
            return text
