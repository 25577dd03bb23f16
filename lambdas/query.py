"""GET /v1/…: events, exports, aggregates, layouts, the API's description; and unknown paths."""

from aws_lambda_powertools import Logger

from lambdas.api.query_app import create_app
from lambdas.environment import open_store, read_environment

__all__ = ["handler"]

handler = create_app(open_store(read_environment()), Logger())
