"""Throttling: ask the model about every call on items before the engine sees it.

A throttled request is checked for validity first. The engine refuses an invalid one by itself, and
an invalid batch must not become valid because its throttled half stays behind.
"""

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import orjson

from dynamoheat.admission import Admission
from dynamoheat.errors import MalformedRequestError, UnknownTableError
from dynamoheat.model import Heat
from dynamoheat.serve.request_rewrite import RewrittenRequest, rewrite_request
from dynamoheat.serve.tables import Describe, ModelTables
from dynamoheat.serve.wire import (
    EndpointCall,
    Forward,
    Reply,
    add_capacity,
    add_unprocessed,
    error_name,
    json_reply,
    parse_document,
    refusal,
    throttle_reply,
)
from dynamoheat.settlement import parse_reported_units
from dynamoheat.sizes import Item, item_bytes

__all__ = ["EngineComparison", "KeyTypes", "Throttling", "is_invalid"]

_log = logging.getLogger(__name__)

_ROUNDING: Final = 1e-6
_FAILED_CONDITIONS: Final = {
    "DeleteItem": "ConditionalCheckFailedException",
    "PutItem": "ConditionalCheckFailedException",
    "TransactWriteItems": "TransactionCanceledException",
    "UpdateItem": "ConditionalCheckFailedException",
}
_VALIDATION_ERRORS: Final = frozenset({"SerializationException", "ValidationException"})
_MAX_ITEMS: Final = {
    "BatchGetItem": 100,
    "BatchWriteItem": 25,
    "TransactGetItems": 100,
    "TransactWriteItems": 100,
}
_MAX_ITEM_BYTES: Final = 400 * 1024
_MAX_KEY_BYTES: Final = 2048

KeyTypes = Mapping[str, str]  # by attribute


@dataclass(slots=True)
class EngineComparison:
    """Counts of answers whose reported units differ from the model's, and of unmodelled calls."""

    compared: int = 0
    different: int = 0
    not_modelled: int = 0  # calls of the data plane: PartiQL, unknown tables, malformed requests


class Throttling:
    """The model in front of an engine: `heat`, its `clock` and `tables`.

    All of it belongs to one event loop. Nothing awaits between two steps of the model, so other
    code on the loop may read `heat` without a lock and sees a consistent state.
    """

    def __init__(
        self,
        heat: Heat,
        describe: Describe,
        clock: Callable[[], float],
        *,
        timeout_seconds: float = 50.0,
    ) -> None:
        """Take the model, how to describe new tables, and how long the engine may take to answer.

        `clock` is in epoch seconds and never steps back.
        """
        self.heat = heat
        self.clock = clock
        self.tables = ModelTables(heat, clock, describe)
        self.comparison = EngineComparison()
        self._timeout_seconds = timeout_seconds
        self._operations_without_extras: set[str] = (
            set()
        )  # whose added parameters the engine rejects

    async def admit(self, call: EndpointCall, forward: Forward) -> Reply:
        """Answer a call on items: throttle it, or forward what is admitted of it."""
        request = parse_document(call.body)
        if request is None or not self.heat.is_metered(call.operation):
            return await self._forward_unmodelled(call, forward)
        rewritten = self._rewrite(call.operation, request)
        admission = await self._admission(call, rewritten)
        if admission is None:
            return await self._forward_unmodelled(call, forward)
        if admission.throttles:
            if self._is_invalid(admission):
                self.heat.cancel(admission, self.clock())
                return await self._send(call, forward)
            if admission.is_rejected:
                return throttle_reply(admission, self.tables.arn)
        return await self._forward(call, rewritten, admission, forward)

    async def _forward(
        self,
        call: EndpointCall,
        rewritten: RewrittenRequest,
        admission: Admission,
        forward: Forward,
    ) -> Reply:
        reply = await self._send(_to_forward(call, rewritten, admission), forward)
        if reply.status == 400 and self._rejects_extras(rewritten, reply):
            _log.info("the engine does not take %s of %s", set(rewritten.added), call.operation)
            self._operations_without_extras.add(call.operation)
            self.heat.cancel(admission, self.clock())
            return await self.admit(call, forward)
        return self._settle_reply(rewritten, admission, reply)

    def _rewrite(self, operation: str, request: Mapping[str, Any]) -> RewrittenRequest:
        found = rewrite_request(operation, request)
        if operation in self._operations_without_extras:
            return RewrittenRequest(request, frozenset(), found.capacity_form)
        return found

    async def _admission(self, call: EndpointCall, rewritten: RewrittenRequest) -> Admission | None:
        """Admit a request, adding tables that are new to the model; None if it is not modelled."""
        asked: set[str] = set()
        while True:
            try:
                return self.heat.admit(call.operation, rewritten.request, self.clock())
            except MalformedRequestError as error:
                _log.debug("not modelled: %s", error)
                return None
            except UnknownTableError as unknown:
                if unknown.name in asked:
                    return None
                asked.add(unknown.name)
                if not await self.tables.learn(_table_in(unknown.name), call):
                    return None

    def _settle_reply(
        self, rewritten: RewrittenRequest, admission: Admission, reply: Reply
    ) -> Reply:
        """Correct the model by the engine's answer, and shape the client's answer."""
        answer = parse_document(reply.body) or {}
        try:
            self._settle(admission, reply, answer)
        except MalformedRequestError as error:  # the consumption stands
            _log.warning("the engine's answer cannot be settled: %s", error)
        shown = rewritten.strip_extras(answer)
        if reply.status != 200:
            changed = shown is not None and len(shown) < len(answer)
            return json_reply(reply.status, shown or {}, reply) if changed else reply
        if shown is None and not admission.throttles:
            return reply
        shown = dict(answer) if shown is None else shown
        add_unprocessed(shown, admission)
        if rewritten.capacity_form is not None:
            add_capacity(shown, admission, rewritten.capacity_form)
        return json_reply(200, shown, reply)

    def _settle(self, admission: Admission, reply: Reply, answer: Mapping[str, Any]) -> None:
        now = self.clock()
        kind = error_name(answer)
        if reply.status == 200:
            self.heat.settle(admission, answer, now)
            self._compare(admission, answer)
        elif reply.status == 400 and kind == _FAILED_CONDITIONS.get(admission.operation):
            self.heat.fail(admission, answer, now)
        elif reply.status < 500 or reply.status == 503:  # refused, or never seen
            self.heat.cancel(admission, now)
            touched = [table.name for table in admission.cost.tables]
            if kind == "ResourceNotFoundException" and len(touched) == 1:
                self.tables.forget(*touched)  # it was deleted past the endpoint

    def _compare(self, admission: Admission, answer: Mapping[str, Any]) -> None:
        reported = parse_reported_units(answer)
        if not reported:
            return
        self.comparison.compared += 1
        theirs = sum(units for arms in reported.values() for units in arms.values())
        if abs(theirs - admission.units) > _ROUNDING:
            self.comparison.different += 1
            _log.debug(
                "%s: the engine reports %s units, the model counts %s",
                admission.operation, theirs, admission.units,
            )  # fmt: skip

    def _is_invalid(self, admission: Admission) -> bool:
        try:
            return is_invalid(admission, self.tables.key_types)
        except (AttributeError, LookupError, TypeError, ValueError):
            return True  # malformed: the engine says how

    def _rejects_extras(self, rewritten: RewrittenRequest, reply: Reply) -> bool:
        error = parse_document(reply.body) or {}
        return error_name(error) in _VALIDATION_ERRORS and rewritten.is_blamed_in(
            str(error.get("message", ""))
        )

    async def _forward_unmodelled(self, call: EndpointCall, forward: Forward) -> Reply:
        self.comparison.not_modelled += 1
        return await self._send(call, forward)

    async def _send(self, call: EndpointCall, forward: Forward) -> Reply:
        try:
            async with asyncio.timeout(self._timeout_seconds):
                return await forward(call)
        except TimeoutError:
            return refusal(
                500,
                "InternalServerError",
                f"The engine did not answer within {self._timeout_seconds:g} seconds.",
            )


