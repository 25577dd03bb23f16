"""Writes with `on_conflict="reject"`: what is stored under an identity stays."""

from typing import Any

import pytest

from spillway import Event, EventStore, InvalidInputError, Settings, ShardingMode, WriteResult
from spillway.dynamodb.port import (
    Call,
    ConditionFailedError,
    OutcomeUnknownError,
    RefusedError,
    StorageError,
    ThrottledError,
)
from spillway.settings import Growth
from tests.support.fakes import NOON
from tests.support.faults import Fault, FaultyCall
from tests.support.layouts import epoch, store_layout
from tests.support.stores import DAY, HOUR, MemoryStore, event_at, events_every

LAYOUT_REQUESTS = [Fault.NONE, Fault.NONE]  # a write's first: GetItem and UpdateItem


def _event(**payload: Any) -> Event:
    """Return an event that goes into another shard under 256 shards than under 1."""
    return event_at(event_id="2", **payload)


def _write(store: EventStore, **payload: Any) -> list[str]:
    """Write one event with a payload; return its code if it is rejected."""
    return _codes(store.write([_event(**payload)], on_conflict="reject", timeout=5))


def _codes(result: WriteResult) -> list[str]:
    return [each.code for each in result.rejected]


def test_an_event_whose_identity_has_another_payload_is_a_conflict_and_refused() -> None:
    memory = MemoryStore(Settings(shards=8))
    events = [event_at(event_id=str(n), n=1) for n in range(3)]
    assert memory.store.write(events, on_conflict="reject").accepted == 3
    changed = [event_at(event_id=str(n), n=1 + n) for n in range(5)]
    result = memory.another().write(changed, on_conflict="reject")
    assert result.accepted == 3
    assert [(each.index, each.code, each.retryable) for each in result.rejected] == [
        (1, "conflict", False),
        (2, "conflict", False),
    ]
    payloads = {item["SK"]["S"][-1]: item["payload"]["S"] for item in memory.stored}
    assert payloads == {
        "0": '{"n":1}',
        "1": '{"n":1}',
        "2": '{"n":1}',
        "3": '{"n":4}',
        "4": '{"n":5}',
    }


def test_an_equal_payload_is_no_conflict_and_not_refused() -> None:
    memory = MemoryStore()
    assert _write(memory.store, a=1, b=[2.5]) == []
    assert _write(memory.another(), b=[2.5], a=1) == []
    assert len(memory.stored) == 1


@pytest.mark.parametrize("mode", ShardingMode)
def test_a_conflict_with_a_copy_of_an_older_layout_is_refused(mode: ShardingMode) -> None:
    numbers = iter([0.0, 0.9] * 50)
    memory = MemoryStore(Settings(mode=mode), random=lambda: next(numbers))
    for shards in (2, 4, 16, 64):
        assert _write(memory.store, n=1) == []
        memory.another().set_layout("ORD", shards=shards)  # unknown to the store's cache
        assert _write(memory.store, n=2) == ["conflict"]
        assert _write(memory.another(), n=2) == ["conflict"]
    assert len(memory.stored) == 1


def test_no_conflict_is_missed_by_a_writer_whose_cached_layout_is_old() -> None:
    memory = MemoryStore()
    stale = memory.another()
    stale.write([event_at(NOON - HOUR)])
    memory.another().set_layout("ORD", shards=256)
    memory.another().write([_event(n=1)])
    assert _write(stale, n=2) == ["conflict"], "rejected though its cache has one shard only"


def test_a_conflict_is_judged_by_the_copy_that_reads_return() -> None:
    memory = MemoryStore()
    memory.store.write([_event(n=1)])
    memory.store.set_layout("ORD", shards=256)
    memory.store.write([_event(n=2)])
    assert len(memory.stored) == 2
    assert _write(memory.store, n=2) == []
    assert _write(memory.store, n=1) == ["conflict"]


def test_an_expired_event_is_no_conflict() -> None:
    memory = MemoryStore(Settings(retention=DAY))
    memory.store.write([_event(n=1)])
    memory.clock.forward(DAY + HOUR)
    later = memory.another(Settings(retention=7 * DAY))
    assert _write(later, n=2) == []
    assert [item["payload"]["S"] for item in memory.stored] == ['{"n":2}']


