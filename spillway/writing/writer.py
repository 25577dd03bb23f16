"""The writer: validate, find the layout, choose the shard, write in batches, retry, answer for every event."""

from collections.abc import Iterable, Sequence
from functools import partial

from spillway.backoff import call_until, full_jitter
from spillway.errors import InvalidInputError
from spillway.event import Event
from spillway.layouts.source import LayoutSource
from spillway.runtime import Runtime
from spillway.scaling.capacity import CapacityCheck
from spillway.scaling.grower import Grower
from spillway.settings import Settings
from spillway.storage.port import Call, RefusedError
from spillway.writing.batches import BATCH_SIZE, send_batch
from spillway.writing.demand import DemandWatch, Task
from spillway.writing.payload import canonical
from spillway.writing.preparation import Admission
from spillway.writing.prepared import PreparedEvent
from spillway.writing.relief import Relief
from spillway.writing.result import Rejected, WriteResult, reject_input, reject_storage
from spillway.writing.routing import Router

__all__ = ["Writer"]


class Writer:
    """Writes events under the layout of their series. Thread-safe; layouts are shared through the cache."""

    def __init__(  # noqa: PLR0913, PLR0917  it is where the parts meet
        self,
        call: Call,
        table: str,
        layouts: LayoutSource,
        grower: Grower,
        settings: Settings,
        runtime: Runtime,
        capacity: CapacityCheck | None = None,
    ) -> None:
        self._call = call
        self._table = table
        self._router = Router(layouts, settings, runtime)
        self._relief = Relief(call, table, grower, runtime, capacity)
        self._watch = DemandWatch(grower, index_has_payload=settings.index_has_payload)
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
            pending = self._relief.relieve(pending, deadline)
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
        admission = Admission(self._settings, self._runtime.now())
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
        self, pending: Sequence[PreparedEvent], deadline: float, beside: Sequence[Task]
    ) -> list[PreparedEvent]:
        """Try to write all pending events once, in parallel; return those that are not known to be stored.

        `beside` are tasks to run at the same time.
        """
        addressed, left = self._router.address(pending, deadline)
        batches = [
            addressed[start : start + BATCH_SIZE] for start in range(0, len(addressed), BATCH_SIZE)
        ]
        send = partial(send_batch, call_until(deadline, self._call, self._runtime), self._table)
        tasks: list[Task] = [partial(send, batch) for batch in batches]
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
