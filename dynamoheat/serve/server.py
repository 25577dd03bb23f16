"""The endpoint by itself: in front of any engine, on an address of its own."""

import asyncio
import errno
import signal
import socket
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Final

from aiohttp import web
from yarl import URL

from dynamoheat.serve.control import described_by, manage
from dynamoheat.serve.engine import EngineClient
from dynamoheat.serve.factory import make_faults, make_throttling, steady_clock
from dynamoheat.serve.faults import Faults
from dynamoheat.serve.options import HeatOptions
from dynamoheat.serve.pages import answer_page, is_page, leave_unanswered, responded
from dynamoheat.serve.throttling import Throttling
from dynamoheat.serve.wire import DATA_PLANE, JSON_TYPE, EndpointCall, Reply, UnansweredError

__all__ = ["LOOPBACK", "ServeError", "ServeOptions", "Server", "serve", "serving"]

LOOPBACK: Final = "127.0.0.1"
_TARGET: Final = "DynamoDB_20120810."
_REACH_SECONDS: Final = 5.0
_CONNECT_SECONDS: Final = 2.0  # long enough for an engine that restarts


class ServeError(Exception):
    """The endpoint can't start; the message is one sentence for a person."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServeOptions:
    """Where the engine is and where to listen; `port` 0 takes any."""

    engine: str
    port: int = 8001
    patience: float = 50.0  # seconds for an answer of the engine
    heat: HeatOptions


class Server:
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
            return responded(await self._faults.answer(call, self._answer))
        except UnansweredError as how:
            return await leave_unanswered(request, how)

    async def _answer(self, call: EndpointCall) -> Reply:
        if self._throttling is None:
            return await self._engine.send(call)
        if call.operation in DATA_PLANE:
            return await self._throttling.admit(call, self._engine.send)
        return await manage(call, self._engine.send, self._throttling.tables)


@asynccontextmanager
async def serving(options: ServeOptions, clock: Callable[[], float]) -> AsyncGenerator[str]:
    """Serve until the block ends; gives the endpoint's URL. `clock` is the model's, see `Throttling`.

    Raises:
        ServeError: The port is taken or the engine does not answer.
        OptionError: An option can't be understood.
    """
    options.heat.check()
    listener = _bind(options.port)
    with listener:
        patience = min(options.patience, _CONNECT_SECONDS)
        async with EngineClient(_engine_address(options.engine), patience=patience) as engine:
            await _reach(engine, options.engine)
            throttling = make_throttling(
                options.heat,
                lambda name, call: described_by(engine.send, name, call),
                clock,
                patience=options.patience,
            )
            server = Server(engine, throttling, make_faults(options.heat, throttling))
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
