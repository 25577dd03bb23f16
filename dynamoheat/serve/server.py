"""The stand-alone endpoint: it throttles in front of any engine, on an address of its own.

Besides DynamoDB's calls it answers:

| request | answer |
|---|---|
| `GET /heat` | partitions, ranges, rates, throttles and splits of all tables, as JSON |
| `GET /heat/faults` | the faults in force, and how often each has happened |
| `PUT /heat/faults` | puts a JSON list of faults in force, `[]` for none |
"""

import asyncio
import errno
import signal
import socket
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import asdict
from typing import Any, Final

import orjson
from aiohttp import web
from yarl import URL

from dynamoheat.serve.engine import EngineClient
from dynamoheat.serve.factory import make_faults, make_throttling, steady_clock
from dynamoheat.serve.faults import Fault, Faults, parse_fault
from dynamoheat.serve.http_server import (
    LOOPBACK,
    bind_loopback,
    leave_unanswered,
    permit_body,
    serve_requests,
    to_response,
)
from dynamoheat.serve.options import ServeOptions
from dynamoheat.serve.tables import describe_table, handle_table_call
from dynamoheat.serve.throttling import Throttling
from dynamoheat.serve.wire import (
    DATA_PLANE,
    JSON_TYPE,
    TARGET_PREFIX,
    EndpointCall,
    Reply,
    UnansweredError,
)

__all__ = ["HeatServer", "ServeError", "answer_page", "is_page", "serve", "serving"]

_PAGE: Final = "/heat"
_FAULTS_PAGE: Final = "/heat/faults"
_PROBE_SECONDS: Final = 5.0
_MAX_CONNECT_SECONDS: Final = 2.0  # long enough for an engine that restarts


class ServeError(Exception):
    """The endpoint cannot start. The message is one sentence for a person."""


class HeatServer:
    """Routes requests: items through the model, tables past it, everything else to the engine."""

    def __init__(self, engine: EngineClient, throttling: Throttling | None, faults: Faults) -> None:
        """Take the engine, the model (None: nothing is throttled) and the faults."""
        self._engine = engine
        self._throttling = throttling
        self._faults = faults

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        """Answer one request."""
        permit_body(request)
        if is_page(request):
            return await answer_page(request, self._throttling, self._faults)
        body = await request.content.read()
        target = request.headers.get("X-Amz-Target", "")
        if not target.startswith(TARGET_PREFIX):
            return await self._engine.relay(request, body)
        call = EndpointCall(target.removeprefix(TARGET_PREFIX), body, request.headers)
        try:
            return to_response(await self._faults.answer(call, self._answer))
        except UnansweredError as error:
            return await leave_unanswered(request, error)

    async def _answer(self, call: EndpointCall) -> Reply:
        if self._throttling is None:
            return await self._engine.send(call)
        if call.operation in DATA_PLANE:
            return await self._throttling.admit(call, self._engine.send)
        return await handle_table_call(call, self._engine.send, self._throttling.tables)


@asynccontextmanager
async def serving(options: ServeOptions, clock: Callable[[], float]) -> AsyncGenerator[str]:
    """Serve until the block ends; yield the endpoint's URL.

    `clock` gives epoch seconds to the model and never steps back.

    Raises:
        ServeError: The port is taken or the engine does not answer.
        OptionError: An option is malformed or out of range.
    """
    options.heat.validate()
    with _bind(options.port) as listener:
        async with EngineClient(
            _engine_address(options.engine),
            connect_seconds=min(options.timeout_seconds, _MAX_CONNECT_SECONDS),
        ) as engine:
            await _probe(engine, options.engine)
            throttling = make_throttling(
                options.heat,
                lambda name, call: describe_table(engine.send, name, call),
                clock,
                timeout_seconds=options.timeout_seconds,
            )
            server = HeatServer(engine, throttling, make_faults(options.heat, throttling))
            async with serve_requests(server.handle, listener):
                yield f"http://{LOOPBACK}:{listener.getsockname()[1]}"


async def serve(options: ServeOptions, ready: Callable[[str], None]) -> None:
    """Serve until SIGINT or SIGTERM. Call `ready` with the URL once requests are accepted.

    Raises:
        ServeError: As `serving`.
        OptionError: As `serving`.
    """
    stopped = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stopped.set)
    async with serving(options, steady_clock()) as url:
        ready(url)
        await stopped.wait()


def is_page(request: web.BaseRequest) -> bool:
    """Return whether a request asks for a page of the model.

    A signed request does not: it is for a bucket or a table of that name.
    """
    return request.path in (_PAGE, _FAULTS_PAGE) and "Authorization" not in request.headers


async def answer_page(
    request: web.BaseRequest, throttling: Throttling | None, faults: Faults
) -> web.Response:
    """Answer a request for a page of the model."""
    match request.method, request.path:
        case "GET", path if path == _PAGE:
            return _json(200, _model_state(throttling))
        case "GET", _:
            return _json(200, _fault_state(faults))
        case "PUT", path if path == _FAULTS_PAGE:
            return _replace_faults(await request.read(), faults)
    return _json(405, {"message": f"{request.path} does not allow {request.method}."})


def _bind(port: int) -> socket.socket:
    try:
        return bind_loopback(port)
    except (OSError, OverflowError) as error:
        why = "it is taken" if getattr(error, "errno", 0) == errno.EADDRINUSE else str(error)
        raise ServeError(
            f"Port {port} of {LOOPBACK} can't be used ({why}): try another --port."
        ) from error


def _engine_address(text: str) -> URL:
    try:
        url = URL(text)
    except ValueError:
        url = URL()
    if url.scheme not in ("http", "https") or not url.host:
        raise ServeError(f"{text!r} is no address of an engine, such as http://127.0.0.1:8000.")
    return url


async def _probe(engine: EngineClient, url: str) -> None:
    """Check that the engine answers. An error will do: most engines want credentials."""
    headers = {"X-Amz-Target": TARGET_PREFIX + "ListTables", "Content-Type": JSON_TYPE}
    try:
        async with asyncio.timeout(_PROBE_SECONDS):
            reply = await engine.send(EndpointCall("ListTables", b"{}", headers))
    except TimeoutError:
        reply = None
    if reply is None or reply.status >= 500:
        raise ServeError(f"No engine answers at {url}: start it, or name another with --engine.")


def _model_state(throttling: Throttling | None) -> dict[str, Any]:
    if throttling is None:
        return {"heat": False, "tables": {}}
    state = throttling.heat.snapshot(throttling.clock())
    return {**state, "engine": asdict(throttling.comparison)}


def _fault_state(faults: Faults) -> dict[str, Any]:
    return {"faults": faults.texts, "injected": dict(faults.injected)}


def _replace_faults(body: bytes, faults: Faults) -> web.Response:
    try:
        faults.replace(_parse_faults(orjson.loads(body)))
    except ValueError as error:  # malformed JSON is a ValueError too
        return _json(400, {"message": str(error)})
    return _json(200, _fault_state(faults))


def _parse_faults(texts: object) -> Sequence[Fault]:
    if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
        raise ValueError('The body is not a JSON list of faults, such as ["*:500:0.01"].')
    return [parse_fault(text) for text in texts]


def _json(status: int, content: object) -> web.Response:
    return web.Response(status=status, body=orjson.dumps(content), content_type="application/json")
