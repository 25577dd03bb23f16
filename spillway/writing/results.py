"""What a write answers: one outcome an event."""

from dataclasses import dataclass

from spillway.dynamodb.port import RefusedError, StorageError, ThrottledError
from spillway.dynamodb.retries import DeadlinePassedError
from spillway.errors import InvalidInputError
from spillway.writing.conflicts import ConflictError

__all__ = ["Rejected", "WriteResult", "reject_input", "reject_storage"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rejected:
    """An event that is not known to be stored.

    Attributes:
        index: its position in the request.
        code: a stable word. Never stored: `invalid_event`, `in_future`, `too_late`,
            `item_too_large`, `duplicate_event`, `conflict` (another payload is stored under the
            identity). Not stored: `throttled`, `storage_unavailable`, `storage_refused`, `deadline`
            (never sent, because the time of the write was up).
            Maybe stored: `unknown_outcome`.
        where: the field at fault, such as `time`; empty where it is none or several.
        message: one sentence, without the field's name.
        retryable: whether the same event may be accepted later; identity makes a retry safe.
    """

    index: int
    code: str
    message: str
    retryable: bool
    where: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteResult:
    """The outcome of a write: `accepted + len(rejected)` is the number of events.

    Attributes:
        accepted: events that are durably stored.
        rejected: the others, by ascending index.
        ids: the id of each event in order, None where the event never got one because it is
            invalid.
    """

    accepted: int
    rejected: tuple[Rejected, ...]
    ids: tuple[str | None, ...]


def reject_input(index: int, error: InvalidInputError) -> Rejected:
    """Reject an event for what it is."""
    return Rejected(
        index=index, code=error.code, message=error.reason, retryable=False, where=error.where
    )


def reject_storage(index: int, error: StorageError, *, outcome_unknown: bool) -> Rejected:
    """Reject an event for what the storage last said of it.

    `outcome_unknown`: an attempt to write it may have been carried out. Errors on the way to its
    layout don't count: without one it is not written.
    """
    if outcome_unknown:
        message = f"may or may not be stored; retry it with the same id ({error})"
        return Rejected(index=index, code="unknown_outcome", message=message, retryable=True)
    if isinstance(error, DeadlinePassedError):
        message = "not sent, because the time of this write was up; send it again"
        return Rejected(index=index, code="deadline", message=message, retryable=True)
    if isinstance(error, ConflictError):
        return Rejected(index=index, code="conflict", message=error.message, retryable=False)
    if isinstance(error, RefusedError) and error.is_invalid:
        return Rejected(index=index, code="invalid_event", message=str(error), retryable=False)
    if isinstance(error, ThrottledError):
        code = "throttled"
    elif isinstance(error, RefusedError):
        code = "storage_refused"
    else:
        code = "storage_unavailable"
    return Rejected(index=index, code=code, message=f"not stored ({error})", retryable=True)
