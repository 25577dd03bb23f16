"""Where an endpoint gives no reasons: capacity that is used up, by CloudWatch's figures, or else a key range."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from spillway.scaling.observation import Target
from spillway.storage.port import StorageError, ThrottlingReason

__all__ = ["CapacityCheck", "CapacityMetrics", "CapacityUse", "reasons_by"]

_NEAR: Final = 0.8  # share of the provisioned capacity; consumption is known as a mean over minutes
_LOOK_EVERY: Final = 60.0  # seconds: the metrics have a new figure a minute
_SIDES: Final = {Target.TABLE: "Table", Target.INDEX: "Index"}


@dataclass(frozen=True, slots=True)
class CapacityUse:
    """Write units a second that were consumed lately, and that are provisioned; None on demand."""

    consumed: float
    provisioned: float | None


CapacityMetrics = Callable[[], Mapping[Target, CapacityUse]]
"""Returns the use of the table's and the index's capacity; raises StorageError where it is not to be had."""


def reasons_by(uses: Mapping[Target, CapacityUse]) -> tuple[ThrottlingReason, ...]:
    """Return the reasons that DynamoDB would name for throttled writes, as far as capacity tells.

    Where neither the table nor the index comes near its provisioned capacity, key ranges are what is left, those of
    both: the policy grows the side that is short for the rate. On demand these are all that can be told.
    """
    short = [target for target, use in uses.items() if _is_used_up(use)]
    limit = "Provisioned" if short else "KeyRange"
    return tuple(
        ThrottlingReason(f"{_SIDES[target]}Write{limit}ThroughputExceeded", "")
        for target in short or Target
    )


def _is_used_up(use: CapacityUse) -> bool:
    return use.provisioned is not None and use.consumed >= _NEAR * use.provisioned


class CapacityCheck:
    """Asks for the metrics once a minute at most. Thread-safe: at worst two threads ask at once."""

    def __init__(self, metrics: CapacityMetrics, monotonic: Callable[[], float]) -> None:
        self._metrics = metrics
        self._monotonic = monotonic
        self._known: tuple[float, tuple[ThrottlingReason, ...]] | None = None

    def reasons(self) -> tuple[ThrottlingReason, ...]:
        """Return what `reasons_by` makes of the latest figures; none where they are not to be had."""
        now = self._monotonic()
        if self._known is None or now - self._known[0] >= _LOOK_EVERY:
            self._known = now, self._looked()
        return self._known[1]

    def _looked(self) -> tuple[ThrottlingReason, ...]:
        try:
            return reasons_by(self._metrics())
        except StorageError:
            return ()
