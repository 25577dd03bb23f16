"""Application Auto Scaling of provisioned tables, and the quota on lowering their capacity.

    a minute's consumption ─▶ target tracking ─▶ decrease quota ─▶ UpdateTable

`tracking` decides on one capacity from its figures alone. `scaled_table` watches the tables of a
`Heat` and updates them. All times are seconds; days are UTC's if the clock is the epoch's.
"""

from dynamoheat.autoscaling.scaled_table import AutoScalingChange, ScaledTable
from dynamoheat.autoscaling.tracking import CapacityTracker, DecreaseQuota, TargetTrackingPolicy

__all__ = [
    "AutoScalingChange",
    "CapacityTracker",
    "DecreaseQuota",
    "ScaledTable",
    "TargetTrackingPolicy",
]
