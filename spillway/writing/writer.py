"""The writer: validate, find the layout, choose the shard, write in batches, retry, answer for every event."""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import partial

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
from spillway.writing.batches import BATCH_SIZE, send_batch
from spillway.writing.preparation import EventValidator, PreparedEvent, canonical
from spillway.writing.results import Rejected, WriteResult, reject_input, reject_storage
from spillway.writing.routing import EventRouter
from spillway.writing.throttling import ThrottleHandler

__all__ = ["BackgroundTask", "UsageSampler", "Writer"]


BackgroundTask = Callable[[], list[PreparedEvent]]
"""Work beside an attempt; what it returns was left unwritten, so nothing here."""


class UsageSampler:
    """Samples the distinct events of each write, once: retries are not demand."""

    def __init__(self, grower: WriterAutoscaler, *, index_has_payload: bool) -> None:
        self._grower = grower
        self._index_has_payload = index_has_payload

    def tasks(self, events: Sequence[PreparedEvent]) -> list[BackgroundTask]:
        """Return a task for each series, to be run beside the first attempt; by chance most send nothing."""
        if self._grower.recorder is None:
            return []
        counts = Counter(event.series for event in events)
        return [partial(self._watch, series, count, events) for series, count in counts.items()]

    def _watch(
        self, series: str, count: int, events: Sequence[PreparedEvent]
    ) -> list[PreparedEvent]:
        recorder = self._grower.recorder
        if recorder is not None:
            demand = recorder.record(series, count, lambda: self._measure(series, events))
            if demand is not None:
                self._grower.grow_ahead(series, demand)
        return []

    def _measure(self, series: str, events: Sequence[PreparedEvent]) -> UsageSample:
        units = [event.write_units for event in events if event.series == series]
        index_units = sum(units) if self._index_has_payload else len(units)
        return UsageSample(sum(units), index_units, len(units))


class Writer:
    """Writes events under the layout of their series. Thread-safe; layouts are shared through the cache."""

    def __init__(  # noqa: PLR0913, PLR0917  it is where the parts meet
        self,
        call: Call,
        table: str,
        layouts: LayoutSource,
        grower: WriterAutoscaler,
        settings: Settings,
        runtime: Runtime,
        capacity: CapacityCheck | None = None,
    ) -> None:
        self._call = call
        self._table = table
        self._router = EventRouter(layouts, settings, runtime)
        self._throttle_handler = ThrottleHandler(call, table, grower, runtime, capacity)
        self._watch = UsageSampler(grower, index_has_payload=settings.index_has_payload)
        self._settings = settings
        self._runtime = runtime

    def write(self, events: Iterable[Event], timeout: float) -> WriteResult:
        """Write events, retry what fails for `timeout` seconds, return one outcome each.

        Events that were not sent by then are rejected as `deadline`.
        """
        deadline = self._runtime.monotonic() + timeout
        pending, rejected, ids = self._prepare(events)
        beside = self._watch.tasks(pending)
        attempt = 0
        while pending:
            pending, final = _split(self._attempt(pending, deadline, beside))
            rejected += _reject(final)
            beside = []
            attempt += 1
            pending = self._throttle_handler.handle(pending, deadline)
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
    ) -> tuple[list[PreparedEvent], list[Rejected], list[str | None]]:
        """Check every event; equal identities become one, different payloads under one identity are refused."""
        admission = EventValidator(self._settings, self._runtime.now())
        distinct: dict[tuple[str, str], PreparedEvent] = {}
        rejected: list[Rejected] = []
        ids: list[str | None] = []
        for index, event in enumerate(events):
            event_id = self._runtime.new_id() if event.id is None else event.id
            try:
                prepared = admission.prepare(index, event, event_id)
                first = distinct.setdefault((prepared.series, prepared.sort_key), prepared)
                if first is not prepared:
                    _merge(first, prepared)
                ids.append(event_id)
            except InvalidInputError as error:
                rejected.append(reject_input(index, error))
                ids.append(event.id if isinstance(event.id, str) else None)
        return list(distinct.values()), rejected, ids

    def _attempt(
        self, pending: Sequence[PreparedEvent], deadline: float, beside: Sequence[BackgroundTask]
    ) -> list[PreparedEvent]:
        """Try to write all pending events once, in parallel; return those that are not known to be stored.

        `beside` are tasks to run at the same time.
        """
        addressed, left = self._router.address(pending, deadline)
        batches = [
            addressed[start : start + BATCH_SIZE] for start in range(0, len(addressed), BATCH_SIZE)
        ]
        send = partial(send_batch, call_until(deadline, self._call, self._runtime), self._table)
        tasks: list[BackgroundTask] = [partial(send, batch) for batch in batches]
        tasks += beside
        for failed in self._runtime.parallel(tasks):
            left += failed
        return left


def _merge(first: PreparedEvent, again: PreparedEvent) -> None:
    if first.payload != again.payload and canonical(first.payload) != canonical(again.payload):
        reason = (
            "an earlier event has the same series, time, sharding key and id, with another payload"
        )
        raise InvalidInputError("duplicate_event", "", reason)
    first.indexes += again.indexes


def _split(
    left: Sequence[PreparedEvent],
) -> tuple[list[PreparedEvent], list[PreparedEvent]]:
    """Part what may be tried again from what DynamoDB refuses for good."""
    final = [event for event in left if isinstance(event.failure, RefusedError)]
    return [event for event in left if not isinstance(event.failure, RefusedError)], final


def _reject(events: Iterable[PreparedEvent]) -> list[Rejected]:
    return [
        reject_storage(index, event.failure, outcome_unknown=event.outcome_unknown)
        for event in events
        if event.failure is not None
        for index in event.indexes
    ]
