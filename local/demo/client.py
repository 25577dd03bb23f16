"""A client of the HTTP API: writes that lose and duplicate nothing, and reads of all pages."""

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal, NotRequired, Protocol, TypedDict

import aiohttp
import orjson

__all__ = [
    "ApiAnswer",
    "ApiError",
    "Client",
    "ClientEvent",
    "ClientRefusal",
    "Observe",
    "Order",
    "Retries",
    "Send",
    "Source",
    "Transport",
]

Order = Literal["asc", "desc"]
Source = Literal["auto", "table", "index"]

Observe = Callable[[str, float], None]
"""Receives the method and the seconds of each request that was answered."""

_ALL_TIME: Final = ("0001-01-01T00:00:00Z", "9999-12-31T23:59:59.999999Z")
# Throttled, and every way in which a server, a gateway or the network can lose an answer.
_MAX_MESSAGE: Final = 500  # characters
_RETRYABLE: Final = frozenset({408, 429, 500, 502, 503, 504})
_UNANSWERED: Final = 0
_TIMEOUT: Final = aiohttp.ClientTimeout(total=60, connect=30)  # one second is usual


class ClientEvent(TypedDict):
    """An event as the API takes and returns it: series, time, sharding key and id identify it."""

    series: str
    time: str
    id: str
    payload: dict[str, Any]
    sharding_key: NotRequired[str]


@dataclass(frozen=True, slots=True)
class ClientRefusal:
    """An event that is not known to be stored, and why."""

    event: ClientEvent
    code: str
    message: str


@dataclass(frozen=True, slots=True)
class ApiAnswer:
    """A status (0 without an answer), the decoded body, and the seconds of Retry-After."""

    status: int
    body: Any
    retry_after: float | None = None

    @property
    def is_retryable(self) -> bool:
        """Whether the same request may succeed later."""
        return self.status in _RETRYABLE or self.status == _UNANSWERED

    @property
    def code(self) -> str:
        """The error's code, for programs."""
        return str(self._error.get("code", f"http_{self.status}"))

    @property
    def message(self) -> str:
        """The error's message, for people: one line, whoever answered."""
        text = " ".join(str(self._error.get("message", self.body)).split())
        return text if len(text) <= _MAX_MESSAGE else f"{text[:_MAX_MESSAGE]}…"

    @property
    def _error(self) -> dict[str, Any]:
        if not isinstance(self.body, dict):
            return {}
        error = self.body.get("error", self.body)  # API Gateway's own errors are flat
        return error if isinstance(error, dict) else {}


class ApiError(Exception):
    """The API refused a request, or failed."""

    def __init__(self, answer: ApiAnswer) -> None:
        """Take the answer with the error."""
        super().__init__(f"{answer.code} (status {answer.status}): {answer.message}")
        self.status = answer.status
        self.code = answer.code


class Send(Protocol):
    """A function that sends requests to the API."""

    async def __call__(
        self, method: str, path: str, *, query: Mapping[str, str] | None = None, body: Any = None
    ) -> ApiAnswer:
        """Send one request. A failure of the network is an answer with status 0."""
        ...


class Transport:
    """HTTP requests to the API at a base URL."""

    def __init__(
        self, session: aiohttp.ClientSession, url: str, clock: Callable[[], float], observe: Observe
    ) -> None:
        """Take the connections, the base URL, and what receives the time of each request."""
        self._session = session
        self._url = url
        self._clock = clock
        self._observe = observe

    async def send(
        self, method: str, path: str, *, query: Mapping[str, str] | None = None, body: Any = None
    ) -> ApiAnswer:
        """Send one request. A failure of the network is an answer with status 0."""
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
            return ApiAnswer(_UNANSWERED, f"no answer: {error!r}")
        self._observe(method, self._clock() - began)
        return ApiAnswer(response.status, _decode(text), _retry_after(response.headers))


@dataclass(frozen=True, slots=True, kw_only=True)
class Retries:
    """How long a call is retried, and the pauses: what the server asks for, plus full jitter."""

    timeout_seconds: float = 600.0  # guards against hanging; a minute is usual at most
    first_pause_seconds: float = 0.1
    max_pause_seconds: float = 5.0
    clock: Callable[[], float] = field(default_factory=lambda: asyncio.get_running_loop().time)
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    random: Callable[[], float] = random.random  # noqa: TID251  the default of an argument


