import threading

from spillway.memo import IntervalLimiter, Memo, RateLimiter
from tests.support.fakes import FakeClock


def test_a_memo_gives_up_what_was_min_recently_used() -> None:
    memo: Memo[int] = Memo(max_entries=3)
    for number, key in enumerate("abc"):
        memo.put(key, number)
    assert memo.get("a") == 0
    memo.put("d", 3)
    assert memo.get("b") is None
    assert [memo.get(key) for key in "acd"] == [0, 2, 3]
    memo.discard("a")
    memo.discard("never there")
    assert (memo.get("a"), len(memo)) == (None, 2)


def test_a_memo_of_100_000_keys_holds_10_000() -> None:
    memo: Memo[int] = Memo()
    for number in range(100_000):
        memo.update(str(number), lambda value: (value or 0) + 1)
    assert len(memo) == 10_000
    assert memo.get("99999") == 1


def test_threads_that_update_one_key_lose_nothing() -> None:
    memo: Memo[int] = Memo()

    def count() -> None:
        for _ in range(2_000):
            memo.update("key", lambda value: (value or 0) + 1)

    threads = [threading.Thread(target=count) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert memo.get("key") == 16_000


def test_each_key_passes_once_an_interval() -> None:
    clock = FakeClock()
    limiter = IntervalLimiter(60, clock.now)
    assert limiter.may_pass("a")
    assert limiter.is_due("b")
    assert limiter.may_pass("b")
    clock.seconds += 59
    assert not limiter.is_due("a")
    assert not limiter.may_pass("a")
    clock.seconds += 1
    assert limiter.is_due("a")
    assert limiter.may_pass("a")
    assert not limiter.may_pass("a")


def test_a_bucket_passes_its_burst_and_then_its_rate() -> None:
    clock = FakeClock()
    limiter = RateLimiter(per_second=5, burst=3, monotonic=clock.now)
    assert [limiter.may_pass() for _ in range(4)] == [True, True, True, False]
    passed = 0
    for _ in range(100):
        clock.seconds += 0.1
        passed += limiter.may_pass()
    assert 49 <= passed <= 51
    clock.seconds += 1_000
    assert [limiter.may_pass() for _ in range(4)] == [True, True, True, False]
