"""Routing: under which epoch, and so into which partition keys, each event of a write goes."""

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Final

from msgspec.structs import replace

from spillway import keys
from spillway.dynamodb.port import StorageError, ThrottledError, UnreachableError
from spillway.dynamodb.retries import DeadlinePassedError
from spillway.layouts.model import Epoch, Layout, Snapshot
from spillway.layouts.source import LayoutSource
from spillway.runtime import Runtime
from spillway.settings import Settings
from spillway.sharding import ShardingMode, shard_of
from spillway.timestamps import format_epoch, to_epoch
from spillway.writing.attempts import AddressedEvent, PendingEvent
from spillway.writing.batches import build_item

__all__ = ["EventRouter"]

_DAY_SECONDS: Final = 86_400.0


class EventRouter:
    """Addresses events by the layouts of their series and widens epochs for throttled ones."""

    def __init__(self, layouts: LayoutSource, settings: Settings, runtime: Runtime) -> None:
        self._layouts = layouts
        self._settings = settings
        self._runtime = runtime

    def address(
        self, pending: Sequence[PendingEvent], deadline: float, *, with_candidates: bool = False
    ) -> tuple[list[AddressedEvent], list[PendingEvent]]:
        """Return the events with their keys, and those without a layout with the failure.

        `with_candidates` also sets `AddressedEvent.candidate_keys`. It reads each layout strongly,
        since an event may have been accepted under a newer layout than the cached one.
        Loads no layout after `deadline`.
        """
        load = self._layouts.reload if with_candidates else self._layouts.load_for_write
        by_series: dict[str, list[PendingEvent]] = {}
        for each in pending:
            by_series.setdefault(each.event.series, []).append(each)
        addressed: list[AddressedEvent] = []
        failed: list[PendingEvent] = []
        snapshots = self._for_each(by_series, load, deadline)
        for snapshot, events in zip(snapshots, by_series.values(), strict=True):
            if isinstance(snapshot, Snapshot):
                placed, unplaced = self._address_series(
                    snapshot, events, deadline, with_candidates=with_candidates
                )
                addressed += placed
                failed += unplaced
            else:
                failed += [each.fail_unsent(snapshot) for each in events]
        return addressed, failed

    def widen(self, pending: Iterable[PendingEvent], deadline: float) -> None:
        """Extend epochs in force to old events that throttle under retired ones with fewer shards.

        The low mark goes down before such an event is written under the epoch, so that readers open
        its shards.
        """
        earliest: dict[str, str] = {}
        for each in pending:
            if isinstance(each.failure, ThrottledError):
                series, time = each.event.series, each.event.time
                earliest[series] = min(earliest.get(series, time), time)
        self._for_each(earliest, lambda series: self._widen(series, earliest[series]), deadline)

    def _widen(self, series: str, time: str) -> Snapshot:
        snapshot = self._layouts.load_for_write(series)
        current = snapshot.layout.current
        covering = next(snapshot.layout.covering(time), current)
        if covering.fan_out >= current.shards or current.low <= time:
            return snapshot
        return self._layouts.extend_low(series, current.id, self._low_mark_for(time))

    def _low_mark_for(self, time: str) -> str:
        """Return a low mark that also covers the older events that a backfill brings next.

        It lies twice as far back as `time`, a day at least.
        """
        now = self._runtime.now()
        age = max(0.0, now - to_epoch(time))
        return min(time, format_epoch(now - max(2 * age, _DAY_SECONDS)))

    def _address_series(
        self,
        snapshot: Snapshot,
        events: list[PendingEvent],
        deadline: float,
        *,
        with_candidates: bool,
    ) -> tuple[list[AddressedEvent], list[PendingEvent]]:
        """Address the events of one series; return them, and those that no layout covers.

        Loads the layout once for events that the snapshot may not be used for.
        """
        addressed: list[AddressedEvent] = []
        uncovered = self._place(snapshot, events, addressed)
        if uncovered:
            snapshot, uncovered = self._place_uncovered(snapshot, uncovered, addressed, deadline)
        if with_candidates:
            addressed = [_with_candidates(each, snapshot.layout) for each in addressed]
        return addressed, uncovered

    def _place_uncovered(
        self,
        snapshot: Snapshot,
        uncovered: list[PendingEvent],
        addressed: list[AddressedEvent],
        deadline: float,
    ) -> tuple[Snapshot, list[PendingEvent]]:
        """Add events to `addressed` by a layout loaded for them.

        Return it, and those that failed.
        """
        load = partial(self._load_to_cover, [each.event.time for each in uncovered])
        reloaded = self._for_each([uncovered[0].event.series], load, deadline)[0]
        if not isinstance(reloaded, Snapshot):
            return snapshot, [each.fail_unsent(reloaded) for each in uncovered]
        error = UnreachableError("LayoutStale", "no layout covers the event yet")
        unplaced = self._place(reloaded, uncovered, addressed)
        return reloaded, [each.fail_unsent(error) for each in unplaced]

    def _load_to_cover(self, times: Sequence[str], series: str) -> Snapshot:
        """Load the layout, and extend the epoch in force over a gap in it."""
        snapshot = self._layouts.reload(series)
        layout = snapshot.layout
        uncovered = [time for time in times if next(layout.covering(time), None) is None]
        if not uncovered:
            return snapshot
        earliest = min(uncovered)
        gap_start = max((e.close for e in layout.epochs if e.close < earliest), default=earliest)
        return self._layouts.extend_low(series, layout.current.id, gap_start)

    def _place(
        self, snapshot: Snapshot, events: list[PendingEvent], addressed: list[AddressedEvent]
    ) -> list[PendingEvent]:
        """Add events to `addressed`; return those that need a later layout than the snapshot."""
        limit = snapshot.writable_until(self._settings.clock_error)
        uncovered = []
        for each in events:
            if each.in_doubt is not None:
                # It may lie there already: the same keys again can't make a second copy.
                again = AddressedEvent(each, each.in_doubt, each.epoch_id, each.shard)
                addressed.append(again)
                continue
            epoch = snapshot.epoch_for(each.event.time, limit)
            if epoch is None:
                uncovered.append(each)
                continue
            shard = self._choose_shard(each, epoch)
            item = build_item(each.event, epoch, shard)
            addressed.append(AddressedEvent(each, item, epoch.id, shard))
        return uncovered

    def _choose_shard(self, pending: PendingEvent, epoch: Epoch) -> int:
        """Return the shard under an epoch. In random mode a retry keeps it, so it makes no copy."""
        if epoch.mode is ShardingMode.CALCULATED:
            return shard_of(pending.event.routing, epoch.shards)
        may_move = pending.epoch_id != epoch.id and not pending.outcome_unknown
        if pending.shard is None or may_move:
            return int(self._runtime.random() * epoch.shards)
        return pending.shard

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


def _with_candidates(addressed: AddressedEvent, layout: Layout) -> AddressedEvent:
    """Return an addressed event with its candidate keys, if there are others than its own."""
    event = addressed.pending.event
    shards = layout.candidates(event.time, event.routing)
    candidates = tuple(keys.partition_key(event.series, shard) for shard in shards)
    if candidates == (addressed.item[keys.PARTITION_KEY]["S"],):
        return addressed
    return replace(addressed, candidate_keys=candidates)
