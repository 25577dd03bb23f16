"""The scaler: handles alarms, by SNS or directly, and the schedule."""

from datetime import timedelta
from typing import Final

from aws_lambda_powertools import Logger, Metrics
from botocore.config import Config

from lambdas.alarms.deduplicator import AlarmDeduplicator
from lambdas.alarms.handler import AlarmHandler, create_app
from lambdas.environment import CLIENT, ScalerEnvironment, open_client, read_environment_as
from lambdas.scaling_log import ScalingLog
from lambdas.start import finish_start
from spillway import Runtime
from spillway.control import (
    CapacityBounds,
    CloudWatchView,
    ScalerOptions,
    TableNames,
    open_scaler,
)

__all__ = ["handler"]

_CLOUDWATCH: Final = Config(connect_timeout=2, read_timeout=10, retries={"mode": "standard"})

logger = Logger()
metrics = Metrics()
runtime = Runtime()
config = read_environment_as(ScalerEnvironment)
hours = config.shrink_window_hours
scaler = open_scaler(
    open_client("dynamodb", CLIENT),
    CloudWatchView(open_client("cloudwatch", _CLOUDWATCH), config.table, config.alarm_prefix),
    TableNames(events=config.table, layouts=config.layouts, usage=config.usage),
    settings=config.settings(),
    options=ScalerOptions(
        dry_run=config.dry_run,
        shrink_window=timedelta(hours=hours) if hours else None,
        bounds=CapacityBounds(
            warm=config.max_warm_write_units, provisioned=config.max_provisioned_write_units
        ),
    ),
    observe=ScalingLog(logger, metrics).note,
    runtime=runtime,
)
alarms = AlarmHandler(scaler, AlarmDeduplicator(runtime.now), logger, metrics)
handler = create_app(alarms, logger, metrics, runtime.monotonic)
finish_start()
