"""A client of any DynamoDB-compatible engine, over pooled connections.

The pool speaks HTTP itself: a general HTTP client would add as much to a call as the rest of the
endpoint. A connection carries one request at a time, and understands only what servers send in
response to a small POST.
"""

import asyncio
import logging
import ssl
from collections.abc import Mapping
from types import TracebackType
from typing import Final, Self

from aiohttp import ClientSession, ClientTimeout, DummyCookieJar, web
from yarl import URL

from dynamoheat.serve.http_server import HOP_BY_HOP, relay
from dynamoheat.serve.wire import EndpointCall, Reply, normalize_error, refusal

__all__ = ["EngineClient", "EngineConnectionPool"]

_log = logging.getLogger(__name__)

_DROPPED: Final = HOP_BY_HOP | {"host"}  # each hop states its own host
_PASSED_ON: Final = (
    "X-Amz-Target", "Content-Type", "Authorization", "X-Amz-Date", "X-Amz-Security-Token",
)  # fmt: skip
_PASSED_BACK: Final = {
    b"content-type": "Content-Type",
    b"x-amzn-requestid": "x-amzn-RequestId",
    b"x-amz-crc32": "x-amz-crc32",
}
_RETRY_SECONDS: Final = 0.02  # between attempts to connect

Headers = Mapping[bytes, bytes]


class EngineClient:
    """Sends calls to an engine over pooled connections."""

    def __init__(self, url: URL, *, connect_seconds: float) -> None:
        """Take the engine's address, and how long to wait until it accepts a connection."""
        tls = ssl.create_default_context() if url.scheme == "https" else None
        self._url = url
        self._pool = EngineConnectionPool(
            str(url.host), int(url.port or 80), tls=tls, connect_seconds=connect_seconds
        )

    async def __aenter__(self) -> Self:
        timeout = ClientTimeout(total=60.0)
        self._session = ClientSession(
            auto_decompress=False, cookie_jar=DummyCookieJar(), timeout=timeout
        )
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._pool.close()
        await self._session.close()

    async def send(self, call: EndpointCall) -> Reply:
        """Return the engine's reply to a call, always in DynamoDB's shape.

        An engine out of reach gives status 503: nothing was written. A broken connection gives 500:
        the outcome is unknown.
        """
        return normalize_error(await self._pool.send(call))

    async def relay(self, request: web.BaseRequest, body: bytes) -> web.StreamResponse:
        """Forward a request that is no call of DynamoDB, and stream the engine's response back."""
        url = self._url.join(URL(request.raw_path, encoded=True))
        return await relay(
            request, self._session, url, body=body, upstream="The engine", dropped=_DROPPED
        )


class EngineConnectionPool:
    """Sends calls to the engine at one address over connections that are kept alive."""

    def __init__(
        self,
        host: str,
        port: int,
        *,
        tls: ssl.SSLContext | None = None,
        connect_seconds: float = 5.0,
    ) -> None:
        """Wait up to `connect_seconds` for an engine that does not accept connections yet."""
        self._address = (host, port)
        self._tls = tls
        self._connect_seconds = connect_seconds
        self._idle: list[_Connection] = []

    async def send(self, call: EndpointCall) -> Reply:
        """Return the engine's reply.

        Status 503 means that the engine was never reached and nothing was written, 500 that it died
        meanwhile and the outcome is unknown. A cancelled call drops its connection.
        """
        connection = self._idle.pop() if self._idle else await self._connect()
        if connection is None:
            return refusal(503, "ServiceUnavailable", "The engine does not accept connections.")
        try:
            reply = await connection.exchange(self._request(call))
        except ConnectionError:
            return refusal(500, "InternalServerError", "The engine died during the request.")
        except BaseException:
            connection.close()
            raise
        if connection.stays_open:
            self._idle.append(connection)
        return reply

    def close(self) -> None:
        """Close the idle connections."""
        for connection in list(self._idle):
            connection.close()

    async def _connect(self) -> "_Connection | None":
        loop = asyncio.get_running_loop()
        deadline = loop.time() + self._connect_seconds
        while True:
            try:
                _, connection = await loop.create_connection(
                    self._new_connection, *self._address, ssl=self._tls
                )
            except OSError as error:  # an unknown host name included
                if loop.time() >= deadline:
                    _log.info("no connection to the engine: %s", error)
                    return None
                await asyncio.sleep(_RETRY_SECONDS)
            else:
                return connection

    def _new_connection(self) -> "_Connection":
        return _Connection(self._idle)

    def _request(self, call: EndpointCall) -> bytes:
        lines = [f"{name}: {call.headers[name]}" for name in _PASSED_ON if name in call.headers]
        host, port = self._address
        lines += [f"Host: {host}:{port}", f"Content-Length: {len(call.body)}"]
        return ("POST / HTTP/1.1\r\n" + "\r\n".join(lines) + "\r\n\r\n").encode() + call.body


