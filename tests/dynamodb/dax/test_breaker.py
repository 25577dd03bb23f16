import threading
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spillway import OutcomeUnknownError, RefusedError, ThrottledError, UnreachableError
from spillway.dynamodb.fallback import Breaker, Fallback
from tests.support.fakes import FakeClock

Response = dict[str, Any]
MOST, PAUSE = 3, 30.0


class Way:
    """A port that fails as long as it is told to."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.asked = 0
        self.failure: Exception | None = None

    def __call__(self, operation: str, request: Mapping[str, Any], /) -> Response:
        self.asked += 1
        if self.failure is not None:
            raise self.failure
        return {"from": self.name, "operation": operation, **request}


def _fallback(clock: FakeClock) -> tuple[Fallback, Way, Way]:
    first, second = Way("first"), Way("second")
    breaker = Breaker(clock.now, max_failures=MOST, pause=PAUSE)
    return Fallback(first, second, breaker), first, second


def _answers(call: Fallback, count: int = 1) -> list[str]:
    return [call("Query", {"n": n})["from"] for n in range(count)]


def test_the_second_way_is_not_asked_while_the_first_answers() -> None:
    call, _, second = _fallback(FakeClock())
    assert call("Query", {"a": 1}) == {"from": "first", "operation": "Query", "a": 1}
    assert (call.failures, second.asked) == (0, 0)


@pytest.mark.parametrize(
    "failure",
    [
        UnreachableError("DaxClientError", "no route"),
        OutcomeUnknownError("TimeoutError", ""),
        ThrottledError("ThrottlingException", ""),
        RefusedError("ValidationException", ""),
        ConnectionRefusedError(),
        TimeoutError(),
    ],
)
def test_whatever_fails_the_second_way_answers_and_it_is_counted(failure: Exception) -> None:
    call, first, _ = _fallback(FakeClock())
    first.failure = failure
    assert call("Query", {"a": 1}) == {"from": "second", "operation": "Query", "a": 1}
    assert call.failures == 1


def test_a_mistake_in_the_code_is_not_hidden() -> None:
    call, first, _ = _fallback(FakeClock())
    first.failure = TypeError("a mistake")
    with pytest.raises(TypeError):
        _answers(call)


def test_what_the_second_way_raises_is_raised() -> None:
    call, first, second = _fallback(FakeClock())
    first.failure, second.failure = OSError(), ThrottledError("ThrottlingException", "")
    with pytest.raises(ThrottledError):
        _answers(call)


def test_failures_in_a_row_begin_a_pause_and_others_do_not() -> None:
    clock = FakeClock()
    call, first, _ = _fallback(clock)
    for _ in range(5):
        first.failure = OSError()
        assert _answers(call, MOST - 1) == ["second"] * (MOST - 1)
        first.failure = None
        assert _answers(call) == ["first"]
    first.failure = OSError()
    _answers(call, MOST)
    first.failure = None
    assert _answers(call, 5) == ["second"] * 5
    assert call.failures == 5 * (MOST - 1) + MOST


def test_one_attempt_ends_the_pause_or_begins_another() -> None:
    clock = FakeClock()
    call, first, _ = _fallback(clock)
    first.failure = OSError()
    _answers(call, MOST)
    clock.sleep(PAUSE - 0.001)
    assert (_answers(call), first.asked) == (["second"], MOST)
    clock.sleep(0.001)
    _answers(call, 3)
    assert first.asked == MOST + 1
    first.failure = None
    clock.sleep(PAUSE)
    assert _answers(call, 3) == ["first"] * 3
    first.failure = OSError()
    _answers(call, MOST + 5)
    assert first.asked == MOST + 1 + 3 + MOST  # it counts from none again


def test_the_attempt_after_a_pause_is_made_by_one_thread() -> None:
    clock = FakeClock()
    breaker = Breaker(clock.now, max_failures=MOST, pause=PAUSE)
    for _ in range(MOST):
        breaker.failed()
    clock.sleep(PAUSE)
    assert [breaker.allows() for _ in range(4)] == [True, False, False, False]
    clock.sleep(PAUSE)  # whoever made it never came back
    assert breaker.allows()


def test_a_pause_begins_when_the_attempt_has_failed() -> None:
    clock = FakeClock()
    breaker = Breaker(clock.now, max_failures=MOST, pause=PAUSE)
    for _ in range(MOST):
        breaker.failed()
    clock.sleep(PAUSE)
    assert breaker.allows()
    clock.sleep(5)
    breaker.failed()
    clock.sleep(PAUSE - 1)
    assert not breaker.allows()
    clock.sleep(1)
    assert breaker.allows()


def test_no_failure_is_lost_among_threads() -> None:
    call, first, _ = _fallback(FakeClock())
    call = Fallback(first, Way("second"), Breaker(FakeClock().now, max_failures=10**9))
    first.failure = OSError()
    threads = [threading.Thread(target=_answers, args=(call, 500)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert call.failures == first.asked == 4_000


@given(st.lists(st.tuples(st.booleans(), st.floats(0, 40))))
def test_attempts_on_what_fails_are_as_few_as_pauses_allow(steps: list[tuple[bool, float]]) -> None:
    clock = FakeClock()
    call, first, _ = _fallback(clock)
    row, paused_until = 0, 0.0
    for works, wait in steps:
        clock.sleep(wait)
        first.failure = None if works else OSError()
        asked = first.asked
        answer = _answers(call)
        tried = row < MOST or clock.now() >= paused_until
        assert first.asked - asked == tried
        assert answer == ["first" if tried and works else "second"]
        if tried:
            row = 0 if works else row + 1
            paused_until = clock.now() + PAUSE
