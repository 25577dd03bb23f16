"""What the functions are told: names of tables and the settings of the stage."""

from stacks.config import Stage
from stacks.storage import StorageStack

__all__ = ["function_environment"]


def function_environment(*, stage: Stage, storage: StorageStack) -> dict[str, str]:
    """Return the environment of every function; times in seconds and days, 0 meaning none."""
    environment = {
        "SPILLWAY_TABLE": storage.events.table_name,
        "SPILLWAY_LAYOUTS": storage.layouts.table_name,
        "SPILLWAY_USAGE": storage.usage.table_name,
        "SPILLWAY_TIME_BUCKET": stage.bucket.value,
        "SPILLWAY_MODE": stage.mode,
        "SPILLWAY_SHARDS": str(stage.initial_shards),
        "SPILLWAY_INDEX_SHARDS": str(stage.initial_index_shards),
        "SPILLWAY_RETENTION_DAYS": str(stage.event_retention_days),
        "SPILLWAY_LATE_LIMIT_SECONDS": str(stage.late_limit_seconds),
        "SPILLWAY_PROJECTION": stage.projection,
        "POWERTOOLS_METRICS_NAMESPACE": "Spillway",
        "POWERTOOLS_LOG_LEVEL": stage.log_level,
    }
    if stage.dynamodb_endpoint is not None:  # the SDK reads it by itself
        environment["AWS_ENDPOINT_URL_DYNAMODB"] = stage.dynamodb_endpoint
    return environment
