"""Tiny real servers on the loopback address: an endpoint that answers as told, with or without TLS, and a proxy."""

import os
import select
import socket
import ssl
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final

import orjson

__all__ = [
    "GARBLE",
    "HANG",
    "HANG_UP",
    "Answer",
    "Endpoint",
    "Received",
    "answer_json",
    "endpoint",
    "proxy",
]

LOOPBACK: Final = "127.0.0.1"


@dataclass(frozen=True)
class Answer:
    """What an endpoint sends back."""

    status: int = 200
    body: bytes = b'{"Items":[]}'
    headers: Mapping[str, str] = field(default_factory=dict)


HANG_UP: Final = Answer(status=0)  # close the connection without an answer
GARBLE: Final = Answer(status=-2)  # write what is no TLS into the connection
HANG: Final = Answer(status=-1)  # answer nothing until the server stops


def answer_json(status: int, **body: Any) -> Answer:
    return Answer(status, orjson.dumps(body))


@dataclass(frozen=True)
class Received:
    """A request as it arrived."""

    target: str
    headers: Mapping[str, str]
    body: bytes
    connection: tuple[str, int]


class Endpoint:
    """A running server: what it received, and what it answers next."""

    def __init__(self, port: int, scheme: str) -> None:
        self.port = port
        self.url = f"{scheme}://{LOOPBACK}:{port}"
        self.received: list[Received] = []
        self.answer: Callable[[Received], Answer] = lambda _: Answer()
        self.stopped = threading.Event()


class _Handler(BaseHTTPRequestHandler):
    endpoint: Endpoint  # set by the subclass of one server
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        server = self.endpoint
        body = self.rfile.read(int(self.headers.get("Content-Length", "0")))
        request = Received(self.path, dict(self.headers), body, self.client_address)
        server.received.append(request)
        self._send(server, server.answer(request))

    def _send(self, server: Endpoint, answer: Answer) -> None:
        if answer is HANG:
            server.stopped.wait(300)
        if answer is GARBLE:
            os.write(self.connection.fileno(), b"HTTP/1.1 200 OK\r\n\r\n")
        if answer.status <= 0:
            self.close_connection = True
            return
        self.send_response(answer.status)
        for name, value in {"Content-Length": str(len(answer.body)), **answer.headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(answer.body)

    def do_CONNECT(self) -> None:
        self.endpoint.received.append(
            Received(self.path, dict(self.headers), b"", self.client_address)
        )
        host, _, port = self.path.partition(":")
        self.close_connection = True
        if host != LOOPBACK:  # no test reaches further
            self.send_error(502)
            return
        with socket.create_connection((host, int(port)), timeout=50) as far:
            self.send_response(200)
            self.end_headers()
            _relay(self.connection, far)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  the base class's name
        """Say nothing: tests read what was received."""


def _relay(near: socket.socket, far: socket.socket) -> None:
    while True:
        readable, _, _ = select.select([near, far], [], [], 50)
        for one in readable:
            content = one.recv(65_536)
            if not content:
                return
            (far if one is near else near).sendall(content)
        if not readable:
            return


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Clients that break off are what some tests are about."""


@contextmanager
def endpoint(tls: ssl.SSLContext | None = None) -> Iterator[Endpoint]:
    """Run an endpoint on a free port; it answers without items until told otherwise."""

    class Handler(_Handler):
        pass

    server = _Server((LOOPBACK, 0), Handler)
    if tls is not None:
        server.socket = tls.wrap_socket(
            server.socket, server_side=True, do_handshake_on_connect=False
        )
    running = Endpoint(server.server_address[1], "http" if tls is None else "https")
    Handler.endpoint = running
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield running
    finally:
        running.stopped.set()
        server.shutdown()
        server.server_close()
        thread.join()


# A proxy gets the same requests, with whole URLs or CONNECT.
proxy = endpoint
