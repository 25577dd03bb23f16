"""A client of the HTTP API: writes that lose nothing and double nothing, and pages to their end."""

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, NotRequired, TypedDict

from local.demo.retries import Retries
from local.demo.transport import Answer, ApiError, Send

__all__ = ["Client", "ClientEvent", "ClientRefusal", "Order", "Source"]

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
    answer: Answer, sent: Sequence[ClientEvent]
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
