"""One HTTP request to the API and what came back, failures of the network included."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Protocol

import aiohttp
import orjson

__all__ = ["Answer", "ApiError", "Observe", "Send", "Transport"]

Observe = Callable[[str, float], None]
"""Is told the method and the seconds of each request that was answered."""

# Throttled, and every way in which a server, a gateway or the network can lose an answer.
_RETRYABLE: Final = frozenset({408, 429, 500, 502, 503, 504})
_UNANSWERED: Final = 0
_MAX_MESSAGE: Final = 500  # characters
_TIMEOUT: Final = aiohttp.ClientTimeout(total=35, connect=5)  # API Gateway gives up after 30 s


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer: status (0 where none came), decoded body, seconds to wait if the API asked for it."""

    status: int
    body: Any
    retry_after: float | None = None

    @property
    def retryable(self) -> bool:
        """Whether the same request may succeed later."""
        return self.status in _RETRYABLE or self.status == _UNANSWERED

    @property
    def code(self) -> str:
        """What went wrong, for programs."""
        return str(self._error.get("code", f"http_{self.status}"))

    @property
    def message(self) -> str:
        """What went wrong, for people: one line, whoever answered."""
        text = " ".join(str(self._error.get("message", self.body)).split())
        return text if len(text) <= _MAX_MESSAGE else f"{text[:_MAX_MESSAGE]}…"

    @property
    def _error(self) -> dict[str, Any]:
        if not isinstance(self.body, dict):
            return {}
        error = self.body.get("error", self.body)  # API Gateway's own errors are flat
        return error if isinstance(error, dict) else {}


class ApiError(Exception):
    """The API refused or failed."""

    def __init__(self, answer: Answer) -> None:
        """Take the answer that says so."""
        super().__init__(f"{answer.code} (status {answer.status}): {answer.message}")
        self.status = answer.status
        self.code = answer.code


class Send(Protocol):
    """A way to the API."""

    async def __call__(
        self, method: str, path: str, *, query: Mapping[str, str] | None = None, body: Any = None
    ) -> Answer:
        """Send one request; a failure of the network is an answer too, with status 0."""
        ...


class Transport:
    """Requests to the API at a base URL."""

    def __init__(
        self, session: aiohttp.ClientSession, url: str, clock: Callable[[], float], observe: Observe
    ) -> None:
        """Take the connections to use, the base URL, and who wants to know how long requests took."""
        self._session = session
        self._url = url
        self._clock = clock
        self._observe = observe

    async def send(
        self, method: str, path: str, *, query: Mapping[str, str] | None = None, body: Any = None
    ) -> Answer:
        """Send one request; a failure of the network is an answer too, with status 0."""
        content = None if body is None else orjson.dumps(body)
        headers = {} if content is None else {"Content-Type": "application/json"}
        began = self._clock()
        try:
            async with self._session.request(
                method, self._url + path, params=query, data=content, headers=headers,
                timeout=_TIMEOUT,
            ) as response:  # fmt: skip
                text = await response.read()
        except (aiohttp.ClientError, TimeoutError) as error:
            return Answer(_UNANSWERED, f"no answer: {error!r}")
        self._observe(method, self._clock() - began)
        return Answer(response.status, _decoded(text), _seconds(response.headers))


def _decoded(text: bytes) -> Any:
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        return text.decode(errors="replace")


def _seconds(headers: Mapping[str, str]) -> float | None:
    """Return the seconds of Retry-After; its other form, a date, is not used by the API."""
    value = headers.get("Retry-After", "")
    return float(value) if value.isdecimal() else None
