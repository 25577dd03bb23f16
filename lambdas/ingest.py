"""POST /v1/events: writes events and answers for each of them."""

from random import Random

from aws_lambda_powertools import Logger, Metrics

from lambdas.api.ingest_app import create_app
from lambdas.environment import open_store, read_environment
from lambdas.scaling_log import ScalingLog

__all__ = ["handler"]

logger = Logger()
metrics = Metrics()
random = Random().random  # noqa: S311  which series a log line names
store = open_store(read_environment(), ScalingLog(logger, metrics).note)
handler = create_app(store, logger, metrics, random)
