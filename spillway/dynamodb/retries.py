"""How long to wait before the next attempt, and reads that are tried again until a deadline."""

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from spillway.dynamodb.port import Call, OutcomeUnknownError, ThrottledError, UnreachableError
from spillway.runtime import Runtime

__all__ = ["DeadlinePassedError", "call_until", "full_jitter", "retry_until"]

T = TypeVar("T")


def full_jitter(
    attempt: int, random: Callable[[], float], *, base: float = 0.05, cap: float = 2.0
) -> float:
    """Return seconds to wait before attempt `attempt` (1 is the first retry).

    Uniform in [0, min(cap, base x 2^n)).

    Full jitter, since clients that wait the same time collide again (AWS Architecture Blog,
    "Exponential backoff and jitter").
    """
    return random() * min(cap, base * 2.0 ** min(attempt, 30))


class DeadlinePassedError(UnreachableError):
    """The request was not sent, since the time given for it was up."""

    def __init__(self) -> None:
        super().__init__("DeadlinePassed", "not sent: the time given for it is up")


def call_until(deadline: float, call: Call, runtime: Runtime) -> Call:
    """Return a port that sends nothing after `deadline`, in seconds of `runtime.monotonic`.

    A request under way at the deadline still ends as it does.
    """

    def guarded(operation: str, request: Mapping[str, Any], /) -> dict[str, Any]:
        if runtime.monotonic() >= deadline:
            raise DeadlinePassedError
        return call(operation, request)

    return guarded


def retry_until(deadline: float, task: Callable[[], T], runtime: Runtime) -> T:
    """Run a read again while it throttles or fails on its way.

    Raises its last error at the deadline.

    `deadline` is in seconds of `runtime.monotonic`; a task whose turn comes after it is not begun,
    so that many tasks, a few at a time, end together. Not for writes: these answer event by event.
    """
    attempt = 0
    while True:
        if runtime.monotonic() >= deadline:
            raise DeadlinePassedError
        try:
            return task()
        except (ThrottledError, UnreachableError, OutcomeUnknownError):
            attempt += 1
            delay = full_jitter(attempt, runtime.random)
            if runtime.monotonic() + delay >= deadline:
                raise
        runtime.sleep(delay)
