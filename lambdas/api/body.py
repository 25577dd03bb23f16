"""From the body of an ingest request to its events, each decoded by itself."""

import base64
import json
import re
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any, Final, NamedTuple, NoReturn

import msgspec

from lambdas.api.errors import RequestError
from lambdas.api.types import MAX_BODY_BYTES, MAX_EVENTS, EventInput, RawIngestRequest
from spillway import Event, InvalidInputError
from spillway.errors import shorten
from spillway.timestamps import parse_time

__all__ = ["decode_body", "decode_event", "described", "read_body"]

_request = msgspec.json.Decoder(RawIngestRequest)
_event = msgspec.json.Decoder(EventInput)
_FIELD: Final = re.compile(r" - at `\$\.?([^`]*)`$")
_MISSING: Final = re.compile(r"Object missing required field `([^`]+)`")


def read_body(event: Mapping[str, Any]) -> bytes:
    """Return the body of an HTTP API's event; API Gateway sends what it takes for binary as base64."""
    body = event.get("body") or ""
    if not event.get("isBase64Encoded"):
        return str(body).encode(errors="surrogatepass")
    try:
        return base64.b64decode(body, validate=True)
    except ValueError as error:  # binascii's own, or for characters beyond ASCII
        raise _bad_request("the body is not valid base64") from error


def decode_body(body: bytes, content_type: str) -> list[bytes]:
    """Return the JSON of each event of a body; RequestError where the body as a whole can't be used."""
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


def decode_event(encoded: bytes, made_id: str | None) -> Event:
    """Return one event, with `made_id` where it brings none; InvalidInputError says what is wrong."""
    try:
        given = _event.decode(encoded)
        time = parse_time(given.time)
    except msgspec.ValidationError as error:
        raise _explained(str(error)) from error
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise InvalidInputError("invalid_event", "", _why_not_json(encoded, error)) from error
    except RecursionError as error:
        raise InvalidInputError("invalid_event", "payload", "is nested too deeply") from error
    except ValueError as error:
        raise InvalidInputError("invalid_event", "time", str(error)) from error
    return Event(
        series=given.series,
        time=time,
        payload=given.payload,
        id=made_id if given.id is None else given.id,
        sharding_key=given.sharding_key,
    )


def _explained(message: str) -> InvalidInputError:
    missing = _MISSING.match(message)
    if missing:
        return InvalidInputError("invalid_event", missing[1], "is missing")
    field = _FIELD.search(message)
    reason = shorten(_FIELD.sub("", message))  # it names unknown fields
    return InvalidInputError("invalid_event", field[1] if field else "", reason)


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
        raise _bad_request(described(error)) from error
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        # One event may be what is wrong: part the body without decoding it.
        parts = _split_events(body)
        if parts is None:
            raise _bad_request(described(error)) from error
        return parts


def described(error: Exception) -> str:
    """Say why a body as a whole can't be decoded: which field, or that it is no JSON."""
    if not isinstance(error, msgspec.ValidationError):
        return f"the body is not valid JSON: {error}"
    explained = _explained(str(error))
    return f"{explained.where or 'the body'}: {explained.reason}"


def _bad_request(message: str) -> RequestError:
    return RequestError(HTTPStatus.BAD_REQUEST, "invalid_request", message)


# A string, closed or running to the end of the body, or a character of structure.
_TOKEN: Final = re.compile(rb'"(?:[^"\\]|\\.)*+(?:"|\Z)|[][{},]', re.DOTALL)


class _Skeleton(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    events: list[int]


def _split_events(body: bytes) -> list[bytes] | None:
    """Part `{"events":[…]}` at the commas between its events, whatever these hold; None where that can't be done."""
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
