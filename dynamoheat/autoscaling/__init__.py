"""Application Auto Scaling of provisioned tables, and the limits on lowering their capacity.

    minute's consumption ──▶ tracking: target tracking ──▶ decreases: may it be lowered now? ──▶ UpdateTable

`tracking` decides for one capacity from its figures alone; `scaled` watches the tables of a `Heat` and
changes them. All times are seconds; days are UTC's where the clock is the epoch's.
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
