import pytest

from spillway.dynamodb.port import (
    OutcomeUnknownError,
    RefusedError,
    StorageError,
    ThrottledError,
    UnreachableError,
)
from spillway.dynamodb.retries import full_jitter, retry_until
from tests.support.fakes import FakeClock, fake_runtime


@pytest.mark.parametrize(
    ("attempt", "longest"), [(1, 0.1), (2, 0.2), (5, 1.6), (6, 2.0), (10, 2.0), (10_000, 2.0)]
)
def test_waits_are_uniform_below_a_bound_that_doubles_up_to_a_cap(
    attempt: int, longest: float
) -> None:
    assert full_jitter(attempt, lambda: 0.0) == 0
    assert full_jitter(attempt, lambda: 0.5) == pytest.approx(longest / 2)
    assert full_jitter(attempt, lambda: 1.0) == pytest.approx(longest)


@pytest.mark.parametrize("kind", [ThrottledError, UnreachableError, OutcomeUnknownError])
def test_a_read_that_fails_on_its_way_is_tried_again(kind: type[StorageError]) -> None:
    clock = FakeClock()
    outcomes = iter([kind("E", ""), kind("E", ""), None])

    def task() -> str:
        error = next(outcomes)
        if error is not None:
            raise error
        return "done"

    assert retry_until(clock.seconds + 10, task, fake_runtime(clock)) == "done"
    assert clock.naps == pytest.approx([0.05, 0.1])


def test_a_refused_read_is_not_tried_again() -> None:
    clock = FakeClock()

    def task() -> str:
        raise RefusedError("AccessDeniedException", "no")

    with pytest.raises(RefusedError):
        retry_until(clock.seconds + 10, task, fake_runtime(clock))
    assert clock.naps == []


def test_the_last_error_leaves_before_the_deadline_would_pass() -> None:
    clock = FakeClock()
    deadline = clock.seconds + 3

    def task() -> str:
        raise ThrottledError("ThrottlingException", f"attempt {len(clock.naps)}")

    with pytest.raises(ThrottledError) as caught:
        retry_until(deadline, task, fake_runtime(clock))
    assert caught.value.message == f"attempt {len(clock.naps)}"
    assert deadline - 1 < clock.seconds < deadline


def test_nothing_is_sent_once_the_deadline_has_passed() -> None:
    clock = FakeClock()
    sent: list[str] = []
    with pytest.raises(UnreachableError, match="DeadlinePassed"):
        retry_until(clock.seconds, lambda: sent.append("sent"), fake_runtime(clock))
    assert sent == []
