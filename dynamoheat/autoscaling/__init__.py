"""Application Auto Scaling of provisioned tables, and the limits on lowering their capacity.

    minute's consumption ──▶ tracking: target tracking ──▶ decreases: may it be lowered now? ──▶ UpdateTable

`tracking` decides for one capacity from its figures alone; `scaled` watches the tables of a `Heat` and
changes them. All times are seconds; days are UTC's where the clock is the epoch's.
"""

from dynamoheat.autoscaling.decreases import Decreases
from dynamoheat.autoscaling.scaled import Change, ScaledTable
from dynamoheat.autoscaling.tracking import ScalingPolicy, Tracker

__all__ = ["Change", "Decreases", "ScaledTable", "ScalingPolicy", "Tracker"]
