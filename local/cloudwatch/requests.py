"""Requests to CloudWatch: protocols, parameters, errors and replies.

The pinned boto3, like MiniStack's, speaks AWS JSON 1.0; older SDKs and AWS CLIs speak Query, whose
answers are XML. Smithy RPC v2 CBOR, which SDKs of some other languages prefer, is refused with an
error that says so: MiniStack, which keeps the alarms, does not speak it as installed either.
"""

import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final
from urllib.parse import parse_qsl
from uuid import uuid4
from xml.sax.saxutils import escape

from dynamoheat.serve.wire import Reply

__all__ = [
    "JSON_TARGET",
    "CloudWatchError",
    "CloudWatchRequest",
    "Instant",
    "Parameters",
    "dimensions_parameter",
    "error_reply",
    "integer_parameter",
    "invalid_combination",
    "invalid_value",
    "is_cloudwatch",
    "list_parameter",
    "missing_parameter",
    "not_found",
    "number_parameter",
    "parse_request",
    "period_parameter",
    "structure",
    "success_reply",
    "text_parameter",
    "time_parameter",
    "unsupported_math",
]

JSON_TARGET: Final = "GraniteServiceVersion20100801."
"""Prefix of the `X-Amz-Target` header."""

_CBOR_PATH: Final = re.compile(r"/service/GraniteServiceVersion20100801/operation/(\w+)")
_JSON: Final = "application/x-amz-json-1.0"
_ERROR_TYPES: Final = "com.amazonaws.cloudwatch.v2010_08_01#"
_XML_NAMESPACE: Final = "http://monitoring.amazonaws.com/doc/2010-08-01/"
_MAX_DIMENSIONS: Final = 30

Parameters = Mapping[str, Any]
"""Parameters of a request, or one structure among them."""


class Instant(float):
    """A time in a reply, in seconds since the epoch. Each protocol writes it in its own way."""


class CloudWatchError(Exception):
    """A refused request. `code` is what SDKs show, `kind` the name of the exception's class."""

    def __init__(self, code: str, message: str, *, kind: str = "", status: int = 400) -> None:
        """Take the code, the message, the exception's name where it differs, the HTTP status."""
        super().__init__(message)
        self.code = code
        self.kind = kind or code
        self.status = status


def invalid_value(message: str) -> CloudWatchError:
    """Return the error for a value that is out of range or malformed."""
    return CloudWatchError("InvalidParameterValue", message, kind="InvalidParameterValueException")


def invalid_combination(message: str) -> CloudWatchError:
    """Return the error for parameters that exclude or lack each other."""
    return CloudWatchError(
        "InvalidParameterCombination", message, kind="InvalidParameterCombinationException"
    )


def missing_parameter(name: str) -> CloudWatchError:
    """Return the error for an absent parameter."""
    return CloudWatchError(
        "MissingParameter",
        f"The parameter {name} is required.",
        kind="MissingRequiredParameterException",
    )


def not_found(message: str) -> CloudWatchError:
    """Return the error for something that does not exist."""
    return CloudWatchError("ResourceNotFoundException", message, status=404)


def unsupported_math(alternative: str) -> CloudWatchError:
    """Return the error for metric math, which the local CloudWatch leaves out."""
    return CloudWatchError(
        "ValidationError", f"The local CloudWatch does not support metric math: {alternative}."
    )


@dataclass(frozen=True, slots=True)
class CloudWatchRequest:
    """An operation, the protocol it came by (`json`, `query` or `cbor`), and the raw body."""

    operation: str
    protocol: str
    body: bytes

    def parameters(self) -> dict[str, Any]:
        """Decode the parameters.

        Raises:
            CloudWatchError: The body is malformed, or CBOR.
        """
        if self.protocol == "cbor":
            raise CloudWatchError(
                "InvalidParameterValue",
                "The local CloudWatch speaks AWS JSON 1.0 and Query, not CBOR.",
            )
        if self.protocol == "query":
            return _nest(parse_qsl(self.body.decode(errors="replace"), keep_blank_values=True))
        try:
            parameters = json.loads(self.body or b"{}")
        except ValueError as error:
            raise CloudWatchError("SerializationException", "The body is not JSON.") from error
        if not isinstance(parameters, dict):
            raise CloudWatchError("SerializationException", "The body is not a JSON object.")
        return parameters


def is_cloudwatch(path: str, headers: Mapping[str, str]) -> bool:
    """Return whether an HTTP request is for CloudWatch's metrics API."""
    return (
        headers.get("X-Amz-Target", "").startswith(JSON_TARGET)
        or _CBOR_PATH.search(path) is not None
        or "/monitoring/" in headers.get("Authorization", "")
    )


def parse_request(path: str, headers: Mapping[str, str], body: bytes) -> CloudWatchRequest:
    """Find the operation and the protocol of a request to CloudWatch's metrics API."""
    target = headers.get("X-Amz-Target", "")
    if target.startswith(JSON_TARGET):
        return CloudWatchRequest(target.removeprefix(JSON_TARGET), "json", body)
    cbor = _CBOR_PATH.search(path)
    if cbor is not None:
        return CloudWatchRequest(cbor[1], "cbor", body)
    fields = dict(parse_qsl(body.decode(errors="replace")))
    return CloudWatchRequest(fields.get("Action", ""), "query", body)


def success_reply(request: CloudWatchRequest, content: Mapping[str, Any]) -> Reply:
    """Encode a successful reply in the request's protocol."""
    if request.protocol != "query":
        return Reply(200, json.dumps(content).encode(), {"Content-Type": _JSON})
    name = request.operation
    result = f"<{name}Result>{_to_xml(content)}</{name}Result>"
    metadata = f"<ResponseMetadata>{_request_id()}</ResponseMetadata>"
    return _xml_reply(200, f"{name}Response", result + metadata)


