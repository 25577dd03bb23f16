"""Scaling events in a function's log and metrics."""

from dataclasses import asdict
from typing import Any, Final

from aws_lambda_powertools import Logger, Metrics
from aws_lambda_powertools.metrics import MetricUnit

from spillway import ScalingEvent, ScalingKind

__all__ = ["ScalingLog"]

_METRICS: Final = {
    ScalingKind.GREW: "LayoutsGrown",
    ScalingKind.LOST_RACE: "LayoutRacesLost",
    ScalingKind.STOPPED: "GrowthStopped",
    ScalingKind.CAPACITY_LIMITED: "CapacityLimited",
    ScalingKind.SHRANK: "LayoutsShrunk",
    ScalingKind.WARMED: "WarmThroughputRaised",
    ScalingKind.PROVISIONED: "ProvisionedThroughputRaised",
    ScalingKind.AT_BOUND: "CapacityBoundReached",
    ScalingKind.READS_THROTTLED: "ReadsThrottled",
    ScalingKind.LAYOUTS_THROTTLED: "LayoutTableThrottled",
}
_DRY_RUN: Final = "DecisionsNotCarriedOut"


class ScalingLog:
    """Logs scaling events and counts them by kind. Names hot sharding keys, never payloads."""

    def __init__(self, logger: Logger, metrics: Metrics) -> None:
        self._logger = logger
        self._metrics = metrics

    def note(self, event: ScalingEvent) -> None:
        """Log and count one event."""
        details: dict[str, Any] = {key: value for key, value in asdict(event).items() if value}
        self._logger.info("scaling", extra={"scaling": details})
        name = _DRY_RUN if event.dry_run else _METRICS[event.kind]
        self._metrics.add_metric(name, MetricUnit.Count, 1)
        if event.hot_sharding_keys:
            count = len(event.hot_sharding_keys)
            self._metrics.add_metric("HotShardingKeys", MetricUnit.Count, count)
            self._metrics.add_metadata("hot_sharding_keys", list(event.hot_sharding_keys))
