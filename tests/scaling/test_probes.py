from collections.abc import Mapping
from typing import Any

import pytest

from spillway.dynamodb.port import (
    OutcomeUnknownError,
    RefusedError,
    StorageError,
    ThrottledError,
    UnreachableError,
)
from spillway.scaling.evidence import ThrottleSummary
from spillway.scaling.policy import ThrottleKind
from spillway.writing.throttling import attribute_by_concentration, send_probes
from tests.scaling.world import INDEX_KEY_RANGE, TABLE_KEY_RANGE, pressure_on, throttled


class Answers:
    """A port that answers PutItems in turn: None stores the item, an error is raised."""

    def __init__(self, *answers: StorageError | None) -> None:
        self.answers = list(answers)
        self.asked: list[str] = []

    def __call__(self, operation: str, request: Mapping[str, Any], /) -> dict[str, Any]:
        assert (operation, request["TableName"]) == ("PutItem", "events")
        self.asked.append(request["Item"]["PK"]["S"])
        answer = self.answers.pop(0)
        if answer is not None:
            raise answer
        return {}


def _shut(*reasons: Any) -> ThrottledError:
    return ThrottledError("ThrottlingException", "", reasons)


def _on(*shards: int) -> ThrottleSummary:
    return pressure_on(*(throttled(shard=shard) for shard in shards))


@pytest.mark.parametrize(
    ("shards", "asked"),
    [
        ((0, 0, 0, 0, 0), ["ORD#0"] * 3),
        ((0, 0), ["ORD#0"] * 2),
        ((1, 2, 2, 0, 2, 0, 3, 3, 3, 3), ["ORD#3", "ORD#2", "ORD#0"]),
        ((4, 5), ["ORD#4", "ORD#5"]),
    ],
)
def test_at_max_three_probes_go_to_the_keys_that_throttled_most(
    shards: tuple[int, ...], asked: list[str]
) -> None:
    call, pressure = Answers(None, None, None), _on(*shards)
    probed = send_probes(call, "events", pressure)
    assert call.asked == asked
    assert len(probed.stored) == len(asked)
    assert len({id(item) for item in probed.stored}) == len(asked), "each probe is another event"
    assert (probed.exhausted, probed.without_reason, pressure.cause) == (
        True,
        False,
        ThrottleKind.UNKNOWN,
    )


def test_the_first_reason_explains_all_and_ends_probing() -> None:
    call, pressure = Answers(None, _shut(INDEX_KEY_RANGE)), _on(0, 0, 1, 2)
    probed = send_probes(call, "events", pressure)
    assert len(call.asked) == 2
    assert [item["PK"]["S"] for item in probed.stored] == ["ORD#0"]
    assert pressure.index == {0: 4}
    assert not pressure.unexplained
    assert not probed.exhausted


def test_throttles_that_name_nothing_are_told_apart_from_probes_that_pass() -> None:
    probed = send_probes(Answers(_shut(), None, _shut()), "events", _on(0, 0, 0))
    assert (probed.exhausted, probed.without_reason, len(probed.stored)) == (True, True, 1)


@pytest.mark.parametrize("error", [UnreachableError("x", ""), RefusedError("AccessDenied", "")])
def test_a_probe_that_fails_ends_probing_and_shows_nothing(error: StorageError) -> None:
    call = Answers(None, error)
    probed = send_probes(call, "events", _on(0, 0, 0))
    assert (len(probed.stored), probed.unknown, probed.exhausted) == (1, [], False)


def test_a_probe_whose_reply_is_lost_may_have_stored_its_item() -> None:
    error = OutcomeUnknownError("ReadTimeoutError", "")
    pressure = _on(0, 0, 0)
    probed = send_probes(Answers(error), "events", pressure)
    assert (probed.stored, probed.exhausted) == ([], False)
    assert probed.unknown == [(pressure.unexplained[0].item, error)]


@pytest.mark.parametrize(
    ("throttles", "named"),
    [
        ({0: 10}, False),  # nothing to compare it with
        ({0: 10, 1: 1}, False),
        ({0: 10, 1: 1, 2: 1}, True),
        ({0: 2, 1: 1, 2: 1, 3: 1}, False),
        ({0: 6, 1: 6, 2: 1, 3: 1}, False),
        ({0: 9, 1: 2, 2: 2, 3: 2}, True),
    ],
)
def test_one_key_far_above_the_rest_is_taken_for_the_cause(
    throttles: dict[int, int], *, named: bool
) -> None:
    pressure = _on(*(shard for shard, count in throttles.items() for _ in range(count)))
    attribute_by_concentration(pressure)
    assert (pressure.cause is ThrottleKind.KEY_RANGE) == named
    assert dict(pressure.table) == (throttles if named else {})
    assert TABLE_KEY_RANGE not in pressure.capacity
