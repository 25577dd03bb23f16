"""Connections to the engine: kept alive, pooled, patient while it restarts.

A protocol of our own instead of an HTTP client's sessions: the engine always answers one request at a
time with a Content-Length, and a session costs a data-plane call twice as much as this.
"""

import asyncio

from local.calls import Call, Reply, refusal
from local.children import LOOPBACK

__all__ = ["EngineLink"]

_PASSED_ON = ("X-Amz-Target", "Content-Type", "Authorization", "X-Amz-Date", "X-Amz-Security-Token")
_PASSED_BACK = {
    b"content-type": "Content-Type",
    b"x-amzn-requestid": "x-amzn-RequestId",
    b"x-amz-crc32": "x-amz-crc32",
}
_PAUSE = 0.02  # seconds between attempts to connect


class EngineLink:
    """Sends calls to the engine on a port of the loopback address."""

    def __init__(self, port: int, *, patience: float = 5.0) -> None:
        """Wait up to `patience` seconds for an engine that does not accept connections."""
        self._port = port
        self._patience = patience
        self._idle: list[_Connection] = []

    async def send(self, call: Call) -> Reply:
        """Return the engine's reply.

        An engine that is gone or dies meanwhile gives an answer with status 500 or above: after 503
        nothing was written, after 500 the outcome is unknown. A cancelled call drops its connection.
        """
        connection = self._idle.pop() if self._idle else await self._connect()
        if connection is None:
            return refusal(503, "ServiceUnavailable", "The engine does not accept connections.")
        try:
            reply = await connection.exchange(_request(call))
        except ConnectionError:
            return refusal(500, "InternalServerError", "The engine died during the request.")
        except BaseException:
            connection.close()
            raise
        self._idle.append(connection)
        return reply

    def close(self) -> None:
        """Close the connections that wait for use."""
        for connection in list(self._idle):
            connection.close()

    async def _connect(self) -> "_Connection | None":
        loop = asyncio.get_running_loop()
        deadline = loop.time() + self._patience
        while loop.time() < deadline:
            try:
                _, connection = await loop.create_connection(self._fresh, LOOPBACK, self._port)
            except ConnectionError:
                await asyncio.sleep(_PAUSE)
            else:
                return connection
        return None

    def _fresh(self) -> "_Connection":
        return _Connection(self._idle)


class _Connection(asyncio.Protocol):
    def __init__(self, idle: "list[_Connection]") -> None:
        self._idle = idle
        self._buffer = bytearray()
        self._reply: asyncio.Future[Reply] | None = None

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
        reply, length = _parse(self._buffer)
        if reply is None or self._reply is None or self._reply.done():
            return
        del self._buffer[:length]
        self._reply.set_result(reply)

    def connection_lost(self, exc: Exception | None) -> None:
        if self in self._idle:
            self._idle.remove(self)
        if self._reply is not None and not self._reply.done():
            self._reply.set_exception(ConnectionResetError(str(exc or "closed")))


def _request(call: Call) -> bytes:
    lines = [f"{name}: {call.headers[name]}" for name in _PASSED_ON if name in call.headers]
    lines += ["Host: " + LOOPBACK, f"Content-Length: {len(call.body)}"]
    return ("POST / HTTP/1.1\r\n" + "\r\n".join(lines) + "\r\n\r\n").encode() + call.body


def _parse(buffer: bytearray) -> tuple[Reply | None, int]:
    """Return the reply at the start of the buffer and its length, or None while it is incomplete."""
    end = buffer.find(b"\r\n\r\n")
    if end < 0:
        return None, 0
    status, *lines = bytes(buffer[:end]).split(b"\r\n")
    headers = dict(_split(line) for line in lines)
    start = end + 4
    length = start + int(headers[b"content-length"])
    if len(buffer) < length:
        return None, 0
    passed = {name: headers[key].decode() for key, name in _PASSED_BACK.items() if key in headers}
    return Reply(int(status[9:12]), bytes(buffer[start:length]), passed), length


def _split(line: bytes) -> tuple[bytes, bytes]:
    name, _, value = line.partition(b":")
    return name.lower(), value.strip()