def error_reply(request: CloudWatchRequest, error: CloudWatchError) -> Reply:
    """Encode an error in the request's protocol."""
    message = str(error)
    if request.protocol == "query":
        detail = f"<Type>Sender</Type><Code>{error.code}</Code><Message>{escape(message)}</Message>"
        return _xml_reply(error.status, "ErrorResponse", f"<Error>{detail}</Error>{_request_id()}")
    body = json.dumps({"__type": _ERROR_TYPES + error.kind, "message": message}).encode()
    headers = {"Content-Type": _JSON, "x-amzn-query-error": f"{error.code};Sender"}
    return Reply(error.status, body, headers)


def text_parameter(parameters: Parameters, name: str) -> str:
    """Return a required text that is not empty."""
    value = parameters.get(name)
    if value is None or value == "":
        raise missing_parameter(name)
    if not isinstance(value, str):
        raise invalid_value(f"The parameter {name} must be a string.")
    return value


def number_parameter(parameters: Parameters, name: str, default: float | None = None) -> float:
    """Return a finite number, required unless there is a default."""
    value = parameters.get(name)
    if value is None and default is not None:
        return default
    if value is None:
        raise missing_parameter(name)
    try:
        number = float(value)
    except (TypeError, ValueError) as error:
        raise invalid_value(f"The parameter {name} must be a number.") from error
    if not math.isfinite(number):
        raise invalid_value(f"The parameter {name} must be a finite number.")
    return number


def integer_parameter(parameters: Parameters, name: str, default: int | None = None) -> int:
    """Return a whole number, required unless there is a default."""
    number = number_parameter(parameters, name, None if default is None else float(default))
    if number != int(number):
        raise invalid_value(f"The parameter {name} must be an integer.")
    return int(number)


def period_parameter(parameters: Parameters) -> int:
    """Return `Period` in seconds: 1, 5, 10, 20, 30 or a multiple of 60."""
    seconds = integer_parameter(parameters, "Period")
    if seconds not in (1, 5, 10, 20, 30) and (seconds < 60 or seconds % 60):
        raise invalid_value("The parameter Period must be 1, 5, 10, 20, 30 or a multiple of 60.")
    return seconds


def time_parameter(parameters: Parameters, name: str, default: float | None = None) -> float:
    """Return a time in seconds since the epoch, given as such or in ISO 8601."""
    value = parameters.get(name)
    if isinstance(value, str) and not value.replace(".", "", 1).isdecimal():
        try:
            time = datetime.fromisoformat(value)
        except ValueError as error:
            raise invalid_value(f"The parameter {name} must be a time.") from error
        return (time if time.tzinfo else time.replace(tzinfo=UTC)).timestamp()
    return number_parameter(parameters, name, default)


def list_parameter(parameters: Parameters, name: str) -> list[Any]:
    """Return a list, empty where it is absent."""
    value = parameters.get(name)
    if value is None:
        return []
    if not isinstance(value, list):
        raise invalid_value(f"The parameter {name} must be a list.")
    return value


def structure(value: Any, name: str) -> Parameters:
    """Return a value that must be a structure; `name` says where it stands."""
    if not isinstance(value, Mapping):
        raise invalid_value(f"The parameter {name} must be a structure.")
    return value


def dimensions_parameter(parameters: Parameters) -> frozenset[tuple[str, str]]:
    """Return `Dimensions` as pairs of name and value."""
    pairs = [structure(entry, "Dimensions") for entry in list_parameter(parameters, "Dimensions")]
    if len(pairs) > _MAX_DIMENSIONS:
        raise invalid_value(f"The collection Dimensions must not exceed {_MAX_DIMENSIONS}.")
    return frozenset(
        (text_parameter(pair, "Name"), text_parameter(pair, "Value")) for pair in pairs
    )


def _nest(fields: list[tuple[str, str]]) -> dict[str, Any]:
    """Turn `A.member.1.B=c` into `{"A": [{"B": "c"}]}`."""
    root: dict[str, Any] = {}
    for name, value in fields:
        *path, last = name.split(".")
        node = root
        for part in path:
            node = node.setdefault(part, {})
            if not isinstance(node, dict):
                raise invalid_value(f"The parameter {name} contradicts another.")
        node[last] = value
    return {name: _members_to_lists(value) for name, value in root.items()}


def _members_to_lists(node: Any) -> Any:
    if not isinstance(node, dict):
        return node
    if node.keys() == {"member"} and isinstance(node["member"], dict):
        members = node["member"]
        if all(number.isdecimal() for number in members):
            return [_members_to_lists(members[number]) for number in sorted(members, key=int)]
    return {name: _members_to_lists(value) for name, value in node.items()}


def _to_xml(value: Any) -> str:
    if isinstance(value, Mapping):
        return "".join(f"<{name}>{_to_xml(part)}</{name}>" for name, part in value.items())
    if isinstance(value, list):
        return "".join(f"<member>{_to_xml(part)}</member>" for part in value)
    if isinstance(value, Instant):
        return datetime.fromtimestamp(value, UTC).isoformat().replace("+00:00", "Z")
    if isinstance(value, bool):
        return str(value).lower()
    return escape(str(value))


def _xml_reply(status: int, root: str, inner: str) -> Reply:
    body = f'<{root} xmlns="{_XML_NAMESPACE}">{inner}</{root}>'.encode()
    return Reply(status, body, {"Content-Type": "text/xml"})


def _request_id() -> str:
    return f"<RequestId>{uuid4()}</RequestId>"
