"""Constructs for AWS CDK apps: the tables, the scaler, the functions' code, and their settings.

`docs/constructs.md` shows how to use them. Only this package of the library imports `aws_cdk`.
"""

from spillway.cdk.alarms import Audience
from spillway.cdk.bundle import function_code
from spillway.cdk.scaler import ShardScaler
from spillway.cdk.settings import (
    ALARMS,
    EVENTS,
    FUNCTIONS,
    GROWTH,
    ON_DEMAND,
    SCALER,
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
from spillway.cdk.tables import ShardedEventTable

__all__ = [
    "ALARMS",
    "EVENTS",
    "FUNCTIONS",
    "GROWTH",
    "ON_DEMAND",
    "SCALER",
    "AlarmRule",
    "AlarmSettings",
    "Audience",
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
