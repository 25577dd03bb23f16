"""What the engine is asked for beside what the client wants, so that capacity units come out exact.

The engine's report of consumed capacity for every write (a cross-check that also finds replaced items), and
for reads that do not show all they read; the images that a write replaces or leaves. The client never sees
what it did not ask for.
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
    "AttributesToGet", "FilterExpression", "ProjectionExpression", "QueryFilter", "ScanFilter", "Select",
})  # fmt: skip
_FORMS: Final = ("TOTAL", "INDEXES")


@dataclass(frozen=True, slots=True)
class RewrittenRequest:
    """A request with what was added to it."""

    request: Document
    added: frozenset[str]  # names of parameters
    form: str | None  # of consumed capacity, that the client wants

    def named_in(self, text: str) -> bool:
        """Say whether an engine's complaint is about something that was added."""
        lowered = text.lower()
        return any(name.lower() in lowered for name in self.added)

    def without_extras(self, answer: Document) -> dict[str, Any] | None:
        """Return the answer without what the client did not ask for, None where nothing was added."""
        if not self.added and self.form is None:
            return None
        hidden = {"ConsumedCapacity"}
        if _VALUES in self.added:
            hidden.add("Attributes")
        if _ON_FAILURE in self.added:
            hidden.add("Item")
        return {name: value for name, value in answer.items() if name not in hidden}


def rewrite_request(operation: str, request: Document) -> RewrittenRequest:
    """Return a request with all that the model wants to know asked for."""
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
