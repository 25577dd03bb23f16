"""A clock that tests move, and a runtime without threads, waits or chance."""

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from email.utils import formatdate
from typing import Any, TypeVar

from spillway import Runtime
from spillway.dynamodb.port import Call

__all__ = ["NOON", "FakeClock", "dated", "fake_runtime", "one_by_one", "undated"]

T = TypeVar("T")

NOON = datetime(2026, 6, 1, 12, tzinfo=UTC)


@dataclass
class FakeClock:
    """Wall clock and monotonic clock in one; sleeping moves it."""

    seconds: float = NOON.timestamp()
    naps: list[float] = field(default_factory=list)

    def now(self) -> float:
        return self.seconds

    def sleep(self, seconds: float) -> None:
        self.naps.append(seconds)
        self.seconds += seconds

    @property
    def time(self) -> datetime:
        return datetime.fromtimestamp(self.seconds, UTC)

    def forward(self, by: timedelta) -> None:
        self.seconds += by.total_seconds()


def dated(response: dict[str, Any], seconds: float) -> dict[str, Any]:
    """Return the response with the Date header, as DynamoDB's carry it."""
    return response | {
        "ResponseMetadata": {"HTTPHeaders": {"date": formatdate(seconds, usegmt=True)}}
    }


def undated(call: Call) -> Call:
    """Return a port without the Date header: a real engine's, for stores with a fake clock."""

    def send(operation: str, request: Mapping[str, Any], /) -> dict[str, Any]:
        response = call(operation, request)
        response.pop("ResponseMetadata", None)
        return response

    return send


def one_by_one(tasks: Sequence[Callable[[], T]], /) -> list[T]:
    """Run tasks in the caller, all of them even if one fails, as the library's threads do."""
    results: list[T] = []
    error: Exception | None = None
    for task in tasks:
        try:
            results.append(task())
        except Exception as raised:  # noqa: BLE001  raised below
            error = error or raised
    if error is not None:
        raise error
    return results


def fake_runtime(clock: FakeClock, random: Callable[[], float] = lambda: 0.5) -> Runtime:
    numbers = itertools.count()
    return Runtime(
        now=clock.now,
        monotonic=clock.now,
        sleep=clock.sleep,
        random=random,
        new_id=lambda: f"made-{next(numbers)}",
        parallel=one_by_one,
    )
