"""The model: tables, what requests do to them, and what can be seen of it. See `heat` for the whole."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from random import Random
from typing import Any

from dynamoheat.admission import AdmissionController
from dynamoheat.charges import SCAN, Work, difference, units_of
from dynamoheat.consumption import consume_reads, consume_writes
from dynamoheat.errors import MalformedRequestError, UnknownTableError
from dynamoheat.items import Item
from dynamoheat.outcome import Admission
from dynamoheat.parameters import ModelParameters
from dynamoheat.reasons import Throttle
from dynamoheat.requests import OPERATIONS, RequestCost, ask
from dynamoheat.resources import Resource
from dynamoheat.settings import TableSettings
from dynamoheat.settlement import failed_works, settled_works
from dynamoheat.snapshot import snapshot
from dynamoheat.tables import Table

__all__ = ["Heat"]


@contextmanager
def _checked(operation: str) -> Iterator[None]:
    """Turn the stumbles over a document of the wrong shape into one error."""
    try:
        yield
    except (
        ArithmeticError,
        AttributeError,
        LookupError,
        RecursionError,
        TypeError,
        ValueError,
    ) as e:
        raise MalformedRequestError(f"{operation}: {e!r}") from e


class Heat:
    """DynamoDB's partitions, buckets and limits for any number of tables.

    Not thread-safe. `now` is seconds on any clock that does not step back; equal seeds, calls and times
    give equal results. A request without throttling costs about 2 µs of CPU an item.
    """

    def __init__(self, parameters: ModelParameters | None = None, *, seed: int = 0) -> None:
        self.parameters = (parameters or ModelParameters()).in_real_time()
        self.tables: dict[str, Table] = {}
        self._random = Random(seed)  # noqa: S311  # a simulation's chance, not a secret
        self._window_end = 0.0
        limits = self.parameters
        self._gate = AdmissionController(limits.index_buffer_seconds * limits.partition_wcu)

    def create_table(self, settings: TableSettings, now: float) -> None:
        """Add a table, empty but for `settings.stored_bytes`; one of the same name is replaced."""
        divides = not any(index.local for index in settings.indexes)
        resource = self._resource(settings, None, now, divides=divides)
        indexes = {
            index.name: self._resource(settings, index.name, now)
            for index in settings.indexes
            if not index.local
        }
        self.tables[settings.name] = Table(settings, resource, indexes, self.parameters)

    def update_table(self, settings: TableSettings, now: float) -> None:
        """Change mode, throughput or indexes at once. Partitions, counters and memory are kept.

        UnknownTableError for a table that is not there.
        """
        table = self.table(settings.name)
        old = {index.name: index.resource for index in table.indexes.values() if not index.local}
        table.resource.change(settings.throughput, provisioned=settings.provisioned, now=now)
        indexes: dict[str, Resource] = {}
        for index in settings.indexes:
            if index.name in old:
                old[index.name].change(index.throughput, provisioned=settings.provisioned, now=now)
            if not index.local:
                indexes[index.name] = old.get(index.name) or self._resource(
                    settings, index.name, now
                )
        changed = Table(settings, table.resource, indexes, self.parameters)
        changed.remembered = table.remembered
        self.tables[settings.name] = changed

    def delete_table(self, name: str) -> None:
        """Remove a table; nothing happens if it is not there."""
        self.tables.pop(name, None)

    def table(self, name: str) -> Table:
        """Return a table. UnknownTableError where it is not there."""
        if name not in self.tables:
            raise UnknownTableError(name)
        return self.tables[name]

    def resource(self, table: str, index: str | None = None) -> Resource:
        """Return a table's or a global index's partitions, counters and insights."""
        found = self.table(table)
        if index is None:
            return found.resource
        if index not in found.indexes:
            raise UnknownTableError(f"{table}/index/{index}")
        return found.indexes[index].resource

    def meters(self, operation: str) -> bool:
        """Say whether an operation of DynamoDB consumes capacity that the model knows."""
        return operation in OPERATIONS

    def admit(self, operation: str, request: Mapping[str, Any], now: float) -> Admission:
        """Admit a request item by item, or a transaction as a whole, and take its units.

        Raises:
            UnknownTableError: A table or index was not created here.
            MalformedRequestError: The request is not valid or not metered; nothing was taken.
        """
        if now >= self._window_end:
            self.advance(now)
        with _checked(operation):
            asked = ask(operation, request, self.tables)
        admission = Admission(operation, request, asked, self._verdicts(asked, now))
        if admission.verdicts.count(None) < len(admission.verdicts):
            self._count_refusals(admission, now)
        return admission

    def settle(self, admission: Admission, answer: Mapping[str, Any], now: float) -> None:
        """Correct what was taken by what the engine answered to `to_send`, and remember what it left.

        Raises:
            MalformedRequestError: The answer is not DynamoDB's; what was taken stands.
        """
        taken = admission.admitted
        with _checked(admission.operation):
            final = settled_works(
                admission.operation, admission.to_send, taken, answer, self.tables
            )
        self._correct(admission, taken, final, now)

    def fail(self, admission: Admission, error: Mapping[str, Any], now: float) -> None:
        """Correct what was taken by a write whose condition failed, or a transaction that was cancelled."""
        taken = admission.admitted
        with _checked(admission.operation):
            final = failed_works(admission.operation, admission.request, taken, error, self.tables)
        self._correct(admission, taken, final, now)

    def cancel(self, admission: Admission, now: float) -> None:
        """Give back what was taken: the engine refused the request or surely never saw it."""
        self._correct(admission, admission.admitted, [], now)

    def advance(self, now: float) -> None:
        """Let time pass: learn rates, grow, split. `admit` calls it when a window is over."""
        self._window_end = now + self.parameters.heat_window_seconds
        for table in self.tables.values():
            for resource in table.resources():
                resource.advance(now)

    def snapshot(self, now: float) -> dict[str, Any]:
        """Return partitions, rates, throttles and splits of all tables, ready for JSON."""
        return snapshot(self.tables, now)

    def remember(self, table: str, item: Item) -> None:
        """Tell the model of an item that is stored already."""
        found = self.table(table)
        found.remembered.put(found.identity(item), item)

    def _verdicts(self, asked: RequestCost, now: float) -> list[Throttle | None]:
        if not asked.write:
            reads = self._gate.reads_together if asked.together else self._gate.reads
            return reads(asked.works, now)
        indexes = [index for table in asked.tables for index in table.index_resources()]
        writes = self._gate.writes_together if asked.together else self._gate.writes
        return writes(asked.works, indexes, now)

    def _count_refusals(self, admission: Admission, now: float) -> None:
        asked = admission.asked
        for work, verdict in zip(asked.works, admission.verdicts, strict=True):
            if verdict is not None:
                self._count_refusal(work, verdict, now)
        if admission.throttled:
            for table in asked.tables:
                table.resource.meter.advance(now)
                table.resource.meter.refuse_request(admission.operation)

    def _count_refusal(self, work: Work, throttle: Throttle, now: float) -> None:
        resource = self.resource(throttle.table, throttle.index)
        resource.meter.advance(now)
        resource.meter.refuse(throttle, units_of(work))
        arm, _, _, key, sort, _ = work[0]
        if arm.resource is resource and key != SCAN:  # insights don't count what an index held up
            resource.insights.throttled(key, None if sort is None else str(sort), now)

    def _correct(
        self, admission: Admission, taken: Sequence[Work], final: list[Work], now: float
    ) -> None:
        admission.final = final
        if final == taken:
            return
        charges = difference(taken, final)
        take = consume_writes if admission.asked.write else consume_reads
        take(charges, now, corrects=True)

    def _resource(
        self, settings: TableSettings, index: str | None, now: float, *, divides: bool = True
    ) -> Resource:
        own = next((one for one in settings.indexes if one.name == index), settings)
        return Resource(
            settings.name,
            index,
            own.throughput,
            provisioned=settings.provisioned,
            divides_collections=divides,
            stored_bytes=settings.stored_bytes if index is None else 0,
            limits=self.parameters,
            random=self._random,
            now=now,
        )