def _to_forward(
    call: EndpointCall, rewritten: RewrittenRequest, admission: Admission
) -> EndpointCall:
    """Return the call to forward: the client's own, byte by byte, if nothing changed."""
    if not rewritten.added and not admission.throttles:
        return call
    return EndpointCall(call.operation, orjson.dumps(admission.forwarded_request), call.headers)


def _table_in(unknown: str) -> str:
    return unknown.partition("/index/")[0].rpartition(":table/")[2]


def is_invalid(admission: Admission, key_types: Callable[[str], KeyTypes]) -> bool:
    """Return whether DynamoDB refuses a request as invalid before it looks at capacity.

    It has too many or too large items, names a key twice, or has an invalid key. `key_types`
    returns the known types of a table's key attributes.
    """
    item_charges = admission.cost.item_charges
    if len(item_charges) > _MAX_ITEMS.get(admission.operation, len(item_charges)):
        return True
    if admission.operation in _MAX_ITEMS:
        homes = [
            (charges[0][0].resource.table, charges[0][3], charges[0][4]) for charges in item_charges
        ]
        if len(set(homes)) < len(homes):
            return True
    return any(
        item_bytes(item) > _MAX_ITEM_BYTES or not _has_fitting_keys(item, key_types(table))
        for table, item in _items(admission.operation, admission.request)
    )


def _has_fitting_keys(item: Item, types: KeyTypes) -> bool:
    return all(_fits(item[name], kind) for name, kind in types.items() if name in item)


def _fits(value: Mapping[str, Any], kind: str) -> bool:
    content = value.get(kind)
    return content is not None and 0 < len(content) <= _MAX_KEY_BYTES


def _items(operation: str, request: Mapping[str, Any]) -> Iterable[tuple[str, Item]]:
    """Yield a request's items and keys with their tables' names."""
    if operation == "BatchWriteItem":
        for table, entries in request["RequestItems"].items():
            yield from ((table, _item(action)) for entry in entries for action in entry.values())
    elif operation == "BatchGetItem":
        for table, wanted in request["RequestItems"].items():
            yield from ((table, key) for key in wanted["Keys"])
    elif "TransactItems" in request:
        for entry in request["TransactItems"]:
            yield from ((action["TableName"], _item(action)) for action in entry.values())
    elif "Item" in request or "Key" in request:
        yield request["TableName"], _item(request)


def _item(action: Mapping[str, Any]) -> Item:
    found: Item = action["Item"] if "Item" in action else action["Key"]
    return found
