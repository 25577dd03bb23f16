"""Calls about tables: they update the model, and are answered with what engines do not know.

Descriptions are in the shape of CreateTable's request or DescribeTable's `Table`. Warm throughput
and on-demand maxima stay here, since engines refuse or ignore them.
"""

import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any, Final

import orjson

from dynamoheat.model import Heat
from dynamoheat.reasons import Throttle
from dynamoheat.resources import Resource
from dynamoheat.serve.wire import (
    TARGET_PREFIX,
    EndpointCall,
    Forward,
    Reply,
    json_reply,
    parse_document,
    table_name,
)
from dynamoheat.settings import TableSettings

__all__ = [
    "GLOBAL",
    "Describe",
    "Description",
    "ModelTables",
    "apply_update",
    "default_arn",
    "describe_table",
    "drop_unsupported",
    "handle_table_call",
    "with_billing_mode",
]

Description = Mapping[str, Any]
Describe = Callable[[str, EndpointCall], Awaitable[Description | None]]
"""Describes a table that a call named, as CreateTable or DescribeTable do; None: no such table."""


GLOBAL: Final = "GlobalSecondaryIndexes"
_THROUGHPUTS: Final = ("ProvisionedThroughput", "OnDemandThroughput", "WarmThroughput")
_UNSUPPORTED: Final = ("OnDemandThroughput", "WarmThroughput")  # by some engines or all
_CHANGES: Final = frozenset({"CreateTable", "UpdateTable"})
_ANSWERED_AS: Final = {"DescribeTable": "Table"}

_log = logging.getLogger(__name__)


class ModelTables:
    """The tables in the model, by name. All methods run on the event loop's thread."""

    def __init__(self, heat: Heat, clock: Callable[[], float], describe: Describe) -> None:
        """Take the model, its clock, and how to describe a table that is new to it."""
        self._heat = heat
        self._clock = clock
        self._describe = describe
        self._described: dict[str, Description] = {}  # as first described, to notice changes
        self._current: dict[str, Description] = {}  # and as later calls made it

    def __contains__(self, name: object) -> bool:
        return name in self._current

    async def learn(self, name: str, call: EndpointCall) -> bool:
        """Describe a table and add it to the model. Return whether there is one."""
        description = await self._describe(name, call)
        if description is None:
            return False
        self.put_description(description)
        return name in self._current

    def put_description(self, description: Description) -> None:
        """Add a table by its description, or update it. An unchanged description changes nothing.

        It then keeps what UpdateTable calls changed meanwhile.
        """
        try:
            name = description["TableName"]
            if self._described.get(name) != description:
                self._update_model(with_billing_mode(description), self._described.get(name))
                self._described[name] = description
        except (AttributeError, LookupError, TypeError, ValueError):
            _log.warning("a table's description can't be read: %r", description, exc_info=True)

    def sync(self, described: Mapping[str, Description]) -> None:
        """Make the model's tables those that are described."""
        for name in self._described.keys() - described.keys():
            self.forget(name)
        for description in described.values():
            self.put_description(description)

    def apply_update(
        self, request: Mapping[str, Any], described: Description | None = None
    ) -> None:
        """Apply an UpdateTable request that was accepted.

        `described` is the table as described afterwards.
        """
        name = table_name(str(request.get("TableName")))
        before = self._current.get(name)
        if before is None:
            return
        self._update_model(apply_update(before, request), before)
        if described is not None:
            self._described[name] = described

    def forget(self, name: str) -> None:
        """Remove a table and its history."""
        self._heat.delete_table(name)
        self._described.pop(name, None)
        self._current.pop(name, None)

    def add_throughput(self, answer: dict[str, Any]) -> None:
        """Add warm and maximum throughput, which engines do not know, to a table's description."""
        current = self._current.get(answer.get("TableName", ""))
        if current is None:
            return
        name = current["TableName"]
        _complete(answer, self._heat.resource(name))
        known = {index["IndexName"] for index in current.get(GLOBAL) or ()}
        for index in answer.get(GLOBAL) or ():
            if index.get("IndexName") in known:
                _complete(index, self._heat.resource(name, index["IndexName"]))

    def is_provisioned(self, name: str) -> bool:
        """Return whether a table is in provisioned mode. An unknown table is not."""
        return name in self._current and self._heat.resource(name).provisioned

    def arn(self, throttle: Throttle) -> str:
        """Return the ARN of the throttled table or index."""
        arn: str | None = self._current.get(throttle.table, {}).get("TableArn")
        if arn is None:
            return default_arn(throttle)
        return arn if throttle.index is None else f"{arn}/index/{throttle.index}"

    def key_types(self, name: str) -> Mapping[str, str]:
        """Return the types of a table's key attributes, as far as they are known."""
        current = self._current.get(table_name(name), {})
        attributes: Iterable[Mapping[str, str]] = current.get("AttributeDefinitions") or ()
        return {each["AttributeName"]: each["AttributeType"] for each in attributes}

    def _update_model(self, description: Description, before: Description | None) -> None:
        settings = TableSettings.from_description(description)
        same = before is not None and _identity(before) == _identity(description)
        change = self._heat.update_table if same else self._heat.create_table
        change(settings, self._clock())
        self._current[settings.name] = description


def default_arn(throttle: Throttle) -> str:
    """Return an ARN with the region us-east-1 and an account of zeros."""
    return f"arn:aws:dynamodb:us-east-1:000000000000:{throttle.resource}"


def _identity(description: Description) -> tuple[Any, Any]:
    return description.get("TableId"), description["KeySchema"]


