"""Bodies of requests; those of an ingest become events, each decoded by itself."""

import base64
import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from http import HTTPStatus
from typing import Any, Final, NamedTuple, NoReturn

import msgspec

from lambdas.api.errors import RequestError, split_validation_error
from lambdas.api.types import MAX_BODY_BYTES, MAX_EVENTS, EventInput, RawIngestRequest
from spillway import Event, InvalidInputError, Rejected, WriteResult, parse_time

__all__ = ["IngestBatch", "decode_batch", "decode_body", "describe_decode_error", "read_body"]

_request = msgspec.json.Decoder(RawIngestRequest)
_event = msgspec.json.Decoder(EventInput)


def read_body(event: Mapping[str, Any]) -> bytes:
    """Return the body of an HTTP API's event; API Gateway sends binary ones as base64."""
    body = event.get("body") or ""
    if not event.get("isBase64Encoded"):
        return str(body).encode(errors="surrogatepass")
    try:
        return base64.b64decode(body, validate=True)
    except ValueError as error:  # binascii's own, or for characters beyond ASCII
        raise _bad_request("the body is not valid base64") from error


def describe_decode_error(error: Exception) -> str:
    """Say why a body as a whole can't be decoded: which field, or that it is not JSON."""
    if not isinstance(error, msgspec.ValidationError):
        return f"the body is not valid JSON: {error}"
    field, reason = split_validation_error(error)
    return f"{field or 'the body'}: {reason}"


def decode_body(body: bytes, content_type: str) -> list[bytes]:
    """Return the JSON of each event of a body; RequestError if the body as a whole is invalid."""
    if len(body) > MAX_BODY_BYTES:
        message = (
            f"the body has {len(body):,} bytes; {MAX_BODY_BYTES:,} are taken: send less a request"
        )
        raise RequestError(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "body_too_large", message)
    if content_type.partition(";")[0].strip().lower() == "application/x-ndjson":
        events = [line for line in body.splitlines() if line.strip()]
    else:
        events = _events_of(body)
    if not events:
        raise _bad_request("events: must hold at least one event")
    if len(events) > MAX_EVENTS:
        message = f"events: holds {len(events):,}; {MAX_EVENTS:,} are taken: send less a request"
        raise RequestError(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "too_many_events", message)
    return events


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
    """Decode each event by itself.

    With an idempotency key, ids that the client leaves out derive from the key and the position.
    """
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
            event = _decode_event(each, derived)
        except InvalidInputError as error:
            undecodable.append(_reject(index, error))
            continue
        ids_made = ids_made or event.id is None or event.id == derived
        events.append(event)
        positions.append(index)
    return IngestBatch(
        events=events, positions=positions, undecodable=undecodable, ids_made=ids_made
    )


def _derived_id(key: str, position: int) -> str:
    return hashlib.sha256(f"{position}:{key}".encode(errors="surrogatepass")).hexdigest()[:32]


def _reject(index: int, error: InvalidInputError) -> Rejected:
    return Rejected(
        index=index, code=error.code, message=error.reason, retryable=False, where=error.where
    )


def _decode_event(encoded: bytes, derived_id: str | None) -> Event:
    """Return one event, with `derived_id` where it has no id; InvalidInputError."""
    try:
        decoded = _event.decode(encoded)
        time = parse_time(decoded.time)
    except msgspec.ValidationError as error:
        raise _invalid_event(error) from error
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise InvalidInputError("invalid_event", "", _why_not_json(encoded, error)) from error
    except RecursionError as error:
        raise InvalidInputError("invalid_event", "payload", "is nested too deeply") from error
    except ValueError as error:
        raise InvalidInputError("invalid_event", "time", str(error)) from error
    return Event(
        series=decoded.series,
        time=time,
        payload=decoded.payload,
        id=derived_id if decoded.id is None else decoded.id,
        sharding_key=decoded.sharding_key,
    )


def _invalid_event(error: msgspec.ValidationError) -> InvalidInputError:
    return InvalidInputError("invalid_event", *split_validation_error(error))


def _why_not_json(encoded: bytes, error: Exception) -> str:
    try:
        json.loads(encoded, parse_constant=_no_constant)
    except (ValueError, RecursionError) as found:
        return f"is not valid JSON: {found}"
    return f"holds text that is not valid Unicode, such as a lone surrogate ({error})"


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON number")


def _events_of(body: bytes) -> list[bytes]:
    try:
        return [bytes(raw) for raw in _request.decode(body).events]
    except msgspec.ValidationError as error:
        raise _bad_request(describe_decode_error(error)) from error
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        # One event may be what is wrong: split the body without decoding it.
        parts = _split_events(body)
        if parts is None:
            raise _bad_request(describe_decode_error(error)) from error
        return parts


def _bad_request(message: str) -> RequestError:
    return RequestError(HTTPStatus.BAD_REQUEST, "invalid_request", message)


# A string, closed or running to the end of the body, or a character of structure.
_TOKEN: Final = re.compile(rb'"(?:[^"\\]|\\.)*+(?:"|\Z)|[][{},]', re.DOTALL)


class _Skeleton(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    events: list[int]


def _split_events(body: bytes) -> list[bytes] | None:
    """Split `{"events":[…]}` at the commas between its events; None where that can't be done."""
    array = _find_array(body)
    if array is None:
        return None
    cuts = array.commas
    starts = [array.start, *(cut + 1 for cut in cuts)]
    parts = [body[a:b] for a, b in zip(starts, [*cuts, array.end], strict=True)]
    skeleton = body[: array.start] + b",".join([b"0"] * len(parts)) + body[array.end :]
    try:
        msgspec.json.decode(skeleton, type=_Skeleton)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
    return parts


class _Array(NamedTuple):
    start: int
    commas: list[int]
    end: int


def _find_array(body: bytes) -> _Array | None:
    """Find the array of events, two levels deep, and the commas between its elements."""
    depth, start = 0, -1
    commas: list[int] = []
    for token in _TOKEN.finditer(body):
        sign = token[0]
        if sign in b"[{":
            depth += 1
            if depth == 2:
                start, commas = token.end(), []
        elif sign in b"]}":
            depth -= 1
            if depth == 1:
                return _Array(start, commas, token.start())
        elif sign == b"," and depth == 2:
            commas.append(token.start())
    return None