@pytest.mark.parametrize(
    "faults",
    [
        [Fault.LOST_REPLY],
        [Fault.LOST_REQUEST],
        [Fault.THROTTLED, Fault.UNREACHABLE, Fault.LOST_REPLY],
        [Fault.THROTTLED] * 8,
    ],
)
def test_a_retry_of_the_own_write_is_no_conflict_and_not_refused(faults: list[Fault]) -> None:
    memory = MemoryStore(wrap=lambda call: FaultyCall(call, [*LAYOUT_REQUESTS, *faults]))
    result = memory.store.write([_event(n=1)], on_conflict="reject")
    assert (result.accepted, len(memory.stored)) == (1, 1)


def test_probes_of_throttled_writes_replace_nothing() -> None:
    memory = MemoryStore()
    memory.store.write([_event(n=1)])
    memory.wrap = lambda call: FaultyCall(call, [Fault.NONE, Fault.THROTTLED])
    assert _write(memory.another(), n=2) == ["conflict"]
    assert [item["payload"]["S"] for item in memory.stored] == ['{"n":1}']
    assert all("ConditionExpression" in put for put in memory.table.requests_of("PutItem"))


def test_each_event_costs_one_put_and_no_look_up_under_one_epoch() -> None:
    memory = MemoryStore(Settings(shards=16))
    memory.store.write(events_every(HOUR, 30), on_conflict="reject")
    assert memory.table.counts["PutItem"] == 30
    assert memory.table.counts["GetItem"] == 1, "the layout"
    assert "BatchWriteItem" not in memory.table.counts


def test_only_events_that_two_epochs_cover_are_looked_up() -> None:
    memory = MemoryStore(Settings(growth=Growth(policy=None)))
    old = epoch(1, shards=1, close=NOON - HOUR)
    store_layout(memory.table, [old, epoch(2, shards=256, low=NOON - 2 * HOUR)])
    memory.store.write(events_every(HOUR / 2, 8), on_conflict="reject")
    looked_up = [get for get in memory.table.requests_of("GetItem") if get["TableName"] == "events"]
    # 3 events lie within the hour that both epochs cover, each in one of two shards.
    assert len(looked_up) == 2 * 3
    assert all(get["ConsistentRead"] for get in looked_up)


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (ThrottledError("ThrottlingException", "hot"), "storage_unavailable"),
        (OutcomeUnknownError("ReadTimeoutError", "late"), "storage_unavailable"),
        (RefusedError("AccessDeniedException", "no"), "storage_refused"),
    ],
)
def test_an_event_whose_copies_can_not_be_looked_up_is_not_written(
    error: StorageError, code: str
) -> None:
    memory = MemoryStore()
    store_layout(memory.table, [epoch(1), epoch(2, shards=256, low=NOON - HOUR)])

    def fail(operation: str, request: Any, /) -> dict[str, Any]:
        if operation == "GetItem" and request["TableName"] == "events":
            raise error
        return memory.table(operation, request)

    memory.wrap = lambda _: fail
    assert _write(memory.another(), n=1) == [code]
    assert memory.stored == []


def test_a_refused_condition_without_the_stored_item_is_in_doubt() -> None:
    memory = MemoryStore()

    def without_item(operation: str, request: Any, /) -> dict[str, Any]:
        if operation == "PutItem":
            raise ConditionFailedError("ConditionalCheckFailedException", "")
        return memory.table(operation, request)

    call: Call = without_item
    memory.wrap = lambda _: call
    assert _write(memory.another(), n=1) == ["unknown_outcome"]


def test_two_payloads_of_one_request_stay_duplicates() -> None:
    result = MemoryStore().store.write([_event(n=1), _event(n=2)], on_conflict="reject")
    assert _codes(result) == ["duplicate_event"]


def test_other_answers_to_conflicts_are_refused() -> None:
    with pytest.raises(InvalidInputError) as caught:
        MemoryStore().store.write([event_at()], on_conflict="ignore")
    assert (caught.value.where, caught.value.reason) == (
        "on_conflict",
        "must be one of replace, reject",
    )
