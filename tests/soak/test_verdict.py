"""The checker notices each way to break the rule, and blames nothing else."""

from collections.abc import Iterable

import pytest

from tests.soak.journal import Acknowledged, Entry, Failed, Identity, Read, Sent
from tests.soak.verdict import judge

TIMES = [f"2026-01-01T00:00:0{second}.000000Z" for second in range(6)]
A, B, C = (f"{TIMES[n]}#{n}" for n in (1, 2, 3))
KEYED = f"{TIMES[2]}#key#9"


def identities(*sort_keys: str) -> list[Identity]:
    return [("s", sort_key) for sort_key in sort_keys]


def written(*sort_keys: str, at: float = 1.0) -> list[Entry]:
    return [Sent(at - 0.5, identities(*sort_keys)), Acknowledged(at, identities(*sort_keys))]


def answer(*found: str, began: float = 2.0, **more: object) -> Read:
    fields = {"kind": "range", "series": "s", "start": TIMES[0], "end": TIMES[5], **more}
    return Read(began=began, ended=began + 1, found=list(found), **fields)  # type: ignore[arg-type]


def violations(writer: Iterable[Entry], *reads: Read) -> list[str]:
    return judge({"writer-0": writer, "reader-0": reads}).violations


def test_a_complete_answer_in_either_order_is_right() -> None:
    verdict = judge(
        {"w": written(A, B, C), "r": [answer(A, B, C), answer(C, B, A, descending=True)]}
    )
    assert verdict.violations == []
    assert verdict.events_checked == 6
    assert verdict.acknowledged == 3


@pytest.mark.parametrize(
    ("read", "word"),
    [
        (answer(A, C), "misses"),
        (answer(A, B, C, B), "doubles"),
        (answer(A, C, B), "misplaces"),
        (answer(A, B, C, descending=True), "misplaces"),
        (answer(A, B, C, f"{TIMES[4]}#4"), "invents"),
        (answer(A, B, C, end=TIMES[3]), "invents"),  # out of its range
        (answer(A, B, C, damaged=[B]), "another payload"),
        (answer(A, complete=False, descending=True), "misses"),
        (answer(kind="one", start=B, end=B + " "), "misses"),
    ],
)
def test_a_wrong_answer_is_blamed(read: Read, word: str) -> None:
    found = violations(written(A, B, C), read)
    assert found
    assert word in found[0]


def test_a_violation_names_the_event_its_acknowledgement_and_the_read() -> None:
    (found,) = violations(written(A, B), answer(A))
    assert found == (
        f"The range read of 's' [{TIMES[0]}, {TIMES[5]}) by reader-0 from 2.000 to 3.000 s"
        f" misses {B} (acknowledged to writer-0 at 1.000 s)."
    )


@pytest.mark.parametrize("read", [answer(), answer(A)])
def test_what_is_acknowledged_after_a_read_began_may_or_may_not_be_there(read: Read) -> None:
    assert violations(written(A, at=2.25), read) == []


def test_what_is_sent_after_a_read_ended_can_not_be_there() -> None:
    (found,) = violations(written(A, at=9.0), answer(A))
    assert "invents" in found


def test_the_first_acknowledgement_of_an_event_counts() -> None:
    verdict = judge({"w": written(A, at=5.0), "v": written(A, at=1.0), "r": [answer()]})
    assert "misses" in verdict.violations[0]
    assert verdict.acknowledged == verdict.again == 1


def test_a_read_that_stopped_between_pages_answers_for_what_it_passed() -> None:
    assert violations(written(A, B, C), answer(A, B, complete=False)) == []
    assert violations(written(A, B, C), answer(complete=False)) == []
    assert "misses" in violations(written(A, B, C), answer(B, complete=False))[0]


def test_a_sharding_key_is_answered_with_its_events_alone() -> None:
    entries = written(A, KEYED)
    assert violations(entries, answer(KEYED, sharding_key="key")) == []
    assert "misses" in violations(entries, answer(sharding_key="key"))[0]
    assert "invents" in violations(entries, answer(A, KEYED, sharding_key="key"))[0]


def test_a_valid_event_that_is_refused_for_good_is_blamed() -> None:
    refused = Failed(1.0, "event", "invalid_event", retryable=False)
    assert "writer-0 was refused" in violations([refused])[0]
    assert violations([Failed(1.0, "event", "unknown_outcome")]) == []
