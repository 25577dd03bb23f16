"""A stand-in for the API: plays answers, remembers requests."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from local.demo.client import ApiAnswer, Client, ClientEvent, Retries

__all__ = ["Played", "Request", "accept", "client_of", "event", "reject"]


class Request(NamedTuple):
    method: str
    path: str
    query: Mapping[str, str]
    body: Any


@dataclass
class Played:
    """Answers requests from a list; time passes only in sleeps."""

    answers: list[ApiAnswer]
    requests: list[Request] = field(default_factory=list)
    naps: list[float] = field(default_factory=list)

    async def send(
        self, method: str, path: str, *, query: Mapping[str, str] | None = None, body: Any = None
    ) -> ApiAnswer:
        self.requests.append(Request(method, path, query or {}, body))
        return self.answers.pop(0)

    async def sleep(self, seconds: float) -> None:
        self.naps.append(seconds)

    @property
    def sent_ids(self) -> list[list[str]]:
        return [[each["id"] for each in request.body["events"]] for request in self.requests]


def client_of(played: Played, *, timeout_seconds: float = 60.0, random: float = 0.0) -> Client:
    retries = Retries(
        timeout_seconds=timeout_seconds,
        clock=lambda: sum(played.naps),
        sleep=played.sleep,
        random=lambda: random,
    )
    return Client(played.send, retries)


def event(event_id: str, minute: int = 0) -> ClientEvent:
    return {
        "series": "ORD",
        "time": f"2001-01-01T00:{minute:02}:00.000000Z",
        "id": event_id,
        "payload": {"delay": minute},
    }


def accept(count: int) -> ApiAnswer:
    return ApiAnswer(200, {"accepted": count, "rejected": []})


def reject(
    status: int, rejections: Sequence[tuple[int, str, bool]], retry_after: float | None = None
) -> ApiAnswer:
    rejected = [
        {"index": index, "code": code, "message": f"events[{index}]", "retryable": retryable}
        for index, code, retryable in rejections
    ]
    return ApiAnswer(status, {"accepted": 0, "rejected": rejected}, retry_after)
