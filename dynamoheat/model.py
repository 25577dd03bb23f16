"""The model's interface: admission and settlement of requests, and what can be observed."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from random import Random
from typing import Any

from dynamoheat.admission import Admission, AdmissionController
from dynamoheat.consumption import (
    SCAN,
    ItemCharges,
    consume_reads,
    consume_writes,
    difference,
    total_units,
)
from dynamoheat.errors import MalformedRequestError, UnknownTableError
from dynamoheat.parameters import ModelParameters
from dynamoheat.reasons import Throttle
from dynamoheat.requests import OPERATIONS, RequestCost, estimate_cost
from dynamoheat.resources import Resource
from dynamoheat.settings import TableSettings
from dynamoheat.settlement import settle_failure, settle_request
from dynamoheat.sizes import Item
from dynamoheat.snapshot import snapshot
from dynamoheat.tables import Table

__all__ = ["Heat"]


@contextmanager
def _checked(operation: str) -> Iterator[None]:
    """Turn errors caused by a document of the wrong shape into MalformedRequestError."""
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
    """DynamoDB's partitions, token buckets and limits for any number of tables.

    Not thread-safe. `now` is seconds on any clock that does not step back. Equal seeds, calls and
    times give equal results. A request that is not throttled costs about 2 µs of CPU an item.
    """

    def __init__(self, parameters: ModelParameters | None = None, *, seed: int = 0) -> None:
        self.parameters = (parameters or ModelParameters()).in_real_time()
        self.tables: dict[str, Table] = {}
        self._random = Random(seed)  # noqa: S311  # a simulation's chance, not a secret
        self._window_end = 0.0
        limits = self.parameters
        self._admission = AdmissionController(limits.index_buffer_seconds * limits.partition_wcu)

    def create_table(self, settings: TableSettings, now: float) -> None:
        """Add a table, empty except for `settings.stored_bytes`.

        It replaces one of the same name.
        """
        divides = not any(index.local for index in settings.indexes)
        resource = self._resource(settings, None, now, divides=divides)
        indexes = {
            index.name: self._resource(settings, index.name, now)
            for index in settings.indexes
            if not index.local
        }
        self.tables[settings.name] = Table(settings, resource, indexes, self.parameters)

    def update_table(self, settings: TableSettings, now: float) -> None:
        """Change mode, throughput or indexes at once.

        Partitions, counters and cached images are kept.

        UnknownTableError if there is no such table.
        """
        table = self.table(settings.name)
        old = {index.name: index.resource for index in table.indexes.values() if not index.is_local}
        table.resource.update(settings.throughput, provisioned=settings.provisioned, now=now)
        indexes: dict[str, Resource] = {}
        for index in settings.indexes:
            if index.name in old:
                old[index.name].update(index.throughput, provisioned=settings.provisioned, now=now)
            if not index.local:
                indexes[index.name] = old.get(index.name) or self._resource(
                    settings, index.name, now
                )
        changed = Table(settings, table.resource, indexes, self.parameters)
        changed.image_cache = table.image_cache
        self.tables[settings.name] = changed

    def delete_table(self, name: str) -> None:
        """Remove a table if it exists."""
        self.tables.pop(name, None)

    def table(self, name: str) -> Table:
        """Return a table. UnknownTableError if there is none."""
        if name not in self.tables:
            raise UnknownTableError(name)
        return self.tables[name]

    def resource(self, table: str, index: str | None = None) -> Resource:
        """Return the partitions, limits and metrics of a table or a global index."""
        found = self.table(table)
        if index is None:
            return found.resource
        if index not in found.indexes:
            raise UnknownTableError(f"{table}/index/{index}")
        return found.indexes[index].resource

    def is_metered(self, operation: str) -> bool:
        """Return whether an operation of DynamoDB consumes capacity that the model knows."""
        return operation in OPERATIONS

    def admit(self, operation: str, request: Mapping[str, Any], now: float) -> Admission:
        """Admit a request item by item, or a transaction as a whole, and consume its units.

        Raises:
            UnknownTableError: A table or index does not exist in the model.
            MalformedRequestError: The request is not valid or not metered. Nothing was consumed.
        """
        if now >= self._window_end:
            self.advance(now)
        with _checked(operation):
            cost = estimate_cost(operation, request, self.tables)
        admission = Admission(operation, request, cost, self._verdicts(cost, now))
        if admission.verdicts.count(None) < len(admission.verdicts):
            self._count_refusals(admission, now)
        return admission

    def settle(self, admission: Admission, answer: Mapping[str, Any], now: float) -> None:
        """Correct the consumption by the engine's answer to `forwarded_request`.

        Raises:
            MalformedRequestError: The answer is not DynamoDB's. The consumption stands.
        """
        taken = admission.admitted_charges
        with _checked(admission.operation):
            final = settle_request(
                admission.operation, admission.forwarded_request, taken, answer, self.tables
            )
        self._apply_correction(admission, taken, final, now)

    def fail(self, admission: Admission, error: Mapping[str, Any], now: float) -> None:
        """Correct the consumption of a write whose condition failed, or of a failed transaction."""
        taken = admission.admitted_charges
        with _checked(admission.operation):
            final = settle_failure(
                admission.operation, admission.request, taken, error, self.tables
            )
        self._apply_correction(admission, taken, final, now)

    def cancel(self, admission: Admission, now: float) -> None:
        """Give back what was consumed: the engine refused the request or never saw it."""
        self._apply_correction(admission, admission.admitted_charges, [], now)

    def advance(self, now: float) -> None:
        """Let time pass: record rates, add and split partitions.

        `admit` calls it once a heat window.
        """
        self._window_end = now + self.parameters.heat_window_seconds
        for table in self.tables.values():
            for resource in table.resources():
                resource.advance(now)

    def snapshot(self, now: float) -> dict[str, Any]:
        """Return partitions, limits, throttles and splits of all tables as plain JSON values."""
        return snapshot(self.tables, now)

    def remember(self, table: str, item: Item) -> None:
        """Cache the image of an item that is already stored."""
        found = self.table(table)
        found.image_cache.put(found.identity(item), item)

    def _verdicts(self, cost: RequestCost, now: float) -> list[Throttle | None]:
        if not cost.is_write:
            reads = (
                self._admission.admit_read_transaction
                if cost.atomic
                else self._admission.admit_reads
            )
            return reads(cost.item_charges, now)
        indexes = [index for table in cost.tables for index in table.index_resources()]
        writes = (
            self._admission.admit_write_transaction if cost.atomic else self._admission.admit_writes
        )
        return writes(cost.item_charges, indexes, now)

    def _count_refusals(self, admission: Admission, now: float) -> None:
        cost = admission.cost
        for charges, verdict in zip(cost.item_charges, admission.verdicts, strict=True):
            if verdict is not None:
                self._count_refusal(charges, verdict, now)
        if admission.is_rejected:
            for table in cost.tables:
                table.resource.meter.advance(now)
                table.resource.meter.count_rejected_request(admission.operation)

    def _count_refusal(self, charges: ItemCharges, throttle: Throttle, now: float) -> None:
        resource = self.resource(throttle.table, throttle.index)
        resource.meter.advance(now)
        resource.meter.count_throttled(throttle, total_units(charges))
        target, _, _, key, sort, _ = charges[0]
        if (
            target.resource is resource and key != SCAN
        ):  # insights do not count what an index's buffer refused
            resource.insights.count_throttled(key, None if sort is None else str(sort), now)

    def _apply_correction(
        self,
        admission: Admission,
        taken: Sequence[ItemCharges],
        final: list[ItemCharges],
        now: float,
    ) -> None:
        admission.final_charges = final
        if final == taken:
            return
        charges = difference(taken, final)
        take = consume_writes if admission.cost.is_write else consume_reads
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
