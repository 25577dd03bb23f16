"""The events of an ingest request: which could be decoded, and which position each has in the request."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from http import HTTPStatus

from lambdas.api.body import decode_event
from lambdas.api.errors import RequestError
from spillway import Event, InvalidInputError, Rejected, WriteResult
from spillway.writing.results import reject_input

__all__ = ["IngestBatch", "decode_batch"]


@dataclass(frozen=True, slots=True, kw_only=True)
class IngestBatch:
    """A decoded request.

    Attributes:
        events: the events that could be decoded.
        positions: the position of each of these in the request.
        undecodable: the others, rejected.
        ids_made: whether the service makes the id of any event.
    """

    events: list[Event]
    positions: list[int]
    undecodable: list[Rejected]
    ids_made: bool

    def complete(self, result: WriteResult) -> WriteResult:
        """Return the outcome of the whole request from that of its decoded events."""
        ids: list[str | None] = [None] * (len(self.events) + len(self.undecodable))
        for position, event_id in zip(self.positions, result.ids, strict=True):
            ids[position] = event_id
        rejected = [replace(each, index=self.positions[each.index]) for each in result.rejected]
        rejected = sorted([*rejected, *self.undecodable], key=lambda each: each.index)
        return WriteResult(accepted=result.accepted, rejected=tuple(rejected), ids=tuple(ids))


def decode_batch(encoded: Sequence[bytes], idempotency_key: str | None) -> IngestBatch:
    """Decode each event by itself; with an idempotency key, ids that the client leaves out derive from key and position."""
    if idempotency_key is not None and not 1 <= len(idempotency_key) <= 255:
        message = "Idempotency-Key: must be 1 to 255 characters"
        raise RequestError(HTTPStatus.BAD_REQUEST, "invalid_request", message)
    events: list[Event] = []
    positions: list[int] = []
    undecodable: list[Rejected] = []
    ids_made = False
    for index, each in enumerate(encoded):
        derived = None if idempotency_key is None else _derived_id(idempotency_key, index)
        try:
            event = decode_event(each, derived)
        except InvalidInputError as error:
            undecodable.append(reject_input(index, error))
            continue
        ids_made = ids_made or event.id is None or event.id == derived
        events.append(event)
        positions.append(index)
    return IngestBatch(
        events=events, positions=positions, undecodable=undecodable, ids_made=ids_made
    )


def _derived_id(key: str, position: int) -> str:
    return hashlib.sha256(f"{position}:{key}".encode(errors="surrogatepass")).hexdigest()[:32]
