"""Rewrite requests so that the engine's answers tell what they cost.

The engine is asked for its consumed capacity of every write (a cross-check that also finds replaced
items) and of reads that do not return all they read, and for the images that a write replaces or
leaves. The client never sees what it did not ask for.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

__all__ = ["RewrittenRequest", "rewrite_request"]

Document = Mapping[str, Any]

_CAPACITY: Final = "ReturnConsumedCapacity"
_VALUES: Final = "ReturnValues"
_ON_FAILURE: Final = "ReturnValuesOnConditionCheckFailure"
_IMAGES: Final = {"PutItem": "ALL_OLD", "DeleteItem": "ALL_OLD", "UpdateItem": "ALL_NEW"}
_WRITES: Final = frozenset({*_IMAGES, "BatchWriteItem", "TransactWriteItems"})
_HIDING: Final = frozenset({
    "AttributesToGet", "FilterExpression", "ProjectionExpression", "QueryFilter", "ScanFilter",
    "Select",
})  # fmt: skip
_FORMS: Final = ("TOTAL", "INDEXES")


@dataclass(frozen=True, slots=True)
class RewrittenRequest:
    """A request and the parameters that were added to it."""

    request: Document
    added: frozenset[str]  # names of parameters
    capacity_form: str | None  # of ReturnConsumedCapacity, as the client asked

    def is_blamed_in(self, text: str) -> bool:
        """Return whether an engine's error message names an added parameter."""
        lowered = text.lower()
        return any(name.lower() in lowered for name in self.added)

    def strip_extras(self, answer: Document) -> dict[str, Any] | None:
        """Return the answer without what the client did not ask for; None if nothing was added."""
        if not self.added and self.capacity_form is None:
            return None
        hidden = {"ConsumedCapacity"}
        if _VALUES in self.added:
            hidden.add("Attributes")
        if _ON_FAILURE in self.added:
            hidden.add("Item")
        return {name: value for name, value in answer.items() if name not in hidden}


def rewrite_request(operation: str, request: Document) -> RewrittenRequest:
    """Return a request that asks for all that the model needs."""
    added: dict[str, str] = {}
    wanted = request.get(_CAPACITY, "NONE")
    if wanted in ("NONE", "TOTAL") and (operation in _WRITES or _hides(request)):
        added[_CAPACITY] = "INDEXES"
    if operation in _IMAGES:
        if request.get(_VALUES, "NONE") == "NONE":
            added[_VALUES] = _IMAGES[operation]
        if "ConditionExpression" in request and request.get(_ON_FAILURE, "NONE") == "NONE":
            added[_ON_FAILURE] = "ALL_OLD"
    form = wanted if wanted in _FORMS else None
    return RewrittenRequest({**request, **added} if added else request, frozenset(added), form)


def _hides(request: Document) -> bool:
    entries = request.get("RequestItems")
    if isinstance(entries, Mapping):
        return any(_hides(entry) for entry in entries.values() if isinstance(entry, Mapping))
    if "TransactItems" in request:
        return True
    return not _HIDING.isdisjoint(request)
