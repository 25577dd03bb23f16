"""DynamoDB's calls and answers as they travel."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final
from zlib import crc32

import orjson

__all__ = [
    "DATA_PLANE",
    "JSON_TYPE",
    "EndpointCall",
    "Forward",
    "Reply",
    "UnansweredError",
    "document",
    "in_shape",
    "kind_of",
    "refusal",
    "replied",
    "table_name",
    "tables_named",
]

DATA_PLANE: Final = frozenset({
    "BatchExecuteStatement", "BatchGetItem", "BatchWriteItem", "DeleteItem", "ExecuteStatement",
    "ExecuteTransaction", "GetItem", "PutItem", "Query", "Scan", "TransactGetItems",
    "TransactWriteItems", "UpdateItem",
})  # fmt: skip
JSON_TYPE: Final = "application/x-amz-json-1.0"

_TYPES: Final = "com.amazonaws.dynamodb.v20120810#"
_FOREIGN_TYPES: Final = {
    "SerializationException": "com.amazon.coral.service#",
    "ThrottlingException": "com.amazon.coral.availability#",
    "UnknownOperationException": "com.amazon.coral.service#",
    "ValidationException": "com.amazon.coral.validate#",
}


@dataclass(frozen=True, slots=True)
class EndpointCall:
    """One call of DynamoDB's JSON protocol; `headers` are the caller's own."""

    operation: str
    body: bytes
    headers: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Reply:
    """What a call is answered with."""

    status: int
    body: bytes
    headers: Mapping[str, str] = field(default_factory=dict)


Forward = Callable[[EndpointCall], Awaitable[Reply]]


class UnansweredError(Exception):
    """The call gets no answer: its connection is reset, or stays silent until the caller gives up."""

    def __init__(self, *, reset: bool) -> None:
        super().__init__("reset" if reset else "silent")
        self.reset = reset


def replied(status: int, content: Mapping[str, Any], before: Reply | None = None) -> Reply:
    """Return a reply with its checksum, which clients verify; the request id is kept from `before`."""
    body = orjson.dumps(content)
    headers = {"Content-Type": JSON_TYPE, "x-amz-crc32": str(crc32(body))}
    if before is not None and "x-amzn-RequestId" in before.headers:
        headers["x-amzn-RequestId"] = before.headers["x-amzn-RequestId"]
    return Reply(status, body, headers)


def refusal(status: int, kind: str, message: str, **more: Any) -> Reply:
    """Return an error in DynamoDB's own shape; SDKs retry those with status 500 and above."""
    named = _FOREIGN_TYPES.get(kind, _TYPES) + kind
    return replied(status, {"__type": named, "message": message, **more})


def document(body: bytes) -> dict[str, Any] | None:
    """Return a JSON object, None where the body is none."""
    try:
        found = orjson.loads(body)
    except orjson.JSONDecodeError:
        return None
    return found if isinstance(found, dict) else None


def in_shape(reply: Reply) -> Reply:
    """Return a reply whose error is JSON: engines answer some malformed requests in plain text."""
    if reply.status < 400 or reply.body.startswith(b"{"):
        return reply
    if reply.status >= 500:
        return refusal(reply.status, "InternalServerError", _text(reply.body))
    return refusal(400, "SerializationException", _text(reply.body))


def kind_of(error: Mapping[str, Any]) -> str:
    """Return the name of an error, such as `ValidationException`."""
    return str(error.get("__type", "")).rpartition("#")[2]


def tables_named(request: object) -> list[str]:
    """Return the names of the tables in a request of any operation but PartiQL's; none if malformed."""
    return [table_name(name) for name in _names(request) if isinstance(name, str)]


def table_name(name: str) -> str:
    """Return the name in a table's ARN, which DynamoDB takes in place of a name."""
    return name.rpartition(":table/")[2]


def _text(body: bytes) -> str:
    return body.decode(errors="replace")


def _names(node: object) -> list[object]:
    if not isinstance(node, dict):
        return []
    names: list[object] = [node["TableName"]] if "TableName" in node else []
    requested = node.get("RequestItems")
    if isinstance(requested, dict):
        names += requested
    entries = node.get("TransactItems")
    for entry in entries if isinstance(entries, list) else ():
        for action in entry.values() if isinstance(entry, dict) else ():
            names += _names(action)
    return names
