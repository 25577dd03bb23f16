import threading
import time
from collections.abc import Callable

import pytest

from spillway.runtime import Runtime, in_threads


def _fail(message: str) -> Callable[[], int]:
    def task() -> int:
        raise ValueError(message)

    return task


def test_results_come_in_the_order_of_the_tasks() -> None:
    parallel = in_threads(4)
    assert parallel([lambda n=n: n * n for n in range(50)]) == [n * n for n in range(50)]  # type: ignore[misc]
    assert parallel([]) == []


def test_tasks_run_at_the_same_time() -> None:
    meeting = threading.Barrier(3, timeout=100)
    assert sorted(in_threads(2)([meeting.wait] * 3)) == [0, 1, 2]


def test_one_task_runs_in_its_callers_thread() -> None:
    assert in_threads(4)([threading.get_ident]) == [threading.get_ident()]


def test_the_first_error_leaves_once_every_task_has_ended() -> None:
    ended = threading.Event()

    def late() -> int:
        time.sleep(0.05)  # noqa: TID251  another task must fail before this one ends
        ended.set()
        return 1

    with pytest.raises(ValueError, match="first"):
        in_threads(4)([_fail("first"), late, _fail("second")])
    assert ended.is_set()


def test_the_real_clocks_and_sources_of_chance_are_the_default() -> None:
    runtime = Runtime()
    before = runtime.monotonic()
    runtime.sleep(0)
    assert runtime.monotonic() >= before
    assert runtime.now() > 1_600_000_000
    assert 0 <= runtime.random() < 1
    assert len({runtime.new_id() for _ in range(100)}) == 100
