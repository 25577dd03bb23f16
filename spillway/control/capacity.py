"""Warm and provisioned throughput of a table and its index: read, decide the next value, update."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from spillway.dynamodb.port import Call, RefusedError
from spillway.keys import INDEX_NAME
from spillway.scaling.policy import ThrottleTarget
from spillway.scaling.updates import Observer, ScalingEvent, ScalingKind

__all__ = [
    "CapacityBounds",
    "CapacityChange",
    "CapacityManager",
    "TableThroughput",
    "next_provisioned_throughput",
    "next_warm_throughput",
    "parse_throughput",
    "provisioned_update",
    "warm_update",
]


_WARM_STEP: Final = 2.0
_WARM_MARGIN: Final = 1.25  # over the demand, where that is beyond one step
_PROVISIONED_STEP: Final = 1.5
_SETTLING_SECONDS: Final = 120.0  # until metrics show the effect of a raise


@dataclass(frozen=True, slots=True, kw_only=True)
class TableThroughput:
    """Throughput of a table or an index, in units a second.

    Attributes:
        active: whether it can be changed now: neither it nor its table is being changed.
        read, write: provisioned units, 0 on demand.
        warm_read, warm_write: warm throughput, 0 where the endpoint does not say.
        raised_at: when its provisioned units were last raised, in epoch seconds; 0 never.
    """

    active: bool
    read: int
    write: int
    warm_read: int
    warm_write: int
    raised_at: float


@dataclass(frozen=True, slots=True)
class CapacityChange:
    """Write units before and after; equal where the bound leaves no room."""

    before: int
    after: int

    @property
    def is_raise(self) -> bool:
        """Whether anything changes."""
        return self.after > self.before


def parse_throughput(
    description: Mapping[str, Any], target: ThrottleTarget
) -> TableThroughput | None:
    """Read `Table` of a DescribeTable answer; None where there is no such index."""
    part = description
    if target is ThrottleTarget.INDEX:
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
    return TableThroughput(
        active=all(state == "ACTIVE" for state in states),
        read=int(provisioned.get("ReadCapacityUnits") or 0),
        write=int(provisioned.get("WriteCapacityUnits") or 0),
        warm_read=int(warm.get("ReadUnitsPerSecond") or 0),
        warm_write=int(warm.get("WriteUnitsPerSecond") or 0),
        raised_at=float(provisioned.get("LastIncreaseDateTime") or 0.0),
    )


def next_warm_throughput(
    now: TableThroughput, demand: float | None, max_units: int
) -> CapacityChange | None:
    """Return the next warm throughput: twice the present or what demand needs, within the bound.

    None where it is not known or under change.
    """
    if not now.active or now.warm_write <= 0:
        return None
    needed = max(_WARM_STEP * now.warm_write, _WARM_MARGIN * (demand or 0.0))
    return CapacityChange(now.warm_write, max(now.warm_write, min(math.ceil(needed), max_units)))


def next_provisioned_throughput(
    now: TableThroughput, at: float, max_units: int
) -> CapacityChange | None:
    """Return the next provisioned write units: half as much again, within the bound.

    None on demand, and while a raise is under way or too young to have shown in the metrics.
    """
    if now.write <= 0 or not now.active or at - now.raised_at < _SETTLING_SECONDS:
        return None
    needed = math.ceil(_PROVISIONED_STEP * now.write)
    return CapacityChange(now.write, max(now.write, min(needed, max_units)))


def warm_update(
    table: str, target: ThrottleTarget, now: TableThroughput, units: int
) -> dict[str, Any]:
    """Return the UpdateTable that raises warm write throughput."""
    warm = {"ReadUnitsPerSecond": now.warm_read, "WriteUnitsPerSecond": units}
    return _update(table, target, {"WarmThroughput": warm})


def provisioned_update(
    table: str, target: ThrottleTarget, now: TableThroughput, units: int
) -> dict[str, Any]:
    """Return the UpdateTable that raises provisioned write units."""
    provisioned = {"ReadCapacityUnits": now.read, "WriteCapacityUnits": units}
    return _update(table, target, {"ProvisionedThroughput": provisioned})


def _update(table: str, target: ThrottleTarget, change: dict[str, Any]) -> dict[str, Any]:
    if target is ThrottleTarget.TABLE:
        return {"TableName": table, **change}
    update = {"Update": {"IndexName": INDEX_NAME, **change}}
    return {"TableName": table, "GlobalSecondaryIndexUpdates": [update]}


_WARM_COOLDOWN_SECONDS: Final = 600.0  # DynamoDB takes its time to add partitions
_UNDER_CHANGE: Final = "ResourceInUseException"


@dataclass(frozen=True, slots=True, kw_only=True)
class CapacityBounds:
    """Upper bounds of throughput, in write units a second; 0 never raises it."""

    warm: int = 0
    provisioned: int = 0


@dataclass(slots=True)
class CapacityManager:
    """Raises throughput of the table and its index. A `dry_run` only reports.

    Each call costs one DescribeTable, and an UpdateTable where it raises. Raises StorageError, but
    reports what DynamoDB refuses, such as a quota. Remembers one time for the table and one for the
    index.
    """

    call: Call
    table: str
    bounds: CapacityBounds
    observe: Observer
    now: Callable[[], float]
    dry_run: bool = False
    _warmed: dict[ThrottleTarget, float] = field(default_factory=dict)

    def warm(
        self, target: ThrottleTarget, demand: float | None, series: str, evidence: str
    ) -> str | None:
        """Raise warm throughput for a series that more shards can't help; return what was done."""
        if self.now() - self._warmed.get(target, 0.0) < _WARM_COOLDOWN_SECONDS:
            return None
        found = self._read_throughput(target)
        if found is None or found.write > 0:  # provisioned throughput has its own means
            return None
        raised = next_warm_throughput(found, demand, self.bounds.warm)
        if raised is None:
            return None
        request = warm_update(self.table, target, found, raised.after)
        done = f"warm throughput of the {target}"
        if not self._raise(ScalingKind.WARMED, done, raised, request, series, evidence):
            return None
        self._warmed[target] = self.now()
        return _describe_change(done, raised)

    def provision(self, target: ThrottleTarget, metric: str) -> bool:
        """Raise provisioned throughput; return whether there is any."""
        found = self._read_throughput(target)
        if found is None or found.write <= 0:
            return False
        raised = next_provisioned_throughput(found, self.now(), self.bounds.provisioned)
        if raised is not None:
            request = provisioned_update(self.table, target, found, raised.after)
            done = f"provisioned throughput of the {target}"
            self._raise(ScalingKind.PROVISIONED, done, raised, request, "", metric)
        return True

    def _read_throughput(self, target: ThrottleTarget) -> TableThroughput | None:
        answer = self.call("DescribeTable", {"TableName": self.table})
        return parse_throughput(answer["Table"], target)

    def _raise(  # noqa: PLR0913, PLR0917  the change and its report
        self,
        kind: ScalingKind,
        what: str,
        raised: CapacityChange,
        request: dict[str, Any],
        series: str,
        evidence: str,
    ) -> bool:
        text = _describe_change(what, raised)
        if not raised.is_raise:
            self._report(
                ScalingKind.AT_BOUND, series, f"{what} stays at {raised.before:,}", evidence
            )
            return False
        if not self.dry_run:
            try:
                self.call("UpdateTable", request)
            except RefusedError as error:
                if error.code != _UNDER_CHANGE:
                    self._report(ScalingKind.AT_BOUND, series, f"{text}: {error}", evidence)
                return False
        self._report(kind, series, text, evidence)
        return not self.dry_run

    def _report(self, kind: ScalingKind, series: str, reason: str, evidence: str) -> None:
        self.observe(
            ScalingEvent(
                kind=kind, series=series, reason=reason, evidence=evidence, dry_run=self.dry_run
            )
        )


def _describe_change(what: str, raised: CapacityChange) -> str:
    return f"{what} raised from {raised.before:,} to {raised.after:,} write units/s"
