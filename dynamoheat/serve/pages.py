"""What the endpoint tells about itself over HTTP, and how it leaves a caller without an answer.

| request | answer |
|---|---|
| `GET /heat` | partitions, ranges, rates, throttles, splits of all tables, as JSON |
| `GET /heat/faults` | the faults in force, and how often each has happened |
| `PUT /heat/faults` | puts a JSON list of faults in force, `[]` for none |
"""

import asyncio
import socket
import struct
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any, Final

import orjson
from aiohttp import web

from dynamoheat.serve.faults import Fault, Faults, fault
from dynamoheat.serve.throttling import Throttling
from dynamoheat.serve.wire import Reply, UnansweredError

__all__ = ["answer_page", "is_page", "leave_unanswered", "responded"]

_PAGE: Final = "/heat"
_FAULTS: Final = "/heat/faults"
_RESET: Final = struct.pack("ii", 1, 0)  # linger for no time: what is closed is reset
_LOOK: Final = 0.05  # seconds between looks whether a caller has given up
_LONGEST_SILENCE: Final = 900.0  # seconds


def is_page(request: web.BaseRequest) -> bool:
    """Say whether a request is for one of these pages, and not a signed one for a bucket of that name."""
    return request.path in (_PAGE, _FAULTS) and "Authorization" not in request.headers


async def answer_page(
    request: web.BaseRequest, throttling: Throttling | None, faults: Faults
) -> web.Response:
    """Answer a request for a page."""
    match request.method, request.path:
        case "GET", path if path == _PAGE:
            return _json(200, _state(throttling))
        case "GET", _:
            return _json(200, _in_force(faults))
        case "PUT", path if path == _FAULTS:
            return _replace(await request.read(), faults)
    return _json(405, {"message": f"{request.method} is not for {request.path}."})


def responded(reply: Reply) -> web.Response:
    """Return a reply as an HTTP response."""
    return web.Response(status=reply.status, body=reply.body, headers=reply.headers)


async def leave_unanswered(request: web.BaseRequest, how: UnansweredError) -> web.Response:
    """Reset a caller's connection, or stay silent until the caller closes it."""
    transport = request.transport
    waited = 0.0
    while not how.reset and transport is not None and waited < _LONGEST_SILENCE:
        if transport.is_closing():
            break
        await asyncio.sleep(_LOOK)
        waited += _LOOK
    if transport is not None and not transport.is_closing():
        connection = transport.get_extra_info("socket")
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
        transport.abort()
    return web.Response()  # goes nowhere


def _state(throttling: Throttling | None) -> dict[str, Any]:
    if throttling is None:
        return {"heat": False, "tables": {}}
    state = throttling.heat.snapshot(throttling.clock())
    return {**state, "engine": asdict(throttling.check)}


def _in_force(faults: Faults) -> dict[str, Any]:
    return {"faults": faults.texts, "injected": dict(faults.injected)}


def _replace(body: bytes, faults: Faults) -> web.Response:
    try:
        faults.replace(_parsed(orjson.loads(body)))
    except ValueError as error:  # orjson's is one too
        return _json(400, {"message": str(error)})
    return _json(200, _in_force(faults))


def _parsed(given: object) -> Sequence[Fault]:
    if not isinstance(given, list) or not all(isinstance(text, str) for text in given):
        raise ValueError('The body is not a JSON list of faults, such as ["*:500:0.01"].')
    return [fault(text) for text in given]


def _json(status: int, content: object) -> web.Response:
    return web.Response(status=status, body=orjson.dumps(content), content_type="application/json")