def _complete(answer: dict[str, Any], resource: Resource) -> None:
    warm = (resource.reads.warm_throughput, resource.writes.warm_throughput)
    answer["WarmThroughput"] = {
        "ReadUnitsPerSecond": max(1, round(warm[0])),
        "WriteUnitsPerSecond": max(1, round(warm[1])),
        "Status": "ACTIVE",
    }
    maximum = {
        f"Max{kind}RequestUnits": int(most)
        for kind, most in (("Read", resource.reads.maximum), ("Write", resource.writes.maximum))
        if most is not None
    }
    answer.pop("OnDemandThroughput", None)
    if maximum and not resource.provisioned:
        answer["OnDemandThroughput"] = maximum


async def handle_table_call(call: EndpointCall, forward: Forward, tables: ModelTables) -> Reply:
    """Answer a call that is not about items, and update the model by what it changes."""
    request = parse_document(call.body)
    if request is None:
        return await forward(call)
    reply = await forward(_without_unsupported(call, request))
    answer = parse_document(reply.body)
    if reply.status != 200 or answer is None:
        return reply
    _tell(call.operation, request, answer, tables)
    table = answer.get(_ANSWERED_AS.get(call.operation, "TableDescription"))
    if not isinstance(table, dict) and "Table" in answer:  # an update with nothing for the engine
        table = answer["Table"]
        answer = {"TableDescription": table}
    if not isinstance(table, dict) or table.get("TableName") not in tables:
        return reply
    tables.add_throughput(table)
    return json_reply(200, answer, reply)


async def describe_table(forward: Forward, name: str, call: EndpointCall) -> Description | None:
    """Describe a table by asking the engine, with the credentials of the call that named it."""
    reply = await forward(_describing(call, name))
    table = (parse_document(reply.body) or {}).get("Table")
    return table if reply.status == 200 and isinstance(table, dict) else None


def _without_unsupported(call: EndpointCall, request: Mapping[str, Any]) -> EndpointCall:
    if call.operation not in _CHANGES:
        return call
    kept = drop_unsupported(request)
    if kept == request:
        return call
    if kept.keys() <= {"TableName", "AttributeDefinitions"}:
        return _describing(call, str(request.get("TableName")))
    return EndpointCall(call.operation, orjson.dumps(kept), call.headers)


def _describing(call: EndpointCall, name: str) -> EndpointCall:
    headers = {key: value for key, value in call.headers.items() if key.lower() != "x-amz-target"}
    headers["X-Amz-Target"] = TARGET_PREFIX + "DescribeTable"
    return EndpointCall("DescribeTable", orjson.dumps({"TableName": name}), headers)


def _tell(
    operation: str, request: Mapping[str, Any], answer: Mapping[str, Any], tables: ModelTables
) -> None:
    if operation == "CreateTable":
        made = answer.get("TableDescription") or {}
        known = {name: made[name] for name in ("TableArn", "TableId") if name in made}
        tables.put_description({**request, **known})
    elif operation == "UpdateTable":
        tables.apply_update(request)
    elif operation == "DeleteTable":
        tables.forget(table_name(str(request.get("TableName"))))


def with_billing_mode(description: Description) -> dict[str, Any]:
    """Return a description that states its billing mode.

    Some engines state none. A table without provisioned capacity is then on demand.
    """
    summary = description.get("BillingModeSummary") or {}
    mode = description.get("BillingMode") or summary.get("BillingMode")
    if mode is None:
        reported = description.get("ProvisionedThroughput") or {}
        mode = "PROVISIONED" if any(_units(reported)) else "PAY_PER_REQUEST"
    return {**description, "BillingMode": mode}


def apply_update(description: Description, request: Description) -> dict[str, Any]:
    """Return a table's description after an UpdateTable request."""
    changed = _with_throughput(description, request)
    if "BillingMode" in request:
        changed["BillingMode"] = request["BillingMode"]
    indexes = {index["IndexName"]: dict(index) for index in description.get(GLOBAL) or ()}
    for entry in request.get("GlobalSecondaryIndexUpdates") or ():
        ((action, index),) = entry.items()
        name = index["IndexName"]
        if action == "Create":
            indexes[name] = dict(index)
        elif action == "Delete":
            indexes.pop(name, None)
        elif name in indexes:
            indexes[name] = _with_throughput(indexes[name], index)
    return {**changed, GLOBAL: list(indexes.values())}


def drop_unsupported(request: Description) -> dict[str, Any]:
    """Return a CreateTable or UpdateTable request without warm throughput and on-demand maxima."""
    kept = _supported(request)
    if GLOBAL in kept:
        kept[GLOBAL] = [_supported(index) for index in kept[GLOBAL]]
    actions = [
        {action: supported}
        for entry in kept.pop("GlobalSecondaryIndexUpdates", None) or ()
        for action, index in entry.items()
        if (supported := _supported(index)).keys() != {"IndexName"} or action == "Delete"
    ]
    return {**kept, "GlobalSecondaryIndexUpdates": actions} if actions else kept


def _supported(stated: Description) -> dict[str, Any]:
    return {name: value for name, value in stated.items() if name not in _UNSUPPORTED}


def _with_throughput(description: Description, stated: Description) -> dict[str, Any]:
    merged = {
        name: {**(description.get(name) or {}), **stated[name]}
        for name in _THROUGHPUTS
        if stated.get(name)
    }
    return {**description, **merged}


def _units(throughput: Description) -> Iterable[Any]:
    return (throughput.get(f"{kind}CapacityUnits") for kind in ("Read", "Write"))
