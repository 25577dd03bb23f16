"""What became of one request."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from dynamoheat.batches import divided
from dynamoheat.capacity import consumed_capacity
from dynamoheat.charges import Work, units_of
from dynamoheat.reasons import Throttle
from dynamoheat.requests import RequestCost

__all__ = ["Admission"]

_BATCHES: Final = ("BatchGetItem", "BatchWriteItem")


@dataclass(slots=True)
class Admission:
    """The model's answer to one request; hand it back to `settle`, `fail` or `cancel`."""

    operation: str
    request: Mapping[str, Any]
    asked: RequestCost
    verdicts: list[Throttle | None]  # one an item, in the request's order
    final: list[Work] = field(default_factory=list)  # of admitted items, once settled

    @property
    def throttles(self) -> list[Throttle]:
        """The refusals, in order. Empty: everything was admitted."""
        return [verdict for verdict in self.verdicts if verdict is not None]

    @property
    def throttled(self) -> bool:
        """Whether nothing got through, so that the whole request fails with an exception."""
        refused = len(self.throttles)
        return bool(refused) and (self.asked.together or refused == len(self.verdicts))

    @property
    def admitted(self) -> list[Work]:
        """The charges of the items that got through, as they were taken."""
        if self.asked.together and self.throttles:
            return []
        return [
            work
            for work, verdict in zip(self.asked.works, self.verdicts, strict=True)
            if verdict is None
        ]

    @property
    def to_send(self) -> Mapping[str, Any]:
        """The request that goes on to the engine: without a batch's refused items."""
        if self.asked.together or not self.throttles or self.operation not in _BATCHES:
            return self.request
        return divided(self.request, self.verdicts)[0]

    @property
    def unprocessed(self) -> dict[str, Any]:
        """A batch's refused items, as UnprocessedItems or UnprocessedKeys."""
        if not self.throttles or self.operation not in _BATCHES:
            return {}
        return divided(self.request, self.verdicts)[1]

    @property
    def units(self) -> float:
        """The units that were taken, all tables and indexes together."""
        return sum(map(units_of, self.final or self.admitted))

    def consumed_capacity(self, form: str) -> list[dict[str, Any]]:
        """Return one ConsumedCapacity a table, `form` being TOTAL or INDEXES."""
        return consumed_capacity(
            self.final or self.admitted,
            form,
            write=self.asked.write,
            transactional=self.operation.startswith("Transact"),
        )
