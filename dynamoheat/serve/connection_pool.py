"""Connections to the engine: kept alive, pooled, patient while it restarts.

A protocol of our own instead of an HTTP client's sessions, which would add as much to a call as all the
rest of the endpoint: one request at a time, and of HTTP only what servers answer a small POST with.
"""

import asyncio
import logging
import ssl
from collections.abc import Mapping
from typing import Final

from dynamoheat.serve.wire import EndpointCall, Reply, refusal

__all__ = ["EngineConnectionPool"]

_log = logging.getLogger(__name__)

_PASSED_ON: Final = (
    "X-Amz-Target", "Content-Type", "Authorization", "X-Amz-Date", "X-Amz-Security-Token",
)  # fmt: skip
_PASSED_BACK: Final = {
    b"content-type": "Content-Type",
    b"x-amzn-requestid": "x-amzn-RequestId",
    b"x-amz-crc32": "x-amz-crc32",
}
_PAUSE: Final = 0.02  # seconds between attempts to connect

Headers = Mapping[bytes, bytes]


class EngineConnectionPool:
    """Sends calls to the engine at one address."""

    def __init__(
        self, host: str, port: int, *, tls: ssl.SSLContext | None = None, patience: float = 5.0
    ) -> None:
        """Wait up to `patience` seconds for an engine that does not accept connections."""
        self._address = (host, port)
        self._tls = tls
        self._patience = patience
        self._idle: list[_Connection] = []

    async def send(self, call: EndpointCall) -> Reply:
        """Return the engine's reply.

        An engine that is gone or dies meanwhile gives an answer with status 500 or above: after 503
        nothing was written, after 500 the outcome is unknown. A cancelled call drops its connection.
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
        """Close the connections that wait for use."""
        for connection in list(self._idle):
            connection.close()

    async def _connect(self) -> "_Connection | None":
        loop = asyncio.get_running_loop()
        deadline = loop.time() + self._patience
        while True:
            try:
                _, connection = await loop.create_connection(
                    self._fresh, *self._address, ssl=self._tls
                )
            except OSError as error:  # a name that is not known among them
                if loop.time() >= deadline:
                    _log.info("no connection to the engine: %s", error)
                    return None
                await asyncio.sleep(_PAUSE)
            else:
                return connection

    def _fresh(self) -> "_Connection":
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
            self._take(ended=False)
        except ValueError:  # no HTTP
            self._transport.abort()

    def eof_received(self) -> None:
        if self._reply is not None and not self._reply.done():
            try:
                self._take(ended=True)
            except ValueError:
                self._transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        self.stays_open = False
        if self in self._idle:
            self._idle.remove(self)
        if self._reply is not None and not self._reply.done():
            self._reply.set_exception(ConnectionResetError(str(exc or "closed")))

    def _take(self, *, ended: bool) -> None:
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
