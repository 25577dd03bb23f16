"""Sends a request on to the emulated AWS as it came, and its answer back, both as streams."""

from collections.abc import Mapping
from types import TracebackType
from typing import Self

from aiohttp import (
    ClientError,
    ClientResponse,
    ClientSession,
    ClientTimeout,
    DummyCookieJar,
    TCPConnector,
    web,
)
from multidict import CIMultiDict, CIMultiDictProxy
from yarl import URL

from local.calls import EndpointCall, Reply, refusal
from local.children import LOOPBACK

__all__ = ["Passthrough"]

_HOP_BY_HOP = frozenset({
    "connection", "expect", "keep-alive", "proxy-authenticate", "proxy-authorization",
    "proxy-connection", "te", "trailer", "transfer-encoding", "upgrade",
})  # fmt: skip
_ADDED_BY_CLIENT = ("Accept", "Accept-Encoding", "Content-Type", "User-Agent")


class Passthrough:
    """A client of the emulated AWS on a port of the loopback address."""

    def __init__(self, port: int) -> None:
        """Take the port; connect only when entered."""
        self._origin = f"http://{LOOPBACK}:{port}"

    async def __aenter__(self) -> Self:
        self._session = ClientSession(
            auto_decompress=False,
            connector=TCPConnector(limit=0),
            cookie_jar=DummyCookieJar(),
            skip_auto_headers=_ADDED_BY_CLIENT,
            timeout=ClientTimeout(total=None),
        )
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self._session.close()

    async def relay(self, request: web.BaseRequest, path: str | None = None) -> web.StreamResponse:
        """Answer a request with what the emulated AWS says, `path` in place of its own if given."""
        try:
            answer = await self._session.request(
                request.method,
                URL(self._origin + (path or request.raw_path), encoded=True),
                headers=_without(request.headers),
                data=request.content if request.body_exists else None,
                allow_redirects=False,
            )
        except ClientError as error:
            return web.json_response({"message": f"The emulated AWS failed: {error}"}, status=502)
        async with answer:
            return await _stream(request, answer)

    async def send(self, call: EndpointCall, path: str = "/") -> Reply:
        """Return the emulated AWS's reply to a call that was read whole."""
        headers = _without(call.headers)
        headers["Content-Length"] = str(len(call.body))
        url = URL(self._origin + path, encoded=True)
        try:
            async with self._session.post(url, data=call.body, headers=headers) as answer:
                kept = {"Content-Type": answer.headers.get("Content-Type", "")}
                return Reply(answer.status, await answer.read(), kept)
        except ClientError as error:
            return refusal(500, "InternalServerError", f"The emulated AWS failed: {error}")


async def _stream(request: web.BaseRequest, answer: ClientResponse) -> web.StreamResponse:
    response = web.StreamResponse(
        status=answer.status, reason=answer.reason, headers=_without(answer.headers)
    )
    await response.prepare(request)
    async for chunk in answer.content.iter_any():
        await response.write(chunk)
    await response.write_eof()
    return response


def _without(headers: Mapping[str, str] | CIMultiDictProxy[str]) -> CIMultiDict[str]:
    return CIMultiDict(
        (name, value) for name, value in headers.items() if name.lower() not in _HOP_BY_HOP
    )
