"""Ways to call the deployed API: a client with retries, and single requests as they are."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from http.client import HTTPConnection
from time import perf_counter
from typing import Any, NamedTuple, TypeVar
from urllib.parse import urlencode, urlsplit

import aiohttp

from local.demo.client import Client
from local.demo.retries import Retries
from local.demo.transport import Transport

__all__ = ["Response", "connected", "request", "with_client"]

T = TypeVar("T")


@asynccontextmanager
async def connected(url: str) -> AsyncIterator[Client]:
    async with aiohttp.ClientSession() as session:
        transport = Transport(session, url, perf_counter, lambda *_: None)
        yield Client(transport.send, Retries())


def with_client(url: str, use: Callable[[Client], Awaitable[T]]) -> T:
    async def run() -> T:
        async with connected(url) as client:
            return await use(client)

    return asyncio.run(run())


class Response(NamedTuple):
    status: int
    headers: Mapping[str, str]
    body: Any


def request(
    url: str,
    method: str,
    path: str,
    *,
    query: Mapping[str, str] | None = None,
    body: bytes | None = None,
    headers: Mapping[str, str] | None = None,
) -> Response:
    """Send one request without any retry; a body of lines comes back as a list."""
    base = urlsplit(url)
    connection = HTTPConnection(base.netloc, timeout=600)
    try:
        target = base.path + path + (f"?{urlencode(query)}" if query else "")
        connection.request(method, target, body, dict(headers or {}))
        answer = connection.getresponse()
        found, content = dict(answer.getheaders()), answer.read()
        lines = "ndjson" in answer.headers.get("content-type", "")
        parsed = (
            [json.loads(line) for line in content.splitlines()] if lines else json.loads(content)
        )
        return Response(answer.status, found, parsed)
    finally:
        connection.close()
