"""What the library takes from the outside world: clocks, sleep, randomness, ids and threads, as arguments."""

import random
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Protocol, TypeVar

import uuid_utils

__all__ = ["Parallel", "Runtime", "in_threads"]

T = TypeVar("T")


class Parallel(Protocol):
    """Run tasks, at the same time where it can; results in order. The first error is raised after all have ended."""

    def __call__(self, tasks: Sequence[Callable[[], T]], /) -> list[T]:
        """Run all tasks and return their results."""
        ...


def in_threads(workers: int) -> Parallel:
    """Return a Parallel over a pool of threads that starts with its first use; one task runs in the caller."""
    pools: list[Executor] = []

    def run(tasks: Sequence[Callable[[], T]], /) -> list[T]:
        if len(tasks) <= 1:
            return [task() for task in tasks]
        if not pools:
            pools.append(ThreadPoolExecutor(workers, thread_name_prefix="spillway"))
        futures = [pools[0].submit(task) for task in tasks[1:]]
        results, error = [], None
        for outcome in (tasks[0], *(future.result for future in futures)):
            try:
                results.append(outcome())
            except Exception as raised:  # noqa: BLE001  every task must have ended before one error leaves
                error = error or raised
        if error is not None:
            raise error
        return results

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
    parallel: Parallel = field(default_factory=lambda: in_threads(8))
