from typing import Any

import pytest

from spillway import Settings
from spillway.dynamodb.port import (
    OutcomeUnknownError,
    RefusedError,
    StorageError,
    ThrottledError,
    UnreachableError,
)
from spillway.dynamodb.retries import DeadlinePassedError
from spillway.writing.attempts import AddressedEvent, PendingEvent
from spillway.writing.batches import build_item, send_batch
from spillway.writing.preparation import EventValidator
from tests.support.fakes import NOON
from tests.support.layouts import epoch
from tests.support.memory_table import EVENTS, memory_table
from tests.support.stores import HOUR, event_at


def _batch(count: int) -> list[AddressedEvent]:
    validator = EventValidator(Settings(), NOON.timestamp())
    events = [validator.prepare(event_at(NOON - n * HOUR, str(n)), str(n)) for n in range(count)]
    return [
        AddressedEvent(PendingEvent(event, (n,)), build_item(event, epoch(), 0), 1, 0)
        for n, event in enumerate(events)
    ]


def test_each_stored_event_has_the_outcome_stored() -> None:
    table = memory_table()
    assert send_batch(table, EVENTS, _batch(25)) == [None] * 25
    assert len(table.items[EVENTS]) == 25


def test_unprocessed_items_are_throttled() -> None:
    def call(_: str, request: Any, /) -> dict[str, Any]:
        return {"UnprocessedItems": {EVENTS: request["RequestItems"][EVENTS][1:3]}}

    outcomes = send_batch(call, EVENTS, _batch(4))
    assert [type(outcome) for outcome in outcomes[1:3]] == [ThrottledError] * 2
    assert (outcomes[0], outcomes[3]) == (None, None)


@pytest.mark.parametrize(
    "error",
    [
        ThrottledError("ThrottlingException", ""),
        OutcomeUnknownError("ReadTimeoutError", ""),
        RefusedError("AccessDeniedException", ""),
    ],
)
def test_a_failed_request_is_the_outcome_of_all_its_events(error: StorageError) -> None:
    def call(_: str, __: Any, /) -> dict[str, Any]:
        raise error

    assert send_batch(call, EVENTS, _batch(3)) == [error] * 3


def test_one_invalid_event_is_found_by_writing_each_by_itself() -> None:
    table = memory_table()
    batch = _batch(3)
    batch[1].item["payload"] = {"S": "x" * 500_000}
    outcomes = send_batch(table, EVENTS, batch)
    assert [type(outcome) for outcome in outcomes] == [type(None), RefusedError, type(None)]
    assert len(table.items[EVENTS]) == 2
    assert table.counts["BatchWriteItem"] == 4


@pytest.mark.parametrize(
    ("error", "is_in_doubt"),
    [
        (ThrottledError("ThrottlingException", ""), False),
        (OutcomeUnknownError("ReadTimeoutError", ""), True),
        (UnreachableError("EndpointConnectionError", ""), False),
    ],
)
def test_only_an_unknown_outcome_leaves_an_event_in_doubt(
    error: StorageError, *, is_in_doubt: bool
) -> None:
    (addressed,) = _batch(1)
    failed = addressed.fail(error)
    assert failed.failure is error
    assert (failed.outcome_unknown, failed.in_doubt is addressed.item) == (is_in_doubt,) * 2
    throttled = AddressedEvent(failed, addressed.item, 1, 0).fail(ThrottledError("slow down", ""))
    assert (throttled.outcome_unknown, throttled.in_doubt) == (is_in_doubt, None)


def test_an_attempt_leaves_the_event_it_was_given_as_it_was() -> None:
    (addressed,) = _batch(1)
    addressed.fail(OutcomeUnknownError("ReadTimeoutError", ""))
    assert addressed.pending.failure is None
    with pytest.raises(AttributeError):
        addressed.pending.failure = RefusedError("no", "")  # type: ignore[misc]


def test_a_passed_deadline_does_not_hide_an_earlier_failure() -> None:
    (addressed,) = _batch(1)
    earlier = ThrottledError("ThrottlingException", "")
    late = DeadlinePassedError()
    assert addressed.fail(late).failure is late
    assert addressed.fail(earlier).fail_unsent(late).failure is earlier
