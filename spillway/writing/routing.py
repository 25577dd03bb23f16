"""Routing: under which epoch, so into which partition keys, each event of a write goes."""

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Final

from spillway.dynamodb.port import StorageError, ThrottledError, UnreachableError
from spillway.dynamodb.retries import DeadlinePassedError
from spillway.layouts.model import Epoch, Snapshot
from spillway.layouts.source import LayoutSource
from spillway.runtime import Runtime
from spillway.settings import Settings
from spillway.sharding import ShardingMode
from spillway.timestamps import format_epoch, to_epoch
from spillway.writing.batches import AddressedEvent, address_event
from spillway.writing.preparation import PreparedEvent

__all__ = ["EventRouter"]

_DAY: Final = 86_400.0


class EventRouter:
    """Addresses events by the layouts of their series, and moves throttled old ones to wider epochs."""

    def __init__(self, layouts: LayoutSource, settings: Settings, runtime: Runtime) -> None:
        self._layouts = layouts
        self._settings = settings
        self._runtime = runtime

    def address(
        self, pending: Sequence[PreparedEvent], deadline: float
    ) -> tuple[list[AddressedEvent], list[PreparedEvent]]:
        """Give every event its keys; those whose layout can't be had before the deadline are left, with the failure."""
        by_series: dict[str, list[PreparedEvent]] = {}
        for event in pending:
            by_series.setdefault(event.series, []).append(event)
        addressed: list[AddressedEvent] = []
        left: list[PreparedEvent] = []
        snapshots = self._for_each(by_series, self._layouts.to_write, deadline)
        for snapshot, events in zip(snapshots, by_series.values(), strict=True):
            if isinstance(snapshot, Snapshot):
                left += self._under(snapshot, events, addressed, deadline)
            else:
                left += _failed(events, snapshot)
        return addressed, left

    def widen(self, left: Iterable[PreparedEvent], deadline: float) -> None:
        """Lower the marks of epochs in force where old events throttle under retired ones with fewer shards.

        The mark goes down before such an event is written under the epoch, so that readers open its shards.
        """
        earliest: dict[str, str] = {}
        for event in left:
            if isinstance(event.failure, ThrottledError):
                time = earliest.get(event.series, event.time)
                earliest[event.series] = min(time, event.time)
        self._for_each(earliest, lambda series: self._widen(series, earliest[series]), deadline)

    def _widen(self, series: str, time: str) -> Snapshot:
        snapshot = self._layouts.to_write(series)
        current = snapshot.layout.current
        covering = next(snapshot.layout.covering(time), current)
        if covering.fan_out >= current.shards or current.low <= time:
            return snapshot
        return self._layouts.lower(series, current.id, self._mark_below(time))

    def _mark_below(self, time: str) -> str:
        """Return a mark that also spares the older events that a backfill brings next: twice as far back, a day at least."""
        now = self._runtime.now()
        age = max(0.0, now - to_epoch(time))
        return min(time, format_epoch(now - max(2 * age, _DAY)))

    def _under(
        self,
        snapshot: Snapshot,
        events: list[PreparedEvent],
        addressed: list[AddressedEvent],
        deadline: float,
    ) -> list[PreparedEvent]:
        """Address events of one series; load the layout once for those that the snapshot leaves."""
        beyond = self._place(snapshot, events, addressed)
        if not beyond:
            return []
        series = beyond[0].series
        times = [event.time for event in beyond]
        load = partial(self._load_to_cover, times)
        reloaded = self._for_each([series], load, deadline)[0]
        if not isinstance(reloaded, Snapshot):
            return _failed(beyond, reloaded)
        still = self._place(reloaded, beyond, addressed)
        return _failed(still, UnreachableError("LayoutStale", "no layout covers the event yet"))

    def _load_to_cover(self, times: Sequence[str], series: str) -> Snapshot:
        """Load the layout anew, and lower the mark of the epoch in force over a gap in it."""
        snapshot = self._layouts.reload(series)
        layout = snapshot.layout
        uncovered = [time for time in times if next(layout.covering(time), None) is None]
        if not uncovered:
            return snapshot
        earliest = min(uncovered)
        gap_start = max((e.close for e in layout.epochs if e.close < earliest), default=earliest)
        return self._layouts.lower(series, layout.current.id, gap_start)

    def _place(
        self, snapshot: Snapshot, events: list[PreparedEvent], addressed: list[AddressedEvent]
    ) -> list[PreparedEvent]:
        limit = snapshot.writable_until(self._settings.clock_error)
        beyond = []
        for event in events:
            if event.unsettled is not None:
                # It may lie there already: the same keys again can't make a second copy.
                addressed.append((event, event.unsettled))
                event.unsettled = None
                continue
            epoch = snapshot.epoch_for(event.time, limit)
            if epoch is None:
                beyond.append(event)
                continue
            self._choose_shard(event, epoch)
            event.epoch_id = epoch.id
            addressed.append(address_event(event, epoch))
        return beyond

    def _choose_shard(self, event: PreparedEvent, epoch: Epoch) -> None:
        if epoch.mode is ShardingMode.RANDOM:
            moves = event.epoch_id != epoch.id and not event.outcome_unknown
            if event.shard is None or moves:
                event.shard = int(self._runtime.random() * epoch.shards)
        else:
            event.shard = None

    def _for_each(
        self, series: Iterable[str], load: Callable[[str], Snapshot], deadline: float
    ) -> list[Snapshot | StorageError]:
        def attempt(one: str) -> Snapshot | StorageError:
            if self._runtime.monotonic() >= deadline:
                return DeadlinePassedError()
            try:
                return load(one)
            except StorageError as error:
                return error

        return self._runtime.parallel([partial(attempt, one) for one in series])


def _failed(events: Sequence[PreparedEvent], error: StorageError) -> list[PreparedEvent]:
    for event in events:
        event.fail(error)
        event.sent = None  # what throttles here is the layout table
    return list(events)
