"""DynamoDB's JSON protocol: calls, replies and errors as they travel, throttles included."""

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final
from zlib import crc32

import orjson

from dynamoheat.admission import Admission
from dynamoheat.reasons import Throttle, ThrottleCause

__all__ = [
    "DATA_PLANE",
    "JSON_TYPE",
    "TARGET_PREFIX",
    "EndpointCall",
    "Forward",
    "Reply",
    "UnansweredError",
    "add_capacity",
    "add_unprocessed",
    "error_name",
    "fake_throttle",
    "json_reply",
    "normalize_error",
    "parse_document",
    "refusal",
    "table_name",
    "table_names",
    "throttle_reply",
]

DATA_PLANE: Final = frozenset({
    "BatchExecuteStatement", "BatchGetItem", "BatchWriteItem", "DeleteItem", "ExecuteStatement",
    "ExecuteTransaction", "GetItem", "PutItem", "Query", "Scan", "TransactGetItems",
    "TransactWriteItems", "UpdateItem",
})  # fmt: skip
JSON_TYPE: Final = "application/x-amz-json-1.0"
TARGET_PREFIX: Final = "DynamoDB_20120810."
_TYPES: Final = "com.amazonaws.dynamodb.v20120810#"
_FOREIGN_TYPES: Final = {
    "SerializationException": "com.amazon.coral.service#",
    "ThrottlingException": "com.amazon.coral.availability#",
    "UnknownOperationException": "com.amazon.coral.service#",
    "ValidationException": "com.amazon.coral.validate#",
}
_REASON_LISTS: Final = {
    "ProvisionedThroughputExceededException": "ThrottlingReasons",
    "ThrottlingException": "throttlingReasons",
}
_UNPROCESSED: Final = {"BatchWriteItem": "UnprocessedItems", "BatchGetItem": "UnprocessedKeys"}
_READ_WORDS: Final = ("Get", "Query", "Scan")  # in names of operations
_TRANSACTIONS: Final = frozenset({"TransactGetItems", "TransactWriteItems"})
_SINGLE_TABLE: Final = frozenset(
    {"DeleteItem", "GetItem", "PutItem", "Query", "Scan", "UpdateItem"}
)


@dataclass(frozen=True, slots=True)
class EndpointCall:
    """One call of DynamoDB's JSON protocol. `headers` are the client's."""

    operation: str
    body: bytes
    headers: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Reply:
    """The answer to a call."""

    status: int
    body: bytes
    headers: Mapping[str, str] = field(default_factory=dict)


Forward = Callable[[EndpointCall], Awaitable[Reply]]
Arn = Callable[[Throttle], str]


class UnansweredError(Exception):
    """The call gets no answer: reset the connection, or stay silent until the client gives up."""

    def __init__(self, *, reset: bool) -> None:
        super().__init__("reset" if reset else "silent")
        self.reset = reset


def json_reply(status: int, content: Mapping[str, Any], before: Reply | None = None) -> Reply:
    """Return a reply with the checksum that clients verify, and the request id of `before`."""
    body = orjson.dumps(content)
    headers = {"Content-Type": JSON_TYPE, "x-amz-crc32": str(crc32(body))}
    if before is not None and "x-amzn-RequestId" in before.headers:
        headers["x-amzn-RequestId"] = before.headers["x-amzn-RequestId"]
    return Reply(status, body, headers)


def refusal(status: int, kind: str, message: str, **more: Any) -> Reply:
    """Return an error in DynamoDB's shape. SDKs retry those with status 500 and above."""
    named = _FOREIGN_TYPES.get(kind, _TYPES) + kind
    return json_reply(status, {"__type": named, "message": message, **more})


def throttle_reply(admission: Admission, arn: Arn) -> Reply:
    """Return the error for a request that was throttled as a whole."""
    if admission.cost.atomic:
        return _cancelled(admission.verdicts)
    return _throttled(admission.throttles, arn)


def fake_throttle(call: EndpointCall, is_provisioned: Callable[[str], bool], arn: Arn) -> Reply:
    """Return the error of a hot partition in the first table that a call names."""
    request = parse_document(call.body) or {}
    name = next(iter(table_names(request)), "unknown")
    write = not any(word in call.operation for word in _READ_WORDS)
    throttle = Throttle(ThrottleCause.KEY_RANGE, name, None, write, is_provisioned(name))
    if call.operation in _TRANSACTIONS:
        return _cancelled([throttle for _ in request.get("TransactItems") or (None,)])
    return _throttled([throttle], arn)


def add_unprocessed(answer: dict[str, Any], admission: Admission) -> None:
    """Add a batch's throttled items to those that the engine left unprocessed."""
    if not admission.throttles:
        return
    left: dict[str, Any] = answer.setdefault(_UNPROCESSED[admission.operation], {})
    for table, wanted in admission.unprocessed.items():
        if table not in left:
            left[table] = wanted
        elif isinstance(wanted, Mapping):
            left[table] = {**wanted, "Keys": [*left[table]["Keys"], *wanted["Keys"]]}
        else:
            left[table] = [*left[table], *wanted]


def add_capacity(answer: dict[str, Any], admission: Admission, form: str) -> None:
    """Add the consumed capacity by the model's count."""
    reports = admission.consumed_capacity(form)
    if admission.operation not in _SINGLE_TABLE:
        answer["ConsumedCapacity"] = reports
    elif reports:
        answer["ConsumedCapacity"] = reports[0]


def parse_document(body: bytes) -> dict[str, Any] | None:
    """Parse a JSON object; None if the body is none."""
    try:
        found = orjson.loads(body)
    except orjson.JSONDecodeError:
        return None
    return found if isinstance(found, dict) else None


def normalize_error(reply: Reply) -> Reply:
    """Return a reply whose error is JSON. Engines answer some malformed requests in plain text."""
    if reply.status < 400 or reply.body.startswith(b"{"):
        return reply
    if reply.status >= 500:
        return refusal(reply.status, "InternalServerError", _text(reply.body))
    return refusal(400, "SerializationException", _text(reply.body))


def error_name(error: Mapping[str, Any]) -> str:
    """Return the name of an error, such as `ValidationException`."""
    return str(error.get("__type", "")).rpartition("#")[2]


def table_names(request: object) -> list[str]:
    """Return the names of all tables in a request; none if it is malformed or PartiQL."""
    return [table_name(name) for name in _names(request) if isinstance(name, str)]


def table_name(name: str) -> str:
    """Return the table's name in an ARN, which DynamoDB accepts in place of a name."""
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


def _throttled(throttles: Sequence[Throttle], arn: Arn) -> Reply:
    """Return the exception of the first throttle, with the reasons of all."""
    first = throttles[0]
    reasons = dict.fromkeys((str(each.reason), arn(each)) for each in throttles)
    listed = [{"reason": reason, "resource": resource} for reason, resource in reasons]
    return refusal(400, first.exception, first.message, **{_REASON_LISTS[first.exception]: listed})


def _cancelled(verdicts: Iterable[Throttle | None]) -> Reply:
    reasons = [
        {"Code": "None"}
        if verdict is None
        else {"Code": verdict.cancellation_code, "Message": verdict.message}
        for verdict in verdicts
    ]
    codes = ", ".join(reason["Code"] for reason in reasons)
    message = (
        f"Transaction cancelled, please refer cancellation reasons for specific reasons [{codes}]"
    )
    kind = "com.amazonaws.dynamodb.v20120810#TransactionCanceledException"
    return json_reply(400, {"__type": kind, "CancellationReasons": reasons, "Message": message})