class _Connection(asyncio.Protocol):
    def __init__(self, idle: "list[_Connection]") -> None:
        self._idle = idle
        self._buffer = bytearray()
        self._reply: asyncio.Future[Reply] | None = None
        self.stays_open = True

    async def exchange(self, request: bytes) -> Reply:
        if self._transport.is_closing():
            raise ConnectionResetError
        self._reply = asyncio.get_running_loop().create_future()
        self._transport.write(request)
        return await self._reply

    def close(self) -> None:
        self._transport.close()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)  # noqa: S101  # what TCP gives
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        if self._reply is None or self._reply.done():
            return
        try:
            self._parse(ended=False)
        except ValueError:  # not HTTP
            self._transport.abort()

    def eof_received(self) -> None:
        if self._reply is not None and not self._reply.done():
            try:
                self._parse(ended=True)
            except ValueError:
                self._transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        self.stays_open = False
        if self in self._idle:
            self._idle.remove(self)
        if self._reply is not None and not self._reply.done():
            self._reply.set_exception(ConnectionResetError(str(exc or "closed")))

    def _parse(self, *, ended: bool) -> None:
        end = self._buffer.find(b"\r\n\r\n")
        if end < 0 or self._reply is None:
            return
        status, headers = _head(bytes(self._buffer[:end]))
        rest = memoryview(self._buffer)[end + 4 :]
        body = _body(rest, headers, ended=ended)
        rest.release()
        if body is None:
            return
        if headers.get(b"connection", b"").lower() == b"close":
            self.stays_open = False
            self._transport.close()
        self._buffer.clear()  # one request at a time: nothing can follow
        passed = {
            name: headers[key].decode() for key, name in _PASSED_BACK.items() if key in headers
        }
        self._reply.set_result(Reply(status, body, passed))


def _head(text: bytes) -> tuple[int, Headers]:
    first, *lines = text.split(b"\r\n")
    return int(first[9:12]), dict(_split(line) for line in lines)


def _split(line: bytes) -> tuple[bytes, bytes]:
    name, _, value = line.partition(b":")
    return name.lower(), value.strip()


def _body(content: memoryview, headers: Headers, *, ended: bool) -> bytes | None:
    """Return a reply's body, None while it is incomplete."""
    if headers.get(b"transfer-encoding", b"").lower() == b"chunked":
        return _unchunked(bytes(content))
    if b"content-length" not in headers:
        return bytes(content) if ended else None
    length = int(headers[b"content-length"])
    return bytes(content[:length]) if len(content) >= length else None


def _unchunked(content: bytes) -> bytes | None:
    chunks: list[bytes] = []
    while True:
        size, separator, rest = content.partition(b"\r\n")
        if not separator:
            return None
        length = int(size.partition(b";")[0], 16)
        if length == 0:
            return b"".join(chunks) if rest.endswith(b"\r\n") else None
        if len(rest) < length + 2:
            return None
        chunks.append(rest[:length])
        content = rest[length + 2 :]