class Client:
    """Calls the API, with retries where they can help."""

    def __init__(self, send: Send, retries: Retries) -> None:
        """Take what sends requests (`Transport.send`), and how to retry."""
        self._send = send
        self._retries = retries

    async def write(self, events: Sequence[ClientEvent]) -> list[ClientRefusal]:
        """Write up to 1,000 events. Return those that are not stored; all others are.

        Rejections that the API calls retryable are sent again, and so are whole requests that were
        throttled or whose answer was lost. Every event has an id, so an event that was stored
        although its answer was lost is the same event the second time.

        Raises:
            ApiError: The API refuses the whole request.
        """
        backoff = _Backoff(self._retries)
        refused: list[ClientRefusal] = []
        pending = list(events)
        while True:
            answer = await self._send("POST", "/v1/events", body={"events": pending})
            retryable, final = _refusals(answer, pending)
            refused += final
            if not retryable or not await backoff.pause(answer.retry_after):
                return refused + retryable
            pending = [each.event for each in retryable]

    async def pages(  # noqa: PLR0913  the parameters of the API's query
        self,
        series: str,
        *,
        limit: int = 1_000,
        order: Order = "asc",
        within: tuple[str, str] = _ALL_TIME,
        sharding_key: str | None = None,
        source: Source = "auto",
        consistent: bool = True,
    ) -> AsyncIterator[list[ClientEvent]]:
        """Yield a series' events in pages of up to `limit`, from `within[0]` to before `within[1]`.

        Raises:
            ApiError: The API refuses, or fails until the retries' timeout.
        """
        query = {
            "series": series, "start": within[0], "end": within[1], "limit": str(limit),
            "order": order, "source": source, "consistent": "true" if consistent else "false",
        }  # fmt: skip
        if sharding_key is not None:
            query["sharding_key"] = sharding_key
        cursor: str | None = ""
        while cursor is not None:
            page = await self._get("/v1/events", {**query, "cursor": cursor} if cursor else query)
            cursor = page["cursor"]
            yield page["events"]

    async def one(
        self, series: str, time: str, event_id: str, *, sharding_key: str | None = None
    ) -> ClientEvent | None:
        """Return one event, None where it does not exist.

        Raises:
            ApiError: As `pages`.
        """
        query = {"series": series, "time": time, "id": event_id, "consistent": "true"}
        if sharding_key is not None:
            query["sharding_key"] = sharding_key
        try:
            event: ClientEvent = await self._get("/v1/events/one", query)
        except ApiError as error:
            if error.code == "unknown_event":
                return None
            raise
        return event

    async def layout(self, series: str) -> dict[str, Any] | None:
        """Return the layout of a series, None before its first write.

        Raises:
            ApiError: As `pages`.
        """
        try:
            layout: dict[str, Any] = await self._get("/v1/layout", {"series": series})
        except ApiError as error:
            if error.code == "unknown_series":
                return None
            raise
        return layout

    async def _get(self, path: str, query: dict[str, str]) -> Any:
        backoff = _Backoff(self._retries)
        while True:
            answer = await self._send("GET", path, query=query)
            if answer.status == 200:
                return answer.body
            if not answer.is_retryable or not await backoff.pause(answer.retry_after):
                raise ApiError(answer)


class _Backoff:
    """The pauses between the attempts of one call."""

    def __init__(self, retries: Retries) -> None:
        self._retries = retries
        self._deadline = retries.clock() + retries.timeout_seconds
        self._attempts = 0

    async def pause(self, retry_after: float | None) -> bool:
        """Wait before the next attempt. Return False at once if the timeout would pass first.

        The server asks other clients for the same wait, so a random part is added lest all come
        back together.
        """
        retries = self._retries
        backoff = min(retries.max_pause_seconds, retries.first_pause_seconds * 2**self._attempts)
        delay = (retry_after or 0.0) + retries.random() * backoff
        self._attempts += 1
        if retries.clock() + delay >= self._deadline:
            return False
        await retries.sleep(delay)
        return True


def _refusals(
    answer: ApiAnswer, sent: Sequence[ClientEvent]
) -> tuple[list[ClientRefusal], list[ClientRefusal]]:
    """Return the events that may be sent again, and those that may not. All others are stored."""
    if not (isinstance(answer.body, dict) and "rejected" in answer.body):
        if not answer.is_retryable:
            raise ApiError(answer)
        return [ClientRefusal(event, answer.code, answer.message) for event in sent], []
    retryable: list[ClientRefusal] = []
    final: list[ClientRefusal] = []
    for each in answer.body["rejected"]:
        refusal = ClientRefusal(sent[each["index"]], each["code"], each["message"])
        (retryable if each["retryable"] else final).append(refusal)
    return retryable, final


def _decode(text: bytes) -> Any:
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        return text.decode(errors="replace")


def _retry_after(headers: Mapping[str, str]) -> float | None:
    """Return the seconds of Retry-After. The API does not use its other form, a date."""
    value = headers.get("Retry-After", "")
    return float(value) if value.isdecimal() else None
