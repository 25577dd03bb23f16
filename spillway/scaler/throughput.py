"""Throughput that a table and its index have, from DescribeTable, and what it is raised to. Pure.

More shards can't help where a table has too few partitions for them: warm throughput is what makes DynamoDB add some. It
never decreases and costs once. Provisioned throughput is raised only where nothing else looks after it.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from spillway.keys import INDEX_NAME
from spillway.scaling.observation import Target

__all__ = [
    "Raise",
    "Throughput",
    "provisioned_update",
    "raised_provision",
    "raised_warmth",
    "throughput_of",
    "warm_update",
]

_WARM_STEP: Final = 2.0
_WARM_MARGIN: Final = 1.25  # over the demand, where that is beyond one step
_PROVISIONED_STEP: Final = 1.5
_SETTLES: Final = 120.0  # seconds until the metrics tell what an increase has brought


@dataclass(frozen=True, slots=True, kw_only=True)
class Throughput:
    """What a table or an index has; units a second.

    Attributes:
        active: whether it can be changed now: neither it nor its table is being changed.
        read, write: provisioned units, 0 on demand.
        warm_read, warm_write: what it is ready for at once, 0 where the endpoint does not say.
        raised_at: when its provisioned units were last raised, in epoch seconds; 0 never.
    """

    active: bool
    read: int
    write: int
    warm_read: int
    warm_write: int
    raised_at: float


@dataclass(frozen=True, slots=True)
class Raise:
    """Write units before and after; equal where the bound leaves no room."""

    before: int
    after: int

    @property
    def is_raise(self) -> bool:
        """Whether anything changes."""
        return self.after > self.before


def throughput_of(description: Mapping[str, Any], target: Target) -> Throughput | None:
    """Read `Table` of a DescribeTable answer; None where there is no such index."""
    part = description
    if target is Target.INDEX:
        indexes = {
            each["IndexName"]: each for each in description.get("GlobalSecondaryIndexes") or ()
        }
        if INDEX_NAME not in indexes:
            return None
        part = indexes[INDEX_NAME]
    provisioned = part.get("ProvisionedThroughput") or {}
    warm = part.get("WarmThroughput") or {}
    states = (
        description.get("TableStatus"),
        part.get("IndexStatus") or "ACTIVE",
        warm.get("Status") or "ACTIVE",
    )
    return Throughput(
        active=all(state == "ACTIVE" for state in states),
        read=int(provisioned.get("ReadCapacityUnits") or 0),
        write=int(provisioned.get("WriteCapacityUnits") or 0),
        warm_read=int(warm.get("ReadUnitsPerSecond") or 0),
        warm_write=int(warm.get("WriteUnitsPerSecond") or 0),
        raised_at=float(provisioned.get("LastIncreaseDateTime") or 0.0),
    )


def raised_warmth(now: Throughput, demand: float | None, most: int) -> Raise | None:
    """Return what warm throughput is raised to: twice what it is, or what the demand needs, within the bound.

    None where it is not known or under change.
    """
    if not now.active or now.warm_write <= 0:
        return None
    wanted = max(_WARM_STEP * now.warm_write, _WARM_MARGIN * (demand or 0.0))
    return Raise(now.warm_write, max(now.warm_write, min(math.ceil(wanted), most)))


def raised_provision(now: Throughput, at: float, most: int) -> Raise | None:
    """Return what provisioned write units are raised to: half as much again, within the bound.

    None on demand, and while a raise is under way or too young to have shown in the metrics.
    """
    if now.write <= 0 or not now.active or at - now.raised_at < _SETTLES:
        return None
    wanted = math.ceil(_PROVISIONED_STEP * now.write)
    return Raise(now.write, max(now.write, min(wanted, most)))


def warm_update(table: str, target: Target, now: Throughput, units: int) -> dict[str, Any]:
    """Return the UpdateTable that raises warm write throughput."""
    warm = {"ReadUnitsPerSecond": now.warm_read, "WriteUnitsPerSecond": units}
    return _update(table, target, {"WarmThroughput": warm})


def provisioned_update(table: str, target: Target, now: Throughput, units: int) -> dict[str, Any]:
    """Return the UpdateTable that raises provisioned write units."""
    provisioned = {"ReadCapacityUnits": now.read, "WriteCapacityUnits": units}
    return _update(table, target, {"ProvisionedThroughput": provisioned})


def _update(table: str, target: Target, change: dict[str, Any]) -> dict[str, Any]:
    if target is Target.TABLE:
        return {"TableName": table, **change}
    update = {"Update": {"IndexName": INDEX_NAME, **change}}
    return {"TableName": table, "GlobalSecondaryIndexUpdates": [update]}
