"""One DynamoDB out of two: items in the engine, declarations in the emulated AWS.

| call | goes to |
|---|---|
| data plane | the throttling model, then the engine; a table it lacks is replicated on first use |
| CreateTable, UpdateTable, DeleteTable | the emulated AWS, and if that accepts, the engine |
| DescribeTable | the emulated AWS; sizes, capacity, indexes: the engine; throughput: the model |
| backups, exports, imports, restores, streams to Kinesis, vector search | refused: need items |
| all else (settings, tags, policies, limits, lists) | the emulated AWS |
"""

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

from botocore.exceptions import ClientError

from dynamoheat.serve import JSON_TYPE, TARGET_PREFIX, wire
from dynamoheat.serve.tables import ModelTables, drop_unsupported
from dynamoheat.serve.wire import DATA_PLANE, EndpointCall, Forward, Reply, normalize_error, refusal
from local.table_replicator import TableReplicator

__all__ = ["Admit", "DynamoDB", "admit_all", "is_missing_table", "table_names"]

Admit = Callable[[EndpointCall, Forward], Awaitable[Reply]]
"""Decides about a data-plane call: forwards it, changed or not, or answers it itself."""

_ENGINE_UPDATES = frozenset({
    "AttributeDefinitions", "BillingMode", "GlobalSecondaryIndexUpdates", "ProvisionedThroughput",
})  # fmt: skip
_NEEDS_ITEMS = ("Backup", "Export", "Import", "Restore", "KinesisStreaming", "SearchVectors")
_FROM_ENGINE = ("ItemCount", "TableSizeBytes", "ProvisionedThroughput", "GlobalSecondaryIndexes")


async def admit_all(call: EndpointCall, forward: Forward) -> Reply:
    """Forward every call unchanged."""
    return await forward(call)


class DynamoDB:
    """Answers the calls of DynamoDB's API."""

    def __init__(
        self,
        *,
        engine: Forward,
        declared: Forward,
        replicator: TableReplicator,
        admit: Admit = admit_all,
        tables: ModelTables | None = None,
    ) -> None:
        """Take what sends calls to the engine and to the emulated AWS.

        `admit` decides about data-plane calls. `tables` are the model's, if there is one.
        """
        self._engine = engine
        self._declared = declared
        self._replicator = replicator
        self._admit = admit
        self._tables = tables

    async def answer(self, call: EndpointCall) -> Reply:
        """Answer a call."""
        if call.operation in DATA_PLANE:
            return await self._admit(call, self._forward)
        if not _is_object(call.body):
            return refusal(400, "SerializationException", "The request is not a JSON object.")
        if call.operation == "DescribeTable":
            return await self._describe(call)
        if call.operation in ("CreateTable", "UpdateTable", "DeleteTable"):
            return await self._declare(call)
        if _works_on_items(call.operation):
            return refusal(
                400, "ValidationException", f"The local cloud does not support {call.operation}."
            )
        return await self._declared(call)

    def update_model(self) -> None:
        """Give the model the tables that the engine has now."""
        if self._tables is not None:
            self._tables.sync(self._replicator.descriptions)

    async def _forward(self, call: EndpointCall) -> Reply:
        reply = await self._engine(call)
        if not is_missing_table(reply):
            return normalize_error(reply)
        names = sorted(table_names(call.body))
        created = [await asyncio.to_thread(self._replicator.ensure, name) for name in names]
        self.update_model()
        return await self._engine(call) if any(created) else reply

    async def _declare(self, call: EndpointCall) -> Reply:
        reply = await self._declared(call)
        names = table_names(call.body)
        if reply.status != 200 or not names:
            return reply
        name = names.pop()
        if call.operation == "DeleteTable":
            await asyncio.to_thread(self._replicator.delete, name)
            self.update_model()
            return reply
        if call.operation == "CreateTable":
            return await self._create(call, name, reply)
        return await self._update(call, name, reply)

    async def _create(self, call: EndpointCall, name: str, reply: Reply) -> Reply:
        try:
            await asyncio.to_thread(self._replicator.ensure, name)
        except ClientError as error:  # the engine is stricter: undo the declaration
            body = json.dumps({"TableName": name}).encode()
            headers = {**call.headers, "X-Amz-Target": TARGET_PREFIX + "DeleteTable"}
            await self._declared(EndpointCall("DeleteTable", body, headers))
            detail = error.response["Error"]
            return refusal(400, detail["Code"], detail["Message"])
        self.update_model()
        return reply

    async def _update(self, call: EndpointCall, name: str, reply: Reply) -> Reply:
        request = json.loads(call.body)
        changes = {key: value for key, value in request.items() if key in _ENGINE_UPDATES}
        changes = drop_unsupported(changes)
        if changes.keys() - {"AttributeDefinitions"}:
            body = json.dumps({"TableName": name, **changes}).encode()
            updated = await self._engine(EndpointCall(call.operation, body, call.headers))
            if updated.status != 200:
                return updated
        await asyncio.to_thread(self._replicator.ensure, name)
        if self._tables is not None:
            self._tables.apply_update(request, self._replicator.descriptions.get(name))
        return reply

    async def _describe(self, call: EndpointCall) -> Reply:
        declared = await self._declared(call)
        if declared.status != 200:
            return declared
        # By name, because the engine takes no ARNs.
        answer = json.loads(declared.body)
        body = json.dumps({"TableName": answer["Table"]["TableName"]}).encode()
        actual = await self._forward(EndpointCall(call.operation, body, call.headers))
        if actual.status != 200:
            return actual
        _complete(answer["Table"], json.loads(actual.body)["Table"])
        if self._tables is not None:
            self._tables.add_throughput(answer["Table"])
        headers = {"Content-Type": JSON_TYPE}
        return Reply(200, json.dumps(answer).encode(), headers)


def is_missing_table(reply: Reply) -> bool:
    """Return whether a call failed because its table does not exist."""
    return reply.status == 400 and b"#ResourceNotFoundException" in reply.body


def table_names(body: bytes) -> set[str]:
    """Return the names of the tables in a request, none if it is malformed. PartiQL has none."""
    try:
        return set(wire.table_names(json.loads(body)))
    except ValueError:
        return set()


def _is_object(body: bytes) -> bool:
    try:
        return isinstance(json.loads(body), dict)
    except ValueError:
        return False


def _works_on_items(operation: str) -> bool:
    return "ContinuousBackups" not in operation and any(word in operation for word in _NEEDS_ITEMS)


def _complete(declared: dict[str, Any], actual: dict[str, Any]) -> None:
    """Replace in a declaration what the engine knows better. ARNs stay the declaration's."""
    declared.update({key: actual[key] for key in _FROM_ENGINE if key in actual})
    if not actual.get("GlobalSecondaryIndexes"):
        declared.pop("GlobalSecondaryIndexes", None)
    for index in declared.get("GlobalSecondaryIndexes") or ():
        index["IndexArn"] = f"{declared['TableArn']}/index/{index['IndexName']}"
