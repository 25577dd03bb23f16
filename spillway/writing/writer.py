"""The writer: validate, find the layout, choose the shard, write, retry, answer for every event."""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import partial

from msgspec.structs import replace

from spillway.dynamodb.port import Call, RefusedError
from spillway.dynamodb.retries import call_until, full_jitter
from spillway.errors import InvalidInputError
from spillway.event import Event
from spillway.layouts.source import LayoutSource
from spillway.runtime import Runtime
from spillway.scaling.autoscaler import WriterAutoscaler
from spillway.scaling.evidence import CapacityCheck
from spillway.scaling.usage import UsageSample
from spillway.settings import Settings
from spillway.writing.attempts import AddressedEvent, Outcome, PendingEvent
from spillway.writing.batches import BATCH_SIZE, send_batch
from spillway.writing.conflicts import OnConflict, put_if_absent
from spillway.writing.preparation import EventValidator, PreparedEvent, canonical
from spillway.writing.results import Rejected, WriteResult, reject_input, reject_storage
from spillway.writing.routing import EventRouter
from spillway.writing.throttling import ThrottleHandler

__all__ = ["BackgroundTask", "UsageSampler", "Writer"]


BackgroundTask = Callable[[], None]
"""A task that runs while the first attempt is under way."""


class UsageSampler:
    """Samples the distinct events of each write, once: retries are not demand."""

    def __init__(self, autoscaler: WriterAutoscaler, *, index_has_payload: bool) -> None:
        self._autoscaler = autoscaler
        self._index_has_payload = index_has_payload

    def tasks(self, events: Sequence[PreparedEvent]) -> list[BackgroundTask]:
        """Return a task for each series. Most send nothing, by chance."""
        if self._autoscaler.recorder is None:
            return []
        counts = Counter(event.series for event in events)
        return [partial(self._sample, series, count, events) for series, count in counts.items()]

    def _sample(self, series: str, count: int, events: Sequence[PreparedEvent]) -> None:
        recorder = self._autoscaler.recorder
        if recorder is None:
            return
        demand = recorder.record(series, count, lambda: self._measure(series, events))
        if demand is not None:
            self._autoscaler.grow_ahead(series, demand)

    def _measure(self, series: str, events: Sequence[PreparedEvent]) -> UsageSample:
        units = [event.write_units for event in events if event.series == series]
        index_units = sum(units) if self._index_has_payload else len(units)
        return UsageSample(sum(units), index_units, len(units))


