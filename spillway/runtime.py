"""What the library takes from the outside world.

Clocks, sleep, randomness, ids and threads, as arguments.
"""

import random
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Generic, Protocol, TypeVar

import uuid_utils

__all__ = ["Parallel", "Runtime", "in_threads"]

T = TypeVar("T")


class Parallel(Protocol):
    """Run tasks, at the same time where it can; results in order.

    The first error is raised after all have ended.
    """

    def __call__(self, tasks: Sequence[Callable[[], T]], /) -> list[T]:
        """Run all tasks and return their results."""
        ...


class _Round(Generic[T]):
    """Tasks that several threads work off together, each taking one after the other."""

    def __init__(self, tasks: Sequence[Callable[[], T]]) -> None:
        self._rest = enumerate(tasks)  # handing out its next item is atomic
        self._results: dict[int, T] = {}
        self._errors: dict[int, Exception] = {}

    def work(self) -> None:
        """Carry out tasks until none is left."""
        for at, task in self._rest:
            try:
                self._results[at] = task()
            except Exception as error:  # noqa: BLE001  raised once every task has ended
                self._errors[at] = error

    def outcome(self) -> list[T]:
        """Return the results in order, or raise the first error."""
        if self._errors:
            raise self._errors[min(self._errors)]
        return [self._results[at] for at in range(len(self._results))]


def in_threads(workers: int) -> Parallel:
    """Return a Parallel over a pool of threads that starts with its first use.

    The caller works, too.

    Each thread takes task after task, since handing every task over costs more than most tasks do.
    """
    start = threading.Lock()
    pools: list[ThreadPoolExecutor] = []

    def run(tasks: Sequence[Callable[[], T]], /) -> list[T]:
        if len(tasks) <= 1:
            return [task() for task in tasks]
        with start:
            if not pools:
                pools.append(ThreadPoolExecutor(workers, thread_name_prefix="spillway"))
        together = _Round(tasks)
        helpers = [pools[0].submit(together.work) for _ in range(min(workers, len(tasks) - 1))]
        together.work()
        for helper in helpers:
            if not helper.cancel():  # one that has not begun would find nothing left to do
                helper.result()
        return together.outcome()

    return run


def _uuid7() -> str:
    return str(uuid_utils.uuid7())


@dataclass(frozen=True, slots=True, kw_only=True)
class Runtime:
    """Clocks, sleep, randomness, ids and threads.

    Attributes:
        now: wall clock, epoch seconds.
        monotonic: clock for deadlines, seconds.
        sleep: waits seconds.
        random: uniform in [0, 1).
        new_id: an id for an event whose client sent none.
        parallel: runs requests at the same time.
    """

    now: Callable[[], float] = time.time  # noqa: TID251  the one place that names the real clock
    monotonic: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep  # noqa: TID251
    random: Callable[[], float] = random.random  # noqa: TID251
    new_id: Callable[[], str] = _uuid7
    parallel: Parallel = field(default_factory=lambda: in_threads(7))
