"""The scaler: handles alarms and the schedule, for what writers did not or could not do."""

from spillway.control.capacity import CapacityBounds
from spillway.control.cloudwatch import CloudWatchView
from spillway.control.factory import ScalerOptions, TableNames, open_scaler
from spillway.control.monitoring import (
    AlarmState,
    MonitoringPort,
    Signal,
    SignalKind,
    parse_signal,
)
from spillway.control.scaler import Scaler

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
    "open_scaler",
    "parse_signal",
]
