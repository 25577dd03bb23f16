"""Auto scaling of one table of a `Heat`: reads its metrics, decides each minute, updates the table."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import floor

from dynamoheat.autoscaling.decreases import Decreases
from dynamoheat.autoscaling.tracking import ScalingPolicy, Tracker
from dynamoheat.model import Heat
from dynamoheat.settings import ProvisionedThroughput, TableSettings

__all__ = ["Change", "ScaledTable"]

Dimension = tuple[str | None, bool]
"""An index's name, or None for the table, and whether it is about writes."""


@dataclass(frozen=True, slots=True)
class Change:
    """A change that was decided; it takes effect after the delay."""

    at: float
    index: str | None
    write: bool
    before: float
    after: float


class ScaledTable:
    """A table with policies for its writes and reads and for its indexes', by `(index or None, write)`.

    `delay` is how long UpdateTable takes; DG says "several minutes", here it is the caller's choice. Call
    `advance` at least once a minute (a `metric_period_seconds`, so that a model's time scale holds).
    """

    def __init__(
        self,
        heat: Heat,
        table: str,
        policies: Mapping[Dimension, ScalingPolicy],
        *,
        delay: float = 0.0,
    ) -> None:
        self._heat = heat
        self._table = table
        self._minute = heat.parameters.metric_period_seconds
        self._delay = delay
        self._trackers = {dimension: Tracker(policy) for dimension, policy in policies.items()}
        self._decreases = {index: Decreases(60 * self._minute) for index, _ in policies}
        self._pending: dict[Dimension, tuple[float, float]] = {}  # capacity, and from when on
        self._closed: float | None = None
        self.changes: list[Change] = []
        self.refused = 0  # decisions to lower a capacity that the limits on decreases forbade

    def advance(self, now: float) -> None:
        """Carry out what is due, and decide on every minute that has closed."""
        self._carry_out(now)
        end = floor(now / self._minute) * self._minute
        closed, self._closed = self._closed, end
        if closed is None or end <= closed:
            return
        for dimension, tracker in self._trackers.items():
            for minute in range(round((end - closed) / self._minute)):
                self._decide(dimension, tracker, closed + minute * self._minute, now)

    def _decide(self, dimension: Dimension, tracker: Tracker, start: float, now: float) -> None:
        index, write = dimension
        consumed = self._consumed(dimension, start)
        if dimension in self._pending:  # a table that is being updated takes no other update
            tracker.minute(consumed, self._pending[dimension][0], now)
            return
        before = self._provisioned(dimension)
        after = tracker.minute(consumed, before, now)
        if after < before and not self._may_fall(index, tracker, now):
            return
        if after != before:
            self.changes.append(Change(now, index, write, before, after))
            self._pending[dimension] = (after, now + self._delay)
            self._carry_out(now)

    def _may_fall(self, index: str | None, tracker: Tracker, now: float) -> bool:
        decreases = self._decreases[index]
        if decreases.allowed(now):
            decreases.record(now)
            return True
        self.refused += 1
        tracker.refused()
        return False

    def _consumed(self, dimension: Dimension, start: float) -> float:
        index, write = dimension
        meter = self._heat.resource(self._table, index).meter
        meter.advance(start + self._minute)
        slot = next((slot for slot in reversed(meter.closed) if slot.start == start), None)
        if slot is None:
            return 0.0
        return (slot.consumed_write if write else slot.consumed_read) / self._minute

    def _provisioned(self, dimension: Dimension) -> float:
        index, write = dimension
        throughput = _throughput(self._heat.table(self._table).settings, index)
        figure = throughput.provisioned_write if write else throughput.provisioned_read
        return figure or 1.0

    def _carry_out(self, now: float) -> None:
        due = {key: capacity for key, (capacity, at) in self._pending.items() if at <= now}
        for dimension, capacity in due.items():
            del self._pending[dimension]
            settings = self._heat.table(self._table).settings
            self._heat.update_table(_changed(settings, dimension, capacity), now)


def _throughput(settings: TableSettings, index: str | None) -> ProvisionedThroughput:
    if index is None:
        return settings.throughput
    return next(each.throughput for each in settings.indexes if each.name == index)


def _changed(settings: TableSettings, dimension: Dimension, capacity: float) -> TableSettings:
    """Return a table's settings with one capacity changed."""
    index, write = dimension
    old = _throughput(settings, index)
    new = (
        replace(old, provisioned_write=capacity)
        if write
        else replace(old, provisioned_read=capacity)
    )
    if index is None:
        return replace(settings, throughput=new)
    indexes = (
        replace(each, throughput=new) if each.name == index else each for each in settings.indexes
    )
    return replace(settings, indexes=tuple(indexes))
