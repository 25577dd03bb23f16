"""One DynamoDB out of two: items in the engine, declarations in the emulated AWS.

| call | goes to |
|---|---|
| data plane | the throttling model, then the engine; a table unknown to it is mirrored on first use |
| CreateTable, UpdateTable, DeleteTable | the emulated AWS, and if that accepts, the engine |
| DescribeTable | the emulated AWS; sizes, capacity and indexes as the engine has them, throughput as the model |
| backups, exports, imports, restores, streams to Kinesis, vector search | refused: they work on items |
| all else (settings, tags, policies, limits, lists) | the emulated AWS |
"""

import asyncio
import json
from typing import Any

from botocore.exceptions import ClientError

from dynamoheat.serve.descriptions import without_unsupported
from dynamoheat.serve.tables import ModelTables
from dynamoheat.serve.wire import in_shape
from local.calls import (
    DATA_PLANE,
    Admit,
    EndpointCall,
    Forward,
    Reply,
    admit_all,
    missing_table,
    refusal,
    tables_named,
)
from local.table_replicator import TableReplicator

__all__ = ["DynamoDB"]

_ENGINE_UPDATES = frozenset({
    "AttributeDefinitions", "BillingMode", "GlobalSecondaryIndexUpdates", "ProvisionedThroughput",
})  # fmt: skip
_NEEDS_ITEMS = ("Backup", "Export", "Import", "Restore", "KinesisStreaming", "SearchVectors")
_FROM_ENGINE = ("ItemCount", "TableSizeBytes", "ProvisionedThroughput", "GlobalSecondaryIndexes")


class DynamoDB:
    """Answers every call of DynamoDB's API."""

    def __init__(
        self,
        *,
        engine: Forward,
        declared: Forward,
        mirror: TableReplicator,
        admit: Admit = admit_all,
        tables: ModelTables | None = None,
    ) -> None:
        """Take what sends calls to the engine and to the emulated AWS.

        `admit` decides about data-plane calls, `tables` is told of tables.
        """
        self._engine = engine
        self._declared = declared
        self._mirror = mirror
        self._admit = admit
        self._tables = tables

    async def answer(self, call: EndpointCall) -> Reply:
        """Return DynamoDB's answer to a call."""
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

    def tables_changed(self) -> None:
        """Tell the model of the tables that the engine has now."""
        if self._tables is not None:
            self._tables.match(self._mirror.described)

    async def _forward(self, call: EndpointCall) -> Reply:
        reply = await self._engine(call)
        if not missing_table(reply):
            return in_shape(reply)
        names = tables_named(call.body)
        made = [await asyncio.to_thread(self._mirror.ensure, name) for name in sorted(names)]
        self.tables_changed()
        return await self._engine(call) if any(made) else reply

    async def _declare(self, call: EndpointCall) -> Reply:
        reply = await self._declared(call)
        names = tables_named(call.body)
        if reply.status != 200 or not names:
            return reply
        name = names.pop()
        if call.operation == "DeleteTable":
            await asyncio.to_thread(self._mirror.forget, name)
            self.tables_changed()
            return reply
        if call.operation == "CreateTable":
            return await self._create(call, name, reply)
        return await self._update(call, name, reply)

    async def _create(self, call: EndpointCall, name: str, reply: Reply) -> Reply:
        try:
            await asyncio.to_thread(self._mirror.ensure, name)
        except ClientError as error:  # the engine is stricter: then there is no such table
            body = json.dumps({"TableName": name}).encode()
            headers = {**call.headers, "X-Amz-Target": "DynamoDB_20120810.DeleteTable"}
            await self._declared(EndpointCall("DeleteTable", body, headers))
            told = error.response["Error"]
            return refusal(400, told["Code"], told["Message"])
        self.tables_changed()
        return reply

    async def _update(self, call: EndpointCall, name: str, reply: Reply) -> Reply:
        request = json.loads(call.body)
        kept = {key: value for key, value in request.items() if key in _ENGINE_UPDATES}
        kept = without_unsupported(kept)
        if kept.keys() - {"AttributeDefinitions"}:
            body = json.dumps({"TableName": name, **kept}).encode()
            updated = await self._engine(EndpointCall(call.operation, body, call.headers))
            if updated.status != 200:
                return updated
        await asyncio.to_thread(self._mirror.ensure, name)
        if self._tables is not None:
            self._tables.update(request, self._mirror.described.get(name))
        return reply

    async def _describe(self, call: EndpointCall) -> Reply:
        declared = await self._declared(call)
        if declared.status != 200:
            return declared
        # Under its name, for the engine takes no ARNs.
        answer = json.loads(declared.body)
        body = json.dumps({"TableName": answer["Table"]["TableName"]}).encode()
        held = await self._forward(EndpointCall(call.operation, body, call.headers))
        if held.status != 200:
            return held
        _complete(answer["Table"], json.loads(held.body)["Table"])
        if self._tables is not None:
            self._tables.complete(answer["Table"])
        headers = {"Content-Type": "application/x-amz-json-1.0"}
        return Reply(200, json.dumps(answer).encode(), headers)


def _is_object(body: bytes) -> bool:
    try:
        return isinstance(json.loads(body), dict)
    except ValueError:
        return False


def _works_on_items(operation: str) -> bool:
    return "ContinuousBackups" not in operation and any(word in operation for word in _NEEDS_ITEMS)


def _complete(declared: dict[str, Any], held: dict[str, Any]) -> None:
    """Put into a declaration what the engine knows better; ARNs stay those of the declaration."""
    declared.update({key: held[key] for key in _FROM_ENGINE if key in held})
    if not held.get("GlobalSecondaryIndexes"):
        declared.pop("GlobalSecondaryIndexes", None)
    for index in declared.get("GlobalSecondaryIndexes") or ():
        index["IndexArn"] = f"{declared['TableArn']}/index/{index['IndexName']}"
