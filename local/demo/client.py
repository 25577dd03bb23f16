"""API client."""

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
    "RetryBackoff",
    "Send",
    "Source",
    "Transport",
]


Observe = Callable[[str, float], None]
"""Is told the method and the seconds of each request that was answered."""

# Throttled, and every way in which a server, a gateway or the network can lose an answer.
_RETRYABLE: Final = frozenset({408, 429, 500, 502, 503, 504})
_UNANSWERED: Final = 0
_TIMEOUT: Final = aiohttp.ClientTimeout(total=35, connect=5)  # API Gateway gives up after 30 s


@dataclass(frozen=True, slots=True)
class ApiAnswer:
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
        """What went wrong, for people."""
        return str(self._error.get("message", self.body))

    @property
    def _error(self) -> dict[str, Any]:
        if not isinstance(self.body, dict):
            return {}
        error = self.body.get("error", self.body)  # API Gateway's own errors are flat
        return error if isinstance(error, dict) else {}


class ApiError(Exception):
    """The API refused or failed."""

    def __init__(self, answer: ApiAnswer) -> None:
        """Take the answer that says so."""
        super().__init__(f"{answer.code} (status {answer.status}): {answer.message}")
        self.status = answer.status
        self.code = answer.code


class Send(Protocol):
    """A way to the API."""

    async def __call__(
        self, method: str, path: str, *, query: Mapping[str, str] | None = None, body: Any = None
    ) -> ApiAnswer:
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
    ) -> ApiAnswer:
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
            return ApiAnswer(_UNANSWERED, f"no answer: {error!r}")
        self._observe(method, self._clock() - began)
        return ApiAnswer(response.status, _decoded(text), _seconds(response.headers))


def _decoded(text: bytes) -> Any:
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        return text.decode(errors="replace")


def _seconds(headers: Mapping[str, str]) -> float | None:
    """Return the seconds of Retry-After; its other form, a date, is not used by the API."""
    value = headers.get("Retry-After", "")
    return float(value) if value.isdecimal() else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Retries:
    """How long to try, in seconds, and the clock, sleep and randomness for it."""

    patience: float = 60.0
    first: float = 0.1
    longest: float = 5.0
    clock: Callable[[], float] = field(default_factory=lambda: asyncio.get_running_loop().time)
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    random: Callable[[], float] = random.random  # noqa: TID251  the default of an argument

    def start(self) -> "RetryBackoff":
        """Begin a call that may be tried more than once."""
        return RetryBackoff(self)


class RetryBackoff:
    """The pauses between the attempts of one call."""

    def __init__(self, retries: Retries) -> None:
        """Start the clock of the call's patience."""
        self._retries = retries
        self._deadline = retries.clock() + retries.patience
        self._attempts = 0

    async def pause(self, asked: float | None) -> bool:
        """Wait before the next attempt; False, at once, where patience would end first.

        `asked` is what the server asked for. Other clients were asked for the same, so a random part
        is added lest all come back together.
        """
        retries = self._retries
        backoff = min(retries.longest, retries.first * 2**self._attempts)
        delay = (asked or 0.0) + retries.random() * backoff
        self._attempts += 1
        if retries.clock() + delay >= self._deadline:
            return False
        await retries.sleep(delay)
        return True


Order = Literal["asc", "desc"]
Source = Literal["auto", "table", "index"]

_WHOLE: Final = ("0001-01-01T00:00:00Z", "9999-12-31T23:59:59.999999Z")


class ClientEvent(TypedDict):
    """An event as the API takes and gives it. Series, time, sharding key and id identify it."""

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


class Client:
    """Calls the API, with retries where they can help."""

    def __init__(self, send: Send, retries: Retries) -> None:
        """Take the way to the API (`Transport.send`), and how patiently to try."""
        self._send = send
        self._retries = retries

    async def write(self, events: Sequence[ClientEvent]) -> list[ClientRefusal]:
        """Write up to 1,000 events; return those that could not be stored, all others are.

        Only what may be stored later is sent again: rejections that the API calls retryable, and whole
        requests that were throttled or whose answer got lost. Since every event brings its id, one
        that was stored although its answer got lost is the same event the second time.

        Raises:
            ApiError: The API does not take the request at all.
        """
        pauses = self._retries.start()
        refused: list[ClientRefusal] = []
        pending = list(events)
        while True:
            answer = await self._send("POST", "/v1/events", body={"events": pending})
            again, final = _outcome(answer, pending)
            refused += final
            if not again or not await pauses.pause(answer.retry_after):
                return refused + again
            pending = [each.event for each in again]

    async def pages(  # noqa: PLR0913  the parameters of the API's query
        self,
        series: str,
        *,
        limit: int = 1_000,
        order: Order = "asc",
        within: tuple[str, str] = _WHOLE,
        sharding_key: str | None = None,
        read: Source = "auto",
        consistent: bool = True,
    ) -> AsyncIterator[list[ClientEvent]]:
        """Yield a series' events in pages of up to `limit`, from `within[0]` to before `within[1]`.

        Raises:
            ApiError: The API refuses, or fails for longer than the client's patience.
        """
        query = {
            "series": series, "from": within[0], "to": within[1], "limit": str(limit),
            "order": order, "read": read, "consistent": "true" if consistent else "false",
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
        """Return one event, None where there is no such.

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
        """Return the layout of a series as the API tells it, None before its first write.

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
        pauses = self._retries.start()
        while True:
            answer = await self._send("GET", path, query=query)
            if answer.status == 200:
                return answer.body
            if not answer.retryable or not await pauses.pause(answer.retry_after):
                raise ApiError(answer)


def _outcome(
    answer: ApiAnswer, sent: Sequence[ClientEvent]
) -> tuple[list[ClientRefusal], list[ClientRefusal]]:
    """Return what of a request may be tried again and what may not; all else is stored."""
    if isinstance(answer.body, dict) and "rejected" in answer.body:
        return _parted(answer.body["rejected"], sent)
    if not answer.retryable:
        raise ApiError(answer)
    return [ClientRefusal(event, answer.code, answer.message) for event in sent], []


def _parted(
    rejected: Sequence[dict[str, Any]], sent: Sequence[ClientEvent]
) -> tuple[list[ClientRefusal], list[ClientRefusal]]:
    again: list[ClientRefusal] = []
    final: list[ClientRefusal] = []
    for each in rejected:
        refusal = ClientRefusal(sent[each["index"]], each["code"], each["message"])
        (again if each["retryable"] else final).append(refusal)
    return again, final
