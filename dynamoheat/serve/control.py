"""Calls about tables, in front of an engine that knows less of DynamoDB's throughput than the model."""

from collections.abc import Mapping
from typing import Any, Final

import orjson

from dynamoheat.serve.descriptions import Description, without_unsupported
from dynamoheat.serve.tables import ModelTables
from dynamoheat.serve.wire import EndpointCall, Forward, Reply, document, replied, table_name

__all__ = ["described_by", "manage"]

_CHANGES: Final = frozenset({"CreateTable", "UpdateTable"})
_ANSWERED_AS: Final = {"DescribeTable": "Table"}


async def manage(call: EndpointCall, forward: Forward, tables: ModelTables) -> Reply:
    """Answer a call that is not about items, and tell the model what it changes.

    Warm and maximum throughput stay here: engines refuse them or pass over them.
    """
    request = document(call.body)
    if request is None:
        return await forward(call)
    reply = await forward(_supported(call, request))
    answer = document(reply.body)
    if reply.status != 200 or answer is None:
        return reply
    _tell(call.operation, request, answer, tables)
    table = answer.get(_ANSWERED_AS.get(call.operation, "TableDescription"))
    if (
        not isinstance(table, dict) and "Table" in answer
    ):  # an update that had nothing for the engine
        table = answer["Table"]
        answer = {"TableDescription": table}
    if not isinstance(table, dict) or table.get("TableName") not in tables:
        return reply
    tables.complete(table)
    return replied(200, answer, reply)


async def described_by(forward: Forward, name: str, call: EndpointCall) -> Description | None:
    """Ask the engine about a table, with the credentials of the call that named it."""
    reply = await forward(_describing(call, name))
    table = (document(reply.body) or {}).get("Table")
    return table if reply.status == 200 and isinstance(table, dict) else None


def _supported(call: EndpointCall, request: Mapping[str, Any]) -> EndpointCall:
    if call.operation not in _CHANGES:
        return call
    kept = without_unsupported(request)
    if kept == request:
        return call
    if kept.keys() <= {"TableName", "AttributeDefinitions"}:
        return _describing(call, str(request.get("TableName")))
    return EndpointCall(call.operation, orjson.dumps(kept), call.headers)


def _describing(call: EndpointCall, name: str) -> EndpointCall:
    headers = {key: value for key, value in call.headers.items() if key.lower() != "x-amz-target"}
    headers["X-Amz-Target"] = "DynamoDB_20120810.DescribeTable"
    return EndpointCall("DescribeTable", orjson.dumps({"TableName": name}), headers)


def _tell(
    operation: str, request: Mapping[str, Any], answer: Mapping[str, Any], tables: ModelTables
) -> None:
    if operation == "CreateTable":
        made = answer.get("TableDescription") or {}
        known = {name: made[name] for name in ("TableArn", "TableId") if name in made}
        tables.state({**request, **known})
    elif operation == "UpdateTable":
        tables.update(request)
    elif operation == "DeleteTable":
        tables.forget(table_name(str(request.get("TableName"))))
