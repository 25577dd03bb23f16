"""A node's socket, on the loopback address, and what may happen to it."""

import socket
import socketserver
import struct
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Final

from spillway.dynamodb.port import Call
from tests.dynamodb.dax.double.codec import Decoder, NoMoreData, decode_socket, skip
from tests.dynamodb.dax.double.node import Node

# The client offers no public way to read one side of its protocol.
# ruff: noqa: SLF001
__all__ = ["DaxDouble", "dax_double"]

_LOOPBACK: Final = "127.0.0.1"
_GREETING: Final = b"gJ7yne5G"
_RESET: Final = struct.pack("ii", 1, 0)  # linger for no time: the peer sees a reset


class DaxDouble:
    """A cluster of one node.

    Attributes:
        node: what it answers, and what it was asked.
        port: where it listens.
        connections: how many there were.
        silent: accept connections and requests, answer none.
        garbage: bytes to answer every request with, None to answer properly.
        unexpected: what the double could not make sense of; `dax_double` raises the first.
    """

    def __init__(self, node: Node) -> None:
        self.node = node
        self.port = 0
        self.connections = 0
        self.silent = False
        self.garbage: bytes | None = None
        self.unexpected: list[Exception] = []
        self._open: set[socket.socket] = set()
        self._server: _Server | None = None
        self.start()

    @property
    def url(self) -> str:
        """The endpoint, as `DAX_ENDPOINT` names it."""
        return f"dax://{_LOOPBACK}:{self.port}"

    def start(self) -> None:
        """Listen, on the same port as before."""
        self._server = _Server((_LOOPBACK, self.port), _handler(self._serve))
        self.port = self._server.server_address[1]
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()

    def kill(self) -> None:
        """Reset all connections and refuse new ones, as when the node's process dies."""
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()
            self._server = None
        for connection in list(self._open):
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
            _shut(connection)

    def _serve(self, connection: socket.socket) -> None:
        self.connections += 1
        self._open.add(connection)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        try:
            decoder = decode_socket(connection)
            _greet(decoder)
            while True:
                reply = self.node.answer(decoder, self.port)
                if reply is not None and not self.silent:
                    connection.sendall(reply if self.garbage is None else self.garbage)
        except (NoMoreData, OSError):
            pass  # the client is gone, or this node is
        except Exception as error:  # noqa: BLE001  raised where the test ends
            self.unexpected.append(error)
        finally:
            self._open.discard(connection)


def _greet(decoder: Decoder) -> None:
    decoder._ensure_available(len(_GREETING))
    if bytes(decoder.buffer[: len(_GREETING)]) != _GREETING:
        raise ValueError("not a DAX client")
    decoder._consume(len(_GREETING))
    skip(decoder, 4)  # layering, session, the client's name, types


def _shut(connection: socket.socket) -> None:
    with suppress(OSError):  # it was closed meanwhile
        connection.shutdown(socket.SHUT_RDWR)
    connection.close()


class _Server(socketserver.ThreadingTCPServer):
    allow_reuse_address = True
    daemon_threads = True
    block_on_close = False
    request_queue_size = 64  # a client's threads connect at once


def _handler(serve: Callable[[socket.socket], None]) -> type[socketserver.BaseRequestHandler]:
    class Handler(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            serve(self.request)

    return Handler


@contextmanager
def dax_double(
    dynamodb: Call, key_names: Mapping[str, tuple[str, ...]], now: Callable[[], float]
) -> Iterator[DaxDouble]:
    """Run a cluster of one node in front of DynamoDB; its caches go by the clock `now`."""
    running = DaxDouble(Node(dynamodb, key_names, now))
    try:
        yield running
    finally:
        running.kill()
    for error in running.unexpected:
        raise error
