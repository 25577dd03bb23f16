"""Payloads as JSON text: strict on the way in, exact on the way out."""

import json
import math
from typing import Any, Final

import msgspec
import orjson

from spillway.errors import InvalidInputError

__all__ = ["canonical", "encode_payload"]

_STRICT: Final = orjson.OPT_PASSTHROUGH_DATETIME | orjson.OPT_PASSTHROUGH_DATACLASS
_MOST_LEVELS: Final = 254  # orjson's limit; readers in other languages have limits too


def encode_payload(payload: Any) -> bytes:
    """Return a payload as JSON bytes; InvalidInputError where it is no object or JSON can't hold it.

    JSON has no NaN and no infinity; levels of nesting are limited to 254.
    """
    if not isinstance(payload, dict):
        raise _invalid("must be a JSON object")
    try:
        encoded = orjson.dumps(payload, option=_STRICT)
    except TypeError as error:
        encoded = _encode_wide(payload, str(error))
    # orjson writes NaN and infinity as null, so only a null makes the walk worth its time.
    if b"null" in encoded and _has_non_finite(payload):
        raise _invalid("must not hold NaN or an infinity: JSON has neither")
    return encoded


def _encode_wide(payload: dict[str, Any], reason: str) -> bytes:
    """Encode what orjson refuses and JSON can hold: integers beyond 64 bits."""
    if "64-bit" not in reason:
        raise _invalid(_explain(reason))
    _check_shape(payload)
    try:
        text = json.dumps(payload, allow_nan=False, ensure_ascii=False, separators=(",", ":"))
        return text.encode()
    except (TypeError, ValueError) as error:
        raise _invalid(_explain(str(error))) from error


def _check_shape(payload: dict[str, Any]) -> None:
    """Refuse what `json` takes and orjson does not: deeper levels, and keys that would become text."""
    rest: list[tuple[Any, int]] = [(payload, 1)]
    while rest:
        value, level = rest.pop()
        if level > _MOST_LEVELS and isinstance(value, dict | list | tuple):
            raise _invalid(_explain("recursion"))
        if isinstance(value, dict):
            if not all(isinstance(key, str) for key in value):
                raise _invalid(_explain("keys must be text"))
            rest.extend((each, level + 1) for each in value.values())
        elif isinstance(value, list | tuple):
            rest.extend((each, level + 1) for each in value)


def _explain(reason: str) -> str:
    lowered = reason.lower()
    if "recursion" in lowered:
        return f"is nested too deeply: {_MOST_LEVELS} levels at most"
    if "surrogate" in lowered or "utf-8" in lowered:
        return "holds text that is not valid Unicode (a lone surrogate)"
    return f"can't be written as JSON: {reason}"


def _has_non_finite(payload: dict[str, Any]) -> bool:
    rest: list[Any] = [payload]
    while rest:
        value = rest.pop()
        if isinstance(value, dict):
            rest.extend(value.values())
        elif isinstance(value, list | tuple):
            rest.extend(value)
        elif isinstance(value, float) and not math.isfinite(value):
            return True
    return False


def canonical(text: str) -> bytes:
    """Return payload text with its keys sorted, so that equal objects are equal bytes."""
    return msgspec.json.encode(msgspec.json.decode(text), order="sorted")


def _invalid(reason: str) -> InvalidInputError:
    return InvalidInputError("invalid_event", "payload", reason)