class Writer:
    """Writes events under the layouts of their series.

    Thread-safe; writes share the cached layouts.
    """

    def __init__(  # noqa: PLR0913, PLR0917  it is where the parts meet
        self,
        call: Call,
        table: str,
        layouts: LayoutSource,
        autoscaler: WriterAutoscaler,
        settings: Settings,
        runtime: Runtime,
        capacity: CapacityCheck | None = None,
    ) -> None:
        self._call = call
        self._table = table
        self._router = EventRouter(layouts, settings, runtime)
        self._throttling = ThrottleHandler(call, table, autoscaler, runtime, capacity)
        self._sampler = UsageSampler(autoscaler, index_has_payload=settings.index_has_payload)
        self._settings = settings
        self._runtime = runtime

    def write(
        self,
        events: Iterable[Event],
        timeout: float,
        on_conflict: OnConflict = OnConflict.REPLACE,
    ) -> WriteResult:
        """Write events, retry what fails for `timeout` seconds, return one outcome each.

        Events that were not sent by then are rejected as `deadline`.
        """
        deadline = self._runtime.monotonic() + timeout
        pending, rejected, ids = self._prepare(events)
        background_tasks = self._sampler.tasks([each.event for each in pending])
        attempt = 0
        while pending:
            pending, final = _split(self._attempt(pending, deadline, background_tasks, on_conflict))
            rejected += _reject(final)
            background_tasks = []
            attempt += 1
            pending = self._throttling.handle(pending, deadline, on_conflict)
            delay = full_jitter(attempt, self._runtime.random)
            if pending and self._runtime.monotonic() + delay >= deadline:
                rejected += _reject(pending)
                break
            if pending:
                self._router.widen(pending, deadline)
                self._runtime.sleep(delay)
        rejected.sort(key=lambda each: each.index)
        return WriteResult(
            accepted=len(ids) - len(rejected), rejected=tuple(rejected), ids=tuple(ids)
        )

    def _prepare(
        self, events: Iterable[Event]
    ) -> tuple[list[PendingEvent], list[Rejected], list[str | None]]:
        """Check every event.

        Equal events become one; a second payload of an identity is refused.
        """
        validator = EventValidator(self._settings, self._runtime.now())
        distinct: dict[tuple[str, str], PendingEvent] = {}
        rejected: list[Rejected] = []
        ids: list[str | None] = []
        for index, event in enumerate(events):
            event_id = self._runtime.new_id() if event.id is None else event.id
            try:
                prepared = validator.prepare(event, event_id)
                identity = prepared.series, prepared.sort_key
                earlier = distinct.get(identity)
                distinct[identity] = (
                    PendingEvent(prepared, (index,))
                    if earlier is None
                    else _merge(earlier, prepared, index)
                )
                ids.append(event_id)
            except InvalidInputError as error:
                rejected.append(reject_input(index, error))
                ids.append(event.id if isinstance(event.id, str) else None)
        return list(distinct.values()), rejected, ids

    def _attempt(
        self,
        pending: Sequence[PendingEvent],
        deadline: float,
        background_tasks: Sequence[BackgroundTask],
        on_conflict: OnConflict,
    ) -> list[PendingEvent]:
        """Try to write all pending events once, in parallel.

        Return those not known to be stored.
        """
        reject = on_conflict is OnConflict.REJECT
        addressed, failed = self._router.address(pending, deadline, with_candidates=reject)
        call = call_until(deadline, self._call, self._runtime)
        send: Callable[[Sequence[AddressedEvent]], list[Outcome]]
        if reject:
            size, send = 1, partial(put_if_absent, call, self._table, now=self._runtime.now)
        else:
            size, send = BATCH_SIZE, partial(send_batch, call, self._table)
        tasks: list[Callable[[], list[PendingEvent] | None]] = [
            partial(_send, send, addressed[start : start + size])
            for start in range(0, len(addressed), size)
        ]
        tasks += background_tasks
        for failed_of_batch in self._runtime.parallel(tasks):
            failed += failed_of_batch or ()
        return failed


def _send(
    send: Callable[[Sequence[AddressedEvent]], list[Outcome]], batch: Sequence[AddressedEvent]
) -> list[PendingEvent]:
    """Write a batch; return those events that are not known to be stored."""
    return [
        addressed.fail(error)
        for addressed, error in zip(batch, send(batch), strict=True)
        if error is not None
    ]


def _merge(earlier: PendingEvent, prepared: PreparedEvent, index: int) -> PendingEvent:
    """Return an event that also stands for its equal at another position."""
    payload = earlier.event.payload
    if payload != prepared.payload and canonical(payload) != canonical(prepared.payload):
        reason = (
            "an earlier event has the same series, time, sharding key and id, with another payload"
        )
        raise InvalidInputError("duplicate_event", "", reason)
    return replace(earlier, indexes=(*earlier.indexes, index))


def _split(
    pending: Sequence[PendingEvent],
) -> tuple[list[PendingEvent], list[PendingEvent]]:
    """Separate what may be tried again from what DynamoDB refuses for good."""
    final = [each for each in pending if isinstance(each.failure, RefusedError)]
    return [each for each in pending if not isinstance(each.failure, RefusedError)], final


def _reject(events: Iterable[PendingEvent]) -> list[Rejected]:
    return [
        reject_storage(index, each.failure, outcome_unknown=each.outcome_unknown)
        for each in events
        if each.failure is not None
        for index in each.indexes
    ]
