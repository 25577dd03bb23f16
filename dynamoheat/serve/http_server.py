"""HTTP functions shared by endpoints: bind a port, serve, relay requests, leave some unanswered.

`dynamoheat serve` and the endpoint of the local cloud use them.
"""

import asyncio
import socket
import struct
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any, Final

from aiohttp import ClientError, ClientResponse, ClientSession, web
from multidict import CIMultiDict
from yarl import URL

from dynamoheat.serve.wire import Reply, UnansweredError

__all__ = [
    "HOP_BY_HOP",
    "LOOPBACK",
    "bind_loopback",
    "forwarded_headers",
    "leave_unanswered",
    "permit_body",
    "relay",
    "serve_requests",
    "to_response",
]

LOOPBACK: Final = "127.0.0.1"
HOP_BY_HOP: Final = frozenset({
    "connection", "expect", "keep-alive", "proxy-authenticate", "proxy-authorization",
    "proxy-connection", "te", "trailer", "transfer-encoding", "upgrade",
})  # fmt: skip
"""Headers, in lower case, that concern one connection and are never passed on."""

_BACKLOG: Final = 128
_RESET: Final = struct.pack("ii", 1, 0)  # SO_LINGER of zero seconds: closing sends RST
_POLL_SECONDS: Final = 0.05  # between looks whether a silent caller has hung up
_MAX_SILENT_SECONDS: Final = 900.0

Handler = Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]


def bind_loopback(port: int) -> socket.socket:
    """Listen on a port of 127.0.0.1; port 0 takes any free one.

    Raises:
        OSError: The port is taken or may not be used.
        OverflowError: The number is no port.
    """
    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((LOOPBACK, port))
        listener.listen(_BACKLOG)
    except (OSError, OverflowError):
        listener.close()
        raise
    return listener


@asynccontextmanager
async def serve_requests(handler: Handler, listener: socket.socket) -> AsyncGenerator[None]:
    """Answer requests on a bound socket with `handler` until the block ends."""
    # Bodies are passed on as they came, so they are not decompressed here.
    server = web.Server(handler, access_log=None, auto_decompress=False)
    runner = web.ServerRunner(server, shutdown_timeout=1.0)
    await runner.setup()
    try:
        await web.SockSite(runner, listener).start()
        yield
    finally:
        await runner.cleanup()


def permit_body(request: web.BaseRequest) -> None:
    """Tell a client that sent `Expect: 100-continue` to send the body."""
    if request.headers.get("Expect", "").lower() == "100-continue" and request.transport:
        request.transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")


async def relay(  # noqa: PLR0913  # a request, its target, and what differs between callers
    request: web.BaseRequest,
    session: ClientSession,
    url: URL,
    *,
    body: Any,
    upstream: str,
    dropped: frozenset[str] = HOP_BY_HOP,
) -> web.StreamResponse:
    """Forward a request to `url` and stream the response back.

    `session` must not decompress (`auto_decompress=False`). Headers named in `dropped` stay behind
    in both directions. A server that fails before it answers gives status 502 with a message that
    calls it `upstream`.
    """
    try:
        answer = await session.request(
            request.method,
            url,
            headers=forwarded_headers(request.headers, dropped),
            data=body,
            allow_redirects=False,
        )
    except (ClientError, TimeoutError) as error:
        return web.json_response({"message": f"{upstream} failed: {error}"}, status=502)
    async with answer:
        return await _stream(request, answer, dropped)


def forwarded_headers(
    headers: Mapping[str, str], dropped: frozenset[str] = HOP_BY_HOP
) -> CIMultiDict[str]:
    """Return the headers that are passed on."""
    return CIMultiDict(
        (name, value) for name, value in headers.items() if name.lower() not in dropped
    )


def to_response(reply: Reply) -> web.Response:
    """Return a reply as an HTTP response."""
    return web.Response(status=reply.status, body=reply.body, headers=reply.headers)


async def leave_unanswered(request: web.BaseRequest, error: UnansweredError) -> web.Response:
    """Reset the caller's connection, or stay silent until the caller closes it.

    The response that it returns is never sent.
    """
    transport = request.transport
    waited = 0.0
    while not error.reset and transport is not None and waited < _MAX_SILENT_SECONDS:
        if transport.is_closing():
            break
        await asyncio.sleep(_POLL_SECONDS)
        waited += _POLL_SECONDS
    if transport is not None and not transport.is_closing():
        connection = transport.get_extra_info("socket")
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
        transport.abort()
    return web.Response()


async def _stream(
    request: web.BaseRequest, answer: ClientResponse, dropped: frozenset[str]
) -> web.StreamResponse:
    response = web.StreamResponse(
        status=answer.status,
        reason=answer.reason,
        headers=forwarded_headers(answer.headers, dropped),
    )
    await response.prepare(request)
    async for chunk in answer.content.iter_any():
        await response.write(chunk)
    await response.write_eof()
    return response
