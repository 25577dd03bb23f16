"""The scaler: answers alarms, by SNS or directly, and the schedule."""

from datetime import timedelta
from typing import Any, Final

from aws_lambda_powertools import Logger, Metrics
from aws_lambda_powertools.metrics import MetricUnit
from aws_lambda_powertools.utilities.typing import LambdaContext
from botocore.config import Config

from lambdas.alarms.deduplicator import AlarmDeduplicator
from lambdas.alarms.handler import AlarmHandler
from lambdas.alarms.messages import decode
from lambdas.api.scaling import ScalingLog
from lambdas.environment import CLIENT, ScalerEnvironment, open_client, read_environment_as
from lambdas.start import started
from spillway import Runtime
from spillway.control import (
    CapacityBounds,
    CloudWatchView,
    ScalerOptions,
    TableNames,
    open_scaler,
)
from spillway.dynamodb.boto import call_through

__all__ = ["handler"]

_CLOUDWATCH: Final = Config(connect_timeout=2, read_timeout=10, retries={"mode": "standard"})
_MARGIN_SECONDS: Final = 10.0  # in which what is under way ends

logger = Logger()
metrics = Metrics()
told = read_environment_as(ScalerEnvironment)
runtime = Runtime()
hours = told.shrink_window_hours
scaler = open_scaler(
    call_through(open_client("dynamodb", CLIENT)),
    CloudWatchView(open_client("cloudwatch", _CLOUDWATCH), told.table, told.alarm_prefix),
    TableNames(events=told.table, layouts=told.layouts, usage=told.usage),
    settings=told.settings(),
    options=ScalerOptions(
        dry_run=told.dry_run,
        shrink_window=timedelta(hours=hours) if hours else None,
        bounds=CapacityBounds(
            warm=told.max_warm_write_units, provisioned=told.max_provisioned_write_units
        ),
    ),
    observe=ScalingLog(logger, metrics).note,
    runtime=runtime,
)
desk = AlarmHandler(scaler, AlarmDeduplicator(runtime.now), logger, metrics)


@metrics.log_metrics
@logger.inject_lambda_context(clear_state=True)
def handler(event: Any, context: LambdaContext) -> None:
    """Deal with what an event holds; what is not for the scaler is logged and dropped."""
    metrics.add_metric("Runs", MetricUnit.Count, 1)
    left = context.get_remaining_time_in_millis() / 1_000
    desk.deal_with(decode(event), runtime.monotonic() + left - _MARGIN_SECONDS)


started()
