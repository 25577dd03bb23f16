"""How CloudWatch's requests and answers travel: JSON 1.0, or the older Query with XML.

The pinned boto3, like the one that MiniStack pins, speaks JSON; older SDKs and AWS CLIs speak Query. Smithy
RPC v2 CBOR, which SDKs of some other languages prefer, is refused with a sentence that says so: MiniStack,
which keeps the alarms, does not speak it as installed either.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final
from urllib.parse import parse_qsl
from uuid import uuid4
from xml.sax.saxutils import escape

from local.calls import Reply
from local.cloudwatch.errors import CloudWatchError, invalid

__all__ = ["CloudWatchRequest", "Instant", "answered", "is_cloudwatch", "read", "refused"]

_TARGET: Final = "GraniteServiceVersion20100801."
_CBOR_PATH: Final = re.compile(r"/service/GraniteServiceVersion20100801/operation/(\w+)")
_SPACE: Final = "http://monitoring.amazonaws.com/doc/2010-08-01/"
_TYPES: Final = "com.amazonaws.cloudwatch.v2010_08_01#"
_JSON: Final = "application/x-amz-json-1.0"


class Instant(float):
    """A time in an answer, in seconds since the epoch; each protocol writes it its own way."""


@dataclass(frozen=True, slots=True)
class CloudWatchRequest:
    """A request: which operation, by which protocol (`json`, `query` or `cbor`), and its body."""

    operation: str
    protocol: str
    body: bytes

    def parameters(self) -> dict[str, Any]:
        """Return the parameters.

        Raises:
            CloudWatchError: The body is malformed.
        """
        if self.protocol == "cbor":
            raise CloudWatchError(
                "InvalidParameterValue",
                "The local CloudWatch speaks AWS JSON 1.0 and Query, not CBOR.",
            )
        if self.protocol == "query":
            return _nested(parse_qsl(self.body.decode(errors="replace"), keep_blank_values=True))
        try:
            found = json.loads(self.body or b"{}")
        except ValueError as error:
            raise CloudWatchError("SerializationException", "The body is not JSON.") from error
        if not isinstance(found, dict):
            raise CloudWatchError("SerializationException", "The body is not a JSON object.")
        return found


def is_cloudwatch(path: str, headers: Mapping[str, str]) -> bool:
    """Say whether a request is for CloudWatch's metrics API."""
    return (
        headers.get("X-Amz-Target", "").startswith(_TARGET)
        or _CBOR_PATH.search(path) is not None
        or "/monitoring/" in headers.get("Authorization", "")
    )


def read(path: str, headers: Mapping[str, str], body: bytes) -> CloudWatchRequest:
    """Return what a request for CloudWatch's metrics API asks."""
    target = headers.get("X-Amz-Target", "")
    if target.startswith(_TARGET):
        return CloudWatchRequest(target.removeprefix(_TARGET), "json", body)
    found = _CBOR_PATH.search(path)
    if found is not None:
        return CloudWatchRequest(found[1], "cbor", body)
    fields = dict(parse_qsl(body.decode(errors="replace")))
    return CloudWatchRequest(fields.get("Action", ""), "query", body)


def answered(asked: CloudWatchRequest, content: Mapping[str, Any]) -> Reply:
    """Return a successful reply."""
    if asked.protocol != "query":
        return Reply(200, json.dumps(content).encode(), {"Content-Type": _JSON})
    name = asked.operation
    result = f"<{name}Result>{_xml(content)}</{name}Result>"
    return _xml_reply(
        200, f"{name}Response", f"{result}<ResponseMetadata>{_id()}</ResponseMetadata>"
    )


def refused(asked: CloudWatchRequest, error: CloudWatchError) -> Reply:
    """Return the reply that says what is wrong."""
    message = str(error)
    if asked.protocol == "query":
        told = f"<Type>Sender</Type><Code>{error.code}</Code><Message>{escape(message)}</Message>"
        return _xml_reply(error.status, "ErrorResponse", f"<Error>{told}</Error>{_id()}")
    body = json.dumps({"__type": _TYPES + error.kind, "message": message}).encode()
    headers = {"Content-Type": _JSON, "x-amzn-query-error": f"{error.code};Sender"}
    return Reply(error.status, body, headers)


def _nested(fields: list[tuple[str, str]]) -> dict[str, Any]:
    """Turn `A.member.1.B=c` into `{"A": [{"B": "c"}]}`."""
    root: dict[str, Any] = {}
    for name, value in fields:
        *path, last = name.split(".")
        node = root
        for part in path:
            node = node.setdefault(part, {})
            if not isinstance(node, dict):
                raise invalid(f"The parameter {name} contradicts another.")
        node[last] = value
    return {name: _listed(value) for name, value in root.items()}


def _listed(node: Any) -> Any:
    if not isinstance(node, dict):
        return node
    if node.keys() == {"member"} and isinstance(node["member"], dict):
        members = node["member"]
        if all(number.isdecimal() for number in members):
            return [_listed(members[number]) for number in sorted(members, key=int)]
    return {name: _listed(value) for name, value in node.items()}


def _xml(value: Any) -> str:
    if isinstance(value, Mapping):
        return "".join(f"<{name}>{_xml(part)}</{name}>" for name, part in value.items())
    if isinstance(value, list):
        return "".join(f"<member>{_xml(part)}</member>" for part in value)
    if isinstance(value, Instant):
        return datetime.fromtimestamp(value, UTC).isoformat().replace("+00:00", "Z")
    if isinstance(value, bool):
        return str(value).lower()
    return escape(str(value))


def _xml_reply(status: int, root: str, inner: str) -> Reply:
    body = f'<{root} xmlns="{_SPACE}">{inner}</{root}>'.encode()
    return Reply(status, body, {"Content-Type": "text/xml"})


def _id() -> str:
    return f"<RequestId>{uuid4()}</RequestId>"
