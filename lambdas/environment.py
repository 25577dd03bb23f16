"""What a function takes from its environment, and the event store made of it."""

import os
from collections.abc import Mapping
from datetime import timedelta
from typing import Any, Final, Literal

import boto3
import msgspec
from aws_lambda_powertools import Logger, single_metric
from aws_lambda_powertools.metrics import MetricUnit
from botocore.config import Config

from spillway import Bucket, DaxCall, EventStore, Mode, Settings, StorageError
from spillway.scaling.report import Observer, ignore
from spillway.storage.port import Call

__all__ = ["Environment", "open_store", "read_environment"]

_PREFIX: Final = "SPILLWAY_"
_DAX: Final = "DAX_ENDPOINT"
# Requests to DynamoDB take milliseconds: give up soon enough to try again within the caller's patience.
_CLIENT: Final = Config(
    connect_timeout=1, read_timeout=3, max_pool_connections=16, retries={"total_max_attempts": 1}
)


class Environment(msgspec.Struct, frozen=True, kw_only=True):
    """The variables that the stack sets, without their prefix `SPILLWAY_`; `dax_endpoint` has none."""

    table: str
    layouts: str
    usage: str
    time_bucket: Bucket
    mode: Mode
    shards: int
    index_shards: int
    retention_days: int
    late_limit_seconds: int
    projection: Literal["ALL", "KEYS_ONLY", "INCLUDE"]
    dax_endpoint: str = ""  # none

    def settings(self) -> Settings:
        """Return the settings of the store; 0 switches retention and late limit off."""
        days, late = self.retention_days, self.late_limit_seconds
        return Settings(
            mode=self.mode,
            bucket=self.time_bucket,
            shards=self.shards,
            index_shards=self.index_shards,
            retention=timedelta(days=days) if days else None,
            late_limit=timedelta(seconds=late) if late else None,
            index_has_payload=self.projection == "ALL",
        )


def read_environment(variables: Mapping[str, str] | None = None) -> Environment:
    """Read the environment; msgspec.ValidationError names the variable that is missing or wrong."""
    source = os.environ if variables is None else variables
    own = {
        name.removeprefix(_PREFIX).lower(): value
        for name, value in source.items()
        if name.startswith(_PREFIX)
    }
    own["dax_endpoint"] = source.get(_DAX, "")
    return msgspec.convert(own, Environment, strict=False)


def open_store(environment: Environment, observe: Observer | None = None) -> EventStore:
    """Return the event store of a function: once a process, outside the handler.

    With an observer it also records what writers want, and grows layouts by it.
    """
    return EventStore(
        boto3.client("dynamodb", config=_CLIENT),
        table=environment.table,
        layouts=environment.layouts,
        usage=environment.usage if observe else None,
        observe=observe or ignore,
        settings=environment.settings(),
        cache=_reporting(DaxCall(environment.dax_endpoint)) if environment.dax_endpoint else None,
    )


def _reporting(dax: Call) -> Call:
    """Return a port whose failures are logged and counted as the metric `DaxFailures`."""
    logger = Logger()

    def call(operation: str, request: Mapping[str, Any], /) -> dict[str, Any]:
        try:
            return dax(operation, request)
        except StorageError as error:
            logger.warning("DAX failed", extra={"operation": operation, "code": error.code})
            with single_metric(name="DaxFailures", unit=MetricUnit.Count, value=1):
                pass  # written at once
            raise

    return call
