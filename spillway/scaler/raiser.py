"""The raiser: gives a table or its index more throughput where that is what is missing, within configured bounds."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

from spillway.scaler.throughput import (
    Raise,
    Throughput,
    provisioned_update,
    raised_provision,
    raised_warmth,
    throughput_of,
    warm_update,
)
from spillway.scaling.observation import Target
from spillway.scaling.report import Observer, ScalingEvent, ScalingKind
from spillway.storage.port import Call, RefusedError

__all__ = ["Bounds", "Raiser"]

_REST: Final = 600.0  # seconds between two raises of warm throughput: DynamoDB takes its time to add partitions
_UNDER_CHANGE: Final = "ResourceInUseException"


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """Most write units a second that throughput is raised to; 0 never raises it."""

    warm: int = 0
    provisioned: int = 0


@dataclass(slots=True)
class Raiser:
    """Raises throughput of the main table and its index. `now` is the wall clock; a `dry_run` only reports.

    Each call costs one DescribeTable, and an UpdateTable where it raises. StorageErrors are raised, but for what DynamoDB
    refuses, such as a quota: that is reported.
    """

    call: Call
    table: str
    bounds: Bounds
    observe: Observer
    now: Callable[[], float]
    dry_run: bool = False
    _warmed: dict[Target, float] = field(default_factory=dict)

    def warm(self, target: Target, demand: float | None, series: str, evidence: str) -> str | None:
        """Raise warm throughput for a series that more shards can't help; return what was done, None for nothing."""
        if self.now() - self._warmed.get(target, 0.0) < _REST:
            return None
        found = self._described(target)
        if found is None or found.write > 0:  # provisioned throughput has its own means
            return None
        raised = raised_warmth(found, demand, self.bounds.warm)
        if raised is None:
            return None
        request = warm_update(self.table, target, found, raised.after)
        done = f"warm throughput of the {target}"
        if not self._raise(ScalingKind.WARMED, done, raised, request, series, evidence):
            return None
        self._warmed[target] = self.now()
        return _told(done, raised)

    def provision(self, target: Target, metric: str) -> bool:
        """Raise provisioned throughput; tell whether there is any, which is what limits then."""
        found = self._described(target)
        if found is None or found.write <= 0:
            return False
        raised = raised_provision(found, self.now(), self.bounds.provisioned)
        if raised is not None:
            request = provisioned_update(self.table, target, found, raised.after)
            done = f"provisioned throughput of the {target}"
            self._raise(ScalingKind.PROVISIONED, done, raised, request, "", metric)
        return True

    def _described(self, target: Target) -> Throughput | None:
        answer = self.call("DescribeTable", {"TableName": self.table})
        return throughput_of(answer["Table"], target)

    def _raise(  # noqa: PLR0913, PLR0917  what it does and what it tells
        self,
        kind: ScalingKind,
        what: str,
        raised: Raise,
        request: dict[str, Any],
        series: str,
        evidence: str,
    ) -> bool:
        told = _told(what, raised)
        if not raised.is_raise:
            self._tell(ScalingKind.AT_BOUND, series, f"{what} stays at {raised.before:,}", evidence)
            return False
        if not self.dry_run:
            try:
                self.call("UpdateTable", request)
            except RefusedError as error:
                if error.code != _UNDER_CHANGE:
                    self._tell(ScalingKind.AT_BOUND, series, f"{told}: {error}", evidence)
                return False
        self._tell(kind, series, told, evidence)
        return not self.dry_run

    def _tell(self, kind: ScalingKind, series: str, reason: str, evidence: str) -> None:
        self.observe(
            ScalingEvent(
                kind=kind, series=series, reason=reason, evidence=evidence, dry_run=self.dry_run
            )
        )


def _told(what: str, raised: Raise) -> str:
    return f"{what} raised from {raised.before:,} to {raised.after:,} write units/s"
