"""The model in front of an engine: asks it about every data-plane call before the engine sees it."""

import asyncio
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import orjson

from dynamoheat.errors import MalformedRequestError, UnknownTableError
from dynamoheat.model import Heat
from dynamoheat.outcome import Admission
from dynamoheat.reported import reported_units
from dynamoheat.serve.answers import refused, with_capacity, with_unprocessed
from dynamoheat.serve.request_rewrite import RewrittenRequest, rewrite_request
from dynamoheat.serve.tables import Describe, ModelTables
from dynamoheat.serve.validity import surely_refused
from dynamoheat.serve.wire import EndpointCall, Forward, Reply, document, kind_of, refusal, replied

__all__ = ["Check", "Throttling"]

_log = logging.getLogger(__name__)

_ROUNDING: Final = 1e-6
_FAILED_CONDITIONS: Final = {
    "DeleteItem": "ConditionalCheckFailedException",
    "PutItem": "ConditionalCheckFailedException",
    "TransactWriteItems": "TransactionCanceledException",
    "UpdateItem": "ConditionalCheckFailedException",
}
_COMPLAINTS: Final = frozenset({"SerializationException", "ValidationException"})


@dataclass(slots=True)
class Check:
    """How often the engine reported other units than the model, and what was not modelled."""

    compared: int = 0
    different: int = 0
    not_modelled: int = 0  # calls of the data plane: PartiQL, unknown tables, malformed requests


class Throttling:
    """Where the model lives: `heat`, its `clock`, the `tables` it knows, and `admit` in front of an engine.

    All of it belongs to one event loop. Nothing awaits between two steps of the model, so whatever runs on
    the same loop may read `heat` without a lock and sees a consistent state.
    """

    def __init__(
        self,
        heat: Heat,
        describe: Describe,
        clock: Callable[[], float],
        *,
        patience: float = 50.0,
    ) -> None:
        """Take the model, whom to ask about new tables, and the seconds that the engine may take.

        `clock` is in epoch seconds and never steps back.
        """
        self.heat = heat
        self.clock = clock
        self.tables = ModelTables(heat, clock, describe)
        self.check = Check()
        self._patience = patience
        self._refused_extras: set[str] = (
            set()
        )  # operations whose additions the engine does not take

    async def admit(self, call: EndpointCall, forward: Forward) -> Reply:
        """Answer a data-plane call: throttled, or forwarded, as a whole or what is admitted of a batch."""
        request = document(call.body)
        if request is None or not self.heat.meters(call.operation):
            return await self._unmodelled(call, forward)
        wanted = self._amended(call.operation, request)
        admission = await self._admission(call, wanted)
        if admission is None:
            return await self._unmodelled(call, forward)
        if admission.throttles:
            if self._is_surely_refused(admission):
                self.heat.cancel(admission, self.clock())
                return await self._send(call, forward)
            if admission.throttled:
                return refused(admission, self.tables.arn)
        return await self._forward(call, wanted, admission, forward)

    async def _forward(
        self, call: EndpointCall, wanted: RewrittenRequest, admission: Admission, forward: Forward
    ) -> Reply:
        reply = await self._send(_changed(call, wanted, admission), forward)
        if reply.status == 400 and self._is_complaint(wanted, reply):
            _log.info("the engine does not take %s of %s", set(wanted.added), call.operation)
            self._refused_extras.add(call.operation)
            self.heat.cancel(admission, self.clock())
            return await self.admit(call, forward)
        return self._settled(wanted, admission, reply)

    def _amended(self, operation: str, request: Mapping[str, Any]) -> RewrittenRequest:
        found = rewrite_request(operation, request)
        if operation in self._refused_extras:
            return RewrittenRequest(request, frozenset(), found.form)
        return found

    async def _admission(self, call: EndpointCall, wanted: RewrittenRequest) -> Admission | None:
        """Ask the model, and about tables that are new to it; None where it can't say."""
        asked: set[str] = set()
        while True:
            try:
                return self.heat.admit(call.operation, wanted.request, self.clock())
            except MalformedRequestError as error:
                _log.debug("not modelled: %s", error)
                return None
            except UnknownTableError as unknown:
                if unknown.name in asked:
                    return None
                asked.add(unknown.name)
                if not await self.tables.learn(_table_of(unknown.name), call):
                    return None

    def _settled(self, wanted: RewrittenRequest, admission: Admission, reply: Reply) -> Reply:
        """Correct the model by what the engine answered, and answer as the client wants it."""
        answer = document(reply.body) or {}
        try:
            self._correct(admission, reply, answer)
        except MalformedRequestError as error:  # what was taken stands
            _log.warning("the engine's answer can't be settled: %s", error)
        shown = wanted.without_extras(answer)
        if reply.status != 200:
            changed = shown is not None and len(shown) < len(answer)
            return replied(reply.status, shown or {}, reply) if changed else reply
        if shown is None and not admission.throttles:
            return reply
        shown = dict(answer) if shown is None else shown
        with_unprocessed(shown, admission)
        if wanted.form is not None:
            with_capacity(shown, admission, wanted.form)
        return replied(200, shown, reply)

    def _correct(self, admission: Admission, reply: Reply, answer: Mapping[str, Any]) -> None:
        now = self.clock()
        kind = kind_of(answer)
        if reply.status == 200:
            self.heat.settle(admission, answer, now)
            self._compare(admission, answer)
        elif reply.status == 400 and kind == _FAILED_CONDITIONS.get(admission.operation):
            self.heat.fail(admission, answer, now)
        elif reply.status < 500 or reply.status == 503:  # refused, or never seen
            self.heat.cancel(admission, now)
            touched = [table.name for table in admission.asked.tables]
            if kind == "ResourceNotFoundException" and len(touched) == 1:
                self.tables.forget(*touched)  # it was deleted behind our back

    def _compare(self, admission: Admission, answer: Mapping[str, Any]) -> None:
        reported = reported_units(answer)
        if not reported:
            return
        self.check.compared += 1
        theirs = sum(units for arms in reported.values() for units in arms.values())
        if abs(theirs - admission.units) > _ROUNDING:
            self.check.different += 1
            _log.debug(
                "%s: the engine reports %s units, the model counts %s",
                admission.operation, theirs, admission.units,
            )  # fmt: skip

    def _is_surely_refused(self, admission: Admission) -> bool:
        try:
            return surely_refused(admission, self.tables.key_types)
        except (AttributeError, LookupError, TypeError, ValueError):
            return True  # odd enough for the engine to say what is wrong

    def _is_complaint(self, wanted: RewrittenRequest, reply: Reply) -> bool:
        error = document(reply.body) or {}
        return kind_of(error) in _COMPLAINTS and wanted.named_in(str(error.get("message", "")))

    async def _unmodelled(self, call: EndpointCall, forward: Forward) -> Reply:
        self.check.not_modelled += 1
        return await self._send(call, forward)

    async def _send(self, call: EndpointCall, forward: Forward) -> Reply:
        try:
            async with asyncio.timeout(self._patience):
                return await forward(call)
        except TimeoutError:
            return refusal(
                500,
                "InternalServerError",
                f"The engine did not answer within {self._patience:g} seconds.",
            )


def _changed(call: EndpointCall, wanted: RewrittenRequest, admission: Admission) -> EndpointCall:
    """Return the call as it goes on to the engine; byte by byte the client's own where nothing changed."""
    if not wanted.added and not admission.throttles:
        return call
    return EndpointCall(call.operation, orjson.dumps(admission.to_send), call.headers)


def _table_of(unknown: str) -> str:
    return unknown.partition("/index/")[0].rpartition(":table/")[2]
