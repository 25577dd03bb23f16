"""Answers in JSON, and errors of the API: one shape, never a stack trace."""

import re
from collections.abc import Callable, Collection
from http import HTTPStatus
from typing import Any, Final

import msgspec
from aws_lambda_powertools.event_handler import Response
from aws_lambda_powertools.event_handler.api_gateway import APIGatewayHttpResolver
from aws_lambda_powertools.logging import Logger
from msgspec import UNSET

from lambdas.api.types import ErrorAnswer, ErrorBody
from spillway import InvalidInputError, StorageError, ThrottledError, shorten

__all__ = [
    "RequestError",
    "answer_json",
    "handle_errors",
    "split_validation_error",
    "to_message",
]

_MAX_MESSAGE: Final = 400  # characters, so that an answer holds a thousand messages
_RETRY_AFTER: Final = {HTTPStatus.TOO_MANY_REQUESTS: "1", HTTPStatus.SERVICE_UNAVAILABLE: "2"}


_FIELD: Final = re.compile(r" - at `\$\.?([^`]*)`$")
_MISSING: Final = re.compile(r"Object missing required field `([^`]+)`")


class RequestError(Exception):
    """A request that can't be answered: its status, and what the error's body says."""

    def __init__(self, status: HTTPStatus, code: str, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.code = code


def answer_json(status: int, body: Any) -> Response[Any]:
    """Return an answer with a JSON body: ready-made text, or anything that msgspec encodes."""
    text = body if isinstance(body, str) else msgspec.json.encode(body).decode()
    seconds = _RETRY_AFTER.get(HTTPStatus(status))
    headers = {"Retry-After": seconds} if seconds else {}
    return Response(
        status_code=status, content_type="application/json", body=text, headers=dict(headers)
    )


def to_message(text: str) -> str:
    """Return text that may name what a client sent, bounded and as valid Unicode."""
    return shorten(text, _MAX_MESSAGE).encode(errors="replace").decode()


def _error(status: int, code: str, message: str, detail: Any = UNSET) -> Response[Any]:
    body = ErrorAnswer(error=ErrorBody(code=code, message=to_message(message), detail=detail))
    return answer_json(status, body)


def handle_errors(
    app: APIGatewayHttpResolver,
    logger: Logger,
    methods_of: Callable[[str], Collection[str]] = lambda _: (),
) -> None:
    """Make every failure of the app's routes an error of the API's shape.

    `methods_of` returns the methods that a path has in the API: any other is 405, not 404.
    """

    def on_storage(error: StorageError) -> Response[Any]:
        logger.warning("storage failed", extra={"code": error.code, "reason": error.message})
        return _on_storage(error)

    def on_unknown_path(_: Exception) -> Response[Any]:
        method, path = app.current_event.http_method, app.current_event.path
        allowed = ", ".join(methods_of(path))
        if not allowed:
            message = f"{shorten(f'{method} {path}')} is not part of this API: see /v1/openapi.json"
            return _error(HTTPStatus.NOT_FOUND, "unknown_path", message)
        message = f"{shorten(path)} has no {shorten(method)}: it has {allowed}"
        answer = _error(HTTPStatus.METHOD_NOT_ALLOWED, "unknown_method", message)
        answer.headers["Allow"] = allowed
        return answer

    def on_defect(error: Exception) -> Response[Any]:
        logger.error("unexpected error", exc_info=error)
        message = "an unexpected error; the function's log has it under this request's id"
        return _error(HTTPStatus.INTERNAL_SERVER_ERROR, "internal_error", message)

    app.exception_handler(RequestError)(_on_request)
    app.exception_handler(InvalidInputError)(_on_input)
    app.exception_handler(StorageError)(on_storage)
    app.exception_handler(Exception)(on_defect)
    app.not_found(on_unknown_path)


def _on_request(error: RequestError) -> Response[Any]:
    return _error(error.status, error.code, str(error))


def _on_input(error: InvalidInputError) -> Response[Any]:
    return _error(HTTPStatus.BAD_REQUEST, error.code, str(error))


def _on_storage(error: StorageError) -> Response[Any]:
    if isinstance(error, ThrottledError):
        message = "DynamoDB throttles this series: try again"
        return _error(HTTPStatus.TOO_MANY_REQUESTS, "throttled", message)
    message = f"DynamoDB is out of reach or refuses ({error.code}): try again"
    return _error(HTTPStatus.SERVICE_UNAVAILABLE, "storage_unavailable", message)


def split_validation_error(error: msgspec.ValidationError) -> tuple[str, str]:
    """Return the field of a msgspec error, empty for the whole value, and what is wrong."""
    message = str(error)
    missing = _MISSING.match(message)
    if missing:
        return missing[1], "is missing"
    field = _FIELD.search(message)
    reason = shorten(_FIELD.sub("", message))  # it names unknown fields
    return field[1] if field else "", reason
