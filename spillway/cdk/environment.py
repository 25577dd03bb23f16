"""Environment variables of the functions; `lambdas/environment.py` reads them."""

from aws_cdk import aws_dynamodb as dynamodb

from spillway.cdk.settings import EventSettings, FunctionSettings, GrowthSettings

__all__ = [
    "function_environment",
    "growth_environment",
    "scaler_environment",
    "table_environment",
    "writer_environment",
]


def table_environment(
    *,
    events: dynamodb.ITableV2,
    layouts: dynamodb.ITableV2,
    usage: dynamodb.ITableV2,
    settings: EventSettings,
) -> dict[str, str]:
    """Return the variables of every function on these tables; 0 seconds or days mean none."""
    return {
        "SPILLWAY_TABLE": events.table_name,
        "SPILLWAY_LAYOUTS": layouts.table_name,
        "SPILLWAY_USAGE": usage.table_name,
        "SPILLWAY_TIME_BUCKET": settings.bucket.value,
        "SPILLWAY_MODE": settings.mode,
        "SPILLWAY_SHARDS": str(settings.shards),
        "SPILLWAY_INDEX_SHARDS": str(settings.index_shards),
        "SPILLWAY_RETENTION_DAYS": str(settings.retention_days),
        "SPILLWAY_LATE_LIMIT_SECONDS": str(settings.late_limit_seconds),
    }


def function_environment(settings: FunctionSettings) -> dict[str, str]:
    """Return the variables on logs, metrics and the endpoint, the same for every function."""
    environment = {
        "POWERTOOLS_METRICS_NAMESPACE": settings.metrics_namespace,
        "POWERTOOLS_LOG_LEVEL": settings.log_level,
    }
    if settings.endpoint is not None:  # the SDK reads them by itself
        environment["AWS_ENDPOINT_URL_CLOUDWATCH"] = settings.endpoint
        environment["AWS_ENDPOINT_URL_DYNAMODB"] = settings.endpoint
    return environment


def growth_environment(growth: GrowthSettings) -> dict[str, str]:
    """Return the variables of both functions that grow layouts: ingest and the scaler."""
    environment = {
        "SPILLWAY_MAX_SHARDS": str(growth.max_shards),
        "SPILLWAY_COOLDOWN_SECONDS": str(growth.cooldown_seconds),
    }
    if growth.partition_wcu is not None:
        environment["SPILLWAY_PARTITION_WCU"] = str(growth.partition_wcu)
    return environment


def writer_environment(growth: GrowthSettings) -> dict[str, str]:
    """Return the variables on growth of the ingest function, which may grow layouts itself."""
    return {**growth_environment(growth), "SPILLWAY_GROW": _boolean(growth.writers)}


def scaler_environment(growth: GrowthSettings, *, alarm_prefix: str) -> dict[str, str]:
    """Return the variables of the scaler alone; names of its alarms begin with the prefix."""
    return {
        "SPILLWAY_ALARM_PREFIX": alarm_prefix,
        "SPILLWAY_DRY_RUN": _boolean(growth.dry_run),
        "SPILLWAY_SHRINK_WINDOW_HOURS": str(growth.shrink_window_hours),
        "SPILLWAY_MAX_WARM_WRITE_UNITS": str(growth.max_warm_write_units),
        "SPILLWAY_MAX_PROVISIONED_WRITE_UNITS": str(growth.max_provisioned_write_units),
    }


def _boolean(value: bool) -> str:
    return "true" if value else "false"
