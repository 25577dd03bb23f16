"""The environment of a function, and the event store that it configures."""

import os
from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from functools import cache
from typing import Any, Final, TypeVar

import botocore.session
import msgspec
from aws_lambda_powertools import Logger, single_metric
from aws_lambda_powertools.metrics import MetricUnit
from botocore.config import Config

from lambdas.start import finish_start
from spillway import (
    MAX_SHARDS,
    PARTITION_WCU,
    Call,
    CapacityMetrics,
    CapacityUse,
    DaxCall,
    EventStore,
    Growth,
    GrowthPolicy,
    Observer,
    Runtime,
    Settings,
    ShardingMode,
    StorageError,
    ThrottleTarget,
    TimeBucket,
)

__all__ = [
    "CLIENT",
    "Environment",
    "ScalerEnvironment",
    "open_client",
    "open_store",
    "read_environment",
    "read_environment_as",
]

_PREFIX: Final = "SPILLWAY_"
_DAX: Final = "DAX_ENDPOINT"
# Requests to DynamoDB take milliseconds: give up soon enough to try again in time for the caller.
CLIENT: Final = Config(
    connect_timeout=1, read_timeout=3, max_pool_connections=16, retries={"total_max_attempts": 1}
)


class Environment(msgspec.Struct, frozen=True, kw_only=True):
    """The variables that the stack sets, without `SPILLWAY_`; `dax_endpoint` has no prefix."""

    table: str
    layouts: str
    usage: str
    time_bucket: TimeBucket
    mode: ShardingMode
    shards: int
    index_shards: int
    retention_days: int
    late_limit_seconds: int
    grow: bool = True  # whether writers grow layouts by themselves
    max_shards: int = MAX_SHARDS
    cooldown_seconds: float = 1.0  # between two changes of a layout
    partition_wcu: float = PARTITION_WCU
    dax_endpoint: str = ""  # empty: no cache

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
            growth=Growth(
                policy=GrowthPolicy.DEMAND if self.grow else None,
                max_shards=self.max_shards,
                cooldown_seconds=self.cooldown_seconds,
                partition_wcu=self.partition_wcu,
            ),
        )


class ScalerEnvironment(Environment, frozen=True, kw_only=True):
    """Variables of the scaler.

    Attributes:
        alarm_prefix: of the names of the alarms to look after.
        dry_run: whether it only logs what it would do.
        shrink_window_hours: how long usage must have been low before a layout shrinks; 0: never.
        max_warm_write_units: bound up to which warm throughput is raised; 0: never.
        max_provisioned_write_units: bound up to which provisioned throughput is raised; 0: never.
    """

    alarm_prefix: str
    dry_run: bool
    shrink_window_hours: float
    max_warm_write_units: int
    max_provisioned_write_units: int

    def settings(self) -> Settings:
        """Return the settings of the store; `grow` concerns only writers."""
        settings = Environment.settings(self)
        growth = replace(settings.growth, policy=GrowthPolicy.DEMAND)
        return replace(settings, growth=growth)


AnyEnvironment = TypeVar("AnyEnvironment", bound=Environment)


def read_environment(variables: Mapping[str, str] | None = None) -> Environment:
    """Read the environment; msgspec.ValidationError names the variable that is missing or wrong."""
    return read_environment_as(Environment, variables)


def read_environment_as(
    kind: type[AnyEnvironment], variables: Mapping[str, str] | None = None
) -> AnyEnvironment:
    """Read the environment of a function that has variables of its own."""
    source = os.environ if variables is None else variables
    own = {
        name.removeprefix(_PREFIX).lower(): value
        for name, value in source.items()
        if name.startswith(_PREFIX)
    }
    own["dax_endpoint"] = source.get(_DAX, "")
    return msgspec.convert(own, kind, strict=False)


def open_client(service: str, config: Config) -> Any:
    """Return a client as `boto3.client` does. Importing boto3 takes a tenth of a cold start."""
    return _session().create_client(service, config=config)


@cache
def _session() -> botocore.session.Session:
    return botocore.session.get_session()


def open_store(environment: Environment, observe: Observer | None = None) -> EventStore:
    """Return the event store of a function: once a process, outside the handler.

    With an observer it also records usage, and grows layouts by it. Where an endpoint throttles
    without a reason, such a store asks CloudWatch whether capacity is used up.
    """
    grows = observe is not None and environment.grow
    store = EventStore(
        open_client("dynamodb", CLIENT),
        table=environment.table,
        layouts=environment.layouts,
        usage=environment.usage if observe else None,
        observe=observe,
        settings=environment.settings(),
        capacity=_capacity_metrics(environment.table) if grows else None,
        cache=_report_failures(DaxCall(environment.dax_endpoint))
        if environment.dax_endpoint
        else None,
    )
    finish_start()  # a function makes nothing else of size before its first call
    return store


def _capacity_metrics(table: str) -> CapacityMetrics:
    """Return CloudWatch's figures of a table; the client is made at the first use, off cold starts."""

    @cache
    def metrics() -> CapacityMetrics:
        from spillway.control import capacity_through  # noqa: PLC0415  rarely needed

        return capacity_through(open_client("cloudwatch", CLIENT), table, Runtime().now)

    def use() -> Mapping[ThrottleTarget, CapacityUse]:
        return metrics()()

    return use


def _report_failures(dax: Call) -> Call:
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
