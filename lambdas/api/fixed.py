"""Answers that need no storage: that the service answers, and its description."""

from http import HTTPStatus
from typing import Any

from aws_lambda_powertools.event_handler import Response

from lambdas.api.errors import answer_json
from lambdas.api.openapi import openapi_document
from lambdas.api.types import Health

__all__ = ["describe", "health"]


def health() -> Response[Any]:
    """Tell that the function answers."""
    return answer_json(HTTPStatus.OK, Health(status="ok"))


def describe() -> Response[Any]:
    """Answer the API's OpenAPI document."""
    return answer_json(HTTPStatus.OK, openapi_document())
