"""What other CDK apps import: the tables, the scaler, its code, and their settings. `docs/constructs.md` shows how."""

from stacks.code import function_code
from stacks.config import ALARMS, EVENTS, FUNCTIONS, GROWTH, ON_DEMAND, SCALER
from stacks.settings import (
    AlarmRule,
    AlarmSettings,
    Capacity,
    EventSettings,
    FunctionSettings,
    GrowthSettings,
    OnDemand,
    Provisioned,
    ScaledUnits,
    ScalerSettings,
    Units,
)
from stacks.shard_scaler import ShardScaler
from stacks.sharded_event_table import ShardedEventTable

__all__ = [
    "ALARMS",
    "EVENTS",
    "FUNCTIONS",
    "GROWTH",
    "ON_DEMAND",
    "SCALER",
    "AlarmRule",
    "AlarmSettings",
    "Capacity",
    "EventSettings",
    "FunctionSettings",
    "GrowthSettings",
    "OnDemand",
    "Provisioned",
    "ScaledUnits",
    "ScalerSettings",
    "ShardScaler",
    "ShardedEventTable",
    "Units",
    "function_code",
]
