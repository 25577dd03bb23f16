"""The scaler: follows throttling by alarms and a schedule, in minutes.

It does what writers did not or could not: grow layouts, raise capacity, shrink idle layouts.
"""

from spillway.control.capacity import CapacityBounds
from spillway.control.cloudwatch import CloudWatchView, capacity_through
from spillway.control.monitoring import (
    AlarmState,
    MonitoringPort,
    Signal,
    SignalKind,
    ThrottledKey,
    parse_signal,
)
from spillway.control.scaler import Scaler, ScalerOptions, TableNames, open_scaler

__all__ = [
    "AlarmState",
    "CapacityBounds",
    "CloudWatchView",
    "MonitoringPort",
    "Scaler",
    "ScalerOptions",
    "Signal",
    "SignalKind",
    "TableNames",
    "ThrottledKey",
    "capacity_through",
    "open_scaler",
    "parse_signal",
]
