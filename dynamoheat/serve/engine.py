"""A client of any DynamoDB-compatible engine."""

import ssl
from collections.abc import Mapping
from types import TracebackType
from typing import Final, Self

from aiohttp import ClientError, ClientSession, ClientTimeout, DummyCookieJar, web
from multidict import CIMultiDict
from yarl import URL

from dynamoheat.serve.connection_pool import EngineConnectionPool
from dynamoheat.serve.wire import EndpointCall, Reply, in_shape

__all__ = ["EngineClient"]

# Of one hop alone, or what each hop states for itself.
_HOP_BY_HOP: Final = frozenset({
    "accept-encoding", "connection", "content-encoding", "content-length", "date", "expect", "host",
    "keep-alive", "server", "te", "trailer", "transfer-encoding", "upgrade",
})  # fmt: skip


class EngineClient:
    """Sends calls to an engine, over connections that are kept."""

    def __init__(self, url: URL, *, patience: float) -> None:
        """Take the engine's address, and the seconds that it may take to accept a connection."""
        tls = ssl.create_default_context() if url.scheme == "https" else None
        self._url = url
        self._link = EngineConnectionPool(
            str(url.host), int(url.port or 80), tls=tls, patience=patience
        )

    async def __aenter__(self) -> Self:
        timeout = ClientTimeout(total=60.0)
        self._session = ClientSession(cookie_jar=DummyCookieJar(), timeout=timeout)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._link.close()
        await self._session.close()

    async def send(self, call: EndpointCall) -> Reply:
        """Return the engine's reply to a call, in DynamoDB's shape whatever happens.

        One that is out of reach gives an answer with status 503: nothing was written. One that breaks off
        gives 500: the outcome is unknown.
        """
        return in_shape(await self._link.send(call))

    async def relay(self, request: web.BaseRequest, body: bytes) -> web.Response:
        """Answer a request that is no call of DynamoDB with what the engine says."""
        url = self._url.join(URL(request.raw_path, encoded=True))
        try:
            async with self._session.request(
                request.method,
                url,
                data=body,
                headers=_kept(request.headers),
                allow_redirects=False,
            ) as answer:
                return web.Response(
                    status=answer.status, body=await answer.read(), headers=_kept(answer.headers)
                )
        except (ClientError, TimeoutError) as error:
            return web.json_response({"message": f"The engine failed: {error}"}, status=502)


def _kept(headers: Mapping[str, str]) -> CIMultiDict[str]:
    return CIMultiDict(
        (name, value) for name, value in headers.items() if name.lower() not in _HOP_BY_HOP
    )
