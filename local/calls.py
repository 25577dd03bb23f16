"""DynamoDB's calls and answers as they travel, and the answers that the local cloud makes itself."""

import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field

__all__ = [
    "DATA_PLANE",
    "Admit",
    "Call",
    "Forward",
    "Reply",
    "admit_all",
    "missing_table",
    "refusal",
    "tables_named",
]

DATA_PLANE = frozenset({
    "BatchExecuteStatement", "BatchGetItem", "BatchWriteItem", "DeleteItem", "ExecuteStatement",
    "ExecuteTransaction", "GetItem", "PutItem", "Query", "Scan", "TransactGetItems",
    "TransactWriteItems", "UpdateItem",
})  # fmt: skip

_TYPES = "com.amazonaws.dynamodb.v20120810#"


@dataclass(frozen=True, slots=True)
class Call:
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


Forward = Callable[[Call], Awaitable[Reply]]
Admit = Callable[[Call, Forward], Awaitable[Reply]]
"""Decides about a data-plane call: forwards it, changed or not, or answers it without forwarding."""


async def admit_all(call: Call, forward: Forward) -> Reply:
    """Forward every call as it is."""
    return await forward(call)


def refusal(status: int, kind: str, message: str) -> Reply:
    """Return an error in DynamoDB's own shape; SDKs retry those with status 500 and above."""
    body = json.dumps({"__type": _TYPES + kind, "message": message}).encode()
    return Reply(status, body, {"Content-Type": "application/x-amz-json-1.0"})


def missing_table(reply: Reply) -> bool:
    """Say whether a call failed because a table is not there."""
    return reply.status == 400 and b"#ResourceNotFoundException" in reply.body


def tables_named(body: bytes) -> set[str]:
    """Return the names of the tables in a request of any operation but PartiQL's; none if malformed."""
    try:
        request = json.loads(body)
    except ValueError:
        return set()
    return {_plain(name) for name in _names(request) if isinstance(name, str)}


def _names(node: object) -> list[object]:
    if not isinstance(node, dict):
        return []
    names: list[object] = [node["TableName"]] if "TableName" in node else []
    requested = node.get("RequestItems")
    if isinstance(requested, dict):
        names += requested
    for entry in node.get("TransactItems") or ():
        for action in entry.values() if isinstance(entry, dict) else ():
            names += _names(action)
    return names


def _plain(name: str) -> str:
    """Return the name in a table's ARN, which DynamoDB takes in place of a name."""
    return name.rpartition(":table/")[2]
