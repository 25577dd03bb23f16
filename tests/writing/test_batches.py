from typing import Any

import pytest

from spillway import Settings
from spillway.dynamodb.port import OutcomeUnknownError, RefusedError, StorageError, ThrottledError
from spillway.writing.batches import AddressedEvent, address_event, send_batch
from spillway.writing.preparation import EventValidator
from tests.support.fakes import NOON
from tests.support.layouts import epoch
from tests.support.memory_table import EVENTS, memory_table
from tests.support.stores import HOUR, event_at


def _batch(count: int) -> list[AddressedEvent]:
    admission = EventValidator(Settings(), NOON.timestamp())
    events = [event_at(NOON - n * HOUR, str(n)) for n in range(count)]
    return [address_event(admission.prepare(n, e, str(n)), epoch()) for n, e in enumerate(events)]


def test_stored_events_are_not_left() -> None:
    table = memory_table()
    assert send_batch(table, EVENTS, _batch(25)) == []
    assert len(table.items[EVENTS]) == 25


def test_unprocessed_items_are_left_as_throttled() -> None:
    def call(_: str, request: Any, /) -> dict[str, Any]:
        return {"UnprocessedItems": {EVENTS: request["RequestItems"][EVENTS][1:3]}}

    left = send_batch(call, EVENTS, _batch(4))
    assert [event.indexes for event in left] == [[1], [2]]
    assert {type(event.failure) for event in left} == {ThrottledError}
    assert not any(event.outcome_unknown for event in left)


@pytest.mark.parametrize(
    ("error", "unknown"),
    [
        (ThrottledError("ThrottlingException", ""), False),
        (OutcomeUnknownError("ReadTimeoutError", ""), True),
        (RefusedError("AccessDeniedException", ""), False),
    ],
)
def test_a_failed_request_leaves_all_events_with_its_error(
    error: StorageError, *, unknown: bool
) -> None:
    def call(_: str, __: Any, /) -> dict[str, Any]:
        raise error

    left = send_batch(call, EVENTS, _batch(3))
    assert [(event.failure, event.outcome_unknown) for event in left] == [(error, unknown)] * 3


def test_one_invalid_event_is_found_by_writing_each_by_itself() -> None:
    table = memory_table()
    batch = _batch(3)
    batch[1][1]["payload"] = {"S": "x" * 500_000}
    (left,) = send_batch(table, EVENTS, batch)
    assert left.indexes == [1]
    assert isinstance(left.failure, RefusedError)
    assert len(table.items[EVENTS]) == 2
    assert table.counts["BatchWriteItem"] == 4
