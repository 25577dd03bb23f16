"""PUT /v1/layout and DELETE /v1/events/one: what an operator changes by hand."""

from aws_lambda_powertools import Logger

from lambdas.api.admin_app import create_app
from lambdas.environment import open_store, read_environment

__all__ = ["handler"]

handler = create_app(open_store(read_environment()), Logger())
