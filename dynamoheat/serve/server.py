"""Server"""

import asyncio
import errno
import signal
import socket
import struct
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass
from typing import Any, Final

import orjson
from aiohttp import web
from yarl import URL

from dynamoheat.serve.engine import EngineClient
from dynamoheat.serve.factory import make_faults, make_throttling, steady_clock
from dynamoheat.serve.faults import Fault, Faults, parse_fault
from dynamoheat.serve.options import HeatOptions
from dynamoheat.serve.tables import describe_table, handle_table_call
from dynamoheat.serve.throttling import Throttling
from dynamoheat.serve.wire import DATA_PLANE, JSON_TYPE, EndpointCall, Reply, UnansweredError

__all__ = [
    "LOOPBACK",
    "HeatServer",
    "ServeError",
    "ServeOptions",
    "answer_page",
    "is_page",
    "leave_unanswered",
    "serve",
    "serving",
    "to_response",
]

LOOPBACK: Final = "127.0.0.1"


_TARGET: Final = "DynamoDB_20120810."


_PAGE: Final = "/heat"


_FAULTS: Final = "/heat/faults"


_REACH_SECONDS: Final = 5.0


_CONNECT_SECONDS: Final = 2.0  # long enough for an engine that restarts


_RESET: Final = struct.pack("ii", 1, 0)  # linger for no time: what is closed is reset


_LOOK: Final = 0.05  # seconds between looks whether a caller has given up


_LONGEST_SILENCE: Final = 900.0  # seconds


class ServeError(Exception):
    """The endpoint can't start; the message is one sentence for a person."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServeOptions:
    """Where the engine is and where to listen; `port` 0 takes any."""

    engine: str
    port: int = 8001
    timeout_seconds: float = 50.0  # seconds for an answer of the engine
    heat: HeatOptions


class HeatServer:
    """Routes requests: items through the model, tables past it, all else on to the engine."""

    def __init__(self, engine: EngineClient, throttling: Throttling | None, faults: Faults) -> None:
        """Take the parts behind the address."""
        self._engine = engine
        self._throttling = throttling
        self._faults = faults

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        """Answer one request."""
        if request.headers.get("Expect", "").lower() == "100-continue" and request.transport:
            request.transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        if is_page(request):
            return await answer_page(request, self._throttling, self._faults)
        body = await request.content.read()
        target = request.headers.get("X-Amz-Target", "")
        if not target.startswith(_TARGET):
            return await self._engine.relay(request, body)
        call = EndpointCall(target.removeprefix(_TARGET), body, request.headers)
        try:
            return to_response(await self._faults.answer(call, self._answer))
        except UnansweredError as how:
            return await leave_unanswered(request, how)

    async def _answer(self, call: EndpointCall) -> Reply:
        if self._throttling is None:
            return await self._engine.send(call)
        if call.operation in DATA_PLANE:
            return await self._throttling.admit(call, self._engine.send)
        return await handle_table_call(call, self._engine.send, self._throttling.tables)


@asynccontextmanager
async def serving(options: ServeOptions, clock: Callable[[], float]) -> AsyncGenerator[str]:
    """Serve until the block ends; gives the endpoint's URL. `clock` is the model's, see `Throttling`.

    Raises:
        ServeError: The port is taken or the engine does not answer.
        OptionError: An option can't be understood.
    """
    options.heat.validate()
    listener = _bind(options.port)
    with listener:
        patience = min(options.timeout_seconds, _CONNECT_SECONDS)
        async with EngineClient(_engine_address(options.engine), patience=patience) as engine:
            await _reach(engine, options.engine)
            throttling = make_throttling(
                options.heat,
                lambda name, call: describe_table(engine.send, name, call),
                clock,
                patience=options.timeout_seconds,
            )
            server = HeatServer(engine, throttling, make_faults(options.heat, throttling))
            runner = web.ServerRunner(
                web.Server(server.handle, access_log=None, auto_decompress=False),
                shutdown_timeout=1.0,
            )
            await runner.setup()
            try:
                await web.SockSite(runner, listener).start()
                yield f"http://{LOOPBACK}:{listener.getsockname()[1]}"
            finally:
                await runner.cleanup()


async def serve(options: ServeOptions, ready: Callable[[str], None]) -> None:
    """Serve until SIGINT or SIGTERM; call `ready` with the URL once requests are taken.

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


def _bind(port: int) -> socket.socket:
    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((LOOPBACK, port))
        listener.listen(128)
    except (OSError, OverflowError) as error:
        listener.close()
        why = "it is taken" if getattr(error, "errno", 0) == errno.EADDRINUSE else str(error)
        raise ServeError(
            f"Port {port} of {LOOPBACK} can't be used ({why}): try another --port."
        ) from error
    return listener


def _engine_address(text: str) -> URL:
    try:
        url = URL(text)
    except ValueError:
        url = URL()
    if url.scheme not in ("http", "https") or not url.host:
        raise ServeError(f"{text!r} is no address of an engine, such as http://127.0.0.1:8000.")
    return url


async def _reach(engine: EngineClient, url: str) -> None:
    """See whether anything answers; an error will do, for most engines want credentials."""
    headers = {"X-Amz-Target": _TARGET + "ListTables", "Content-Type": JSON_TYPE}
    try:
        async with asyncio.timeout(_REACH_SECONDS):
            reply = await engine.send(EndpointCall("ListTables", b"{}", headers))
    except TimeoutError:
        reply = None
    if reply is None or reply.status >= 500:
        raise ServeError(f"No engine answers at {url}: start it, or name another with --engine.")


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


def to_response(reply: Reply) -> web.Response:
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
    return {**state, "engine": asdict(throttling.comparison)}


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
    return [parse_fault(text) for text in given]


def _json(status: int, content: object) -> web.Response:
    return web.Response(status=status, body=orjson.dumps(content), content_type="application/json")
