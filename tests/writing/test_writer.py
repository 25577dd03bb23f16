from collections.abc import Iterable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from spillway import Event, EventStore, Settings, ShardingMode, WriteResult
from spillway.dynamodb.port import (
    Call,
    OutcomeUnknownError,
    RefusedError,
    StorageError,
    ThrottledError,
    UnreachableError,
)
from spillway.keys import EXPIRES, parse_index_key, parse_partition_key, parse_sort_key
from spillway.settings import Growth
from tests.support.fakes import NOON
from tests.support.faults import Fault, FaultyCall, throttled_call
from tests.support.layouts import epoch, store_layout
from tests.support.stores import DAY, HOUR, MemoryStore, event_at, events_every

# A write's first requests: GetItem and UpdateItem of the layout.
SETTLED = [Fault.NONE, Fault.NONE]


AS_IT_IS = Growth(policy=None)


def _with_faults(*faults: Fault, **settings: Any) -> MemoryStore:
    return MemoryStore(Settings(**settings), wrap=lambda call: FaultyCall(call, faults))


def _codes(result: WriteResult) -> list[tuple[int, str, bool]]:
    return [(each.index, each.code, each.retryable) for each in result.rejected]


def test_accepted_events_are_stored_under_keys_that_can_be_taken_apart() -> None:
    memory = MemoryStore(Settings(shards=16, index_shards=4))
    written = [*events_every(HOUR, 40), event_at(sharding_key="LGA#1", series="a#1")]
    result = memory.store.write(written)
    assert (result.accepted, result.rejected) == (41, ())
    assert result.ids == tuple(event.id for event in written)
    found = set()
    for item in memory.stored:
        table_key = parse_partition_key(item["PK"]["S"])
        time, sharding_key, event_id = parse_sort_key(item["SK"]["S"])
        index_key = parse_index_key(item["GSI1PK"]["S"])
        assert index_key.series == table_key.series
        assert time.startswith(index_key.bucket)
        assert index_key.index_shard == table_key.shard % 4
        assert set(item) == {"PK", "SK", "GSI1PK", "payload"}
        found.add((table_key.series, time, sharding_key, event_id))
    assert len(found) == 41
    assert {parse_partition_key(item["PK"]["S"]).shard for item in memory.stored} > {0, 1, 2, 3}


@pytest.mark.parametrize(
    ("bucket", "label"),
    [
        ("day", "2026-06-01"),
        ("hour", "2026-06-01T11"),
        ("minute", "2026-06-01T11:59"),
    ],
)
def test_the_index_key_has_the_bucket_of_the_layout(bucket: str, label: str) -> None:
    memory = MemoryStore()
    store_layout(memory.table, [epoch(bucket=bucket)])
    memory.store.write([event_at(NOON - timedelta(seconds=1))])
    (item,) = memory.stored
    assert item["GSI1PK"]["S"] == f"ORD#{label}#0"


def test_the_retention_is_stored_as_whole_epoch_seconds() -> None:
    memory = MemoryStore(Settings(retention=DAY))
    memory.store.write([event_at(NOON)])
    (item,) = memory.stored
    assert item[EXPIRES] == {"N": str(int((NOON + DAY).timestamp()) + 1)}


def test_writes_take_25_events_a_request() -> None:
    memory = MemoryStore()
    memory.store.write(events_every(HOUR, 51))
    batches = memory.table.requests_of("BatchWriteItem")
    assert [len(batch["RequestItems"]["events"]) for batch in batches] == [25, 25, 1]


def test_no_events_take_no_requests() -> None:
    memory = MemoryStore()
    assert memory.store.write([]) == WriteResult(accepted=0, rejected=(), ids=())
    assert memory.table.counts == {}


def test_events_may_come_from_a_generator() -> None:
    memory = MemoryStore()
    assert memory.store.write(event for event in events_every(HOUR, 3)).accepted == 3


def test_a_layout_is_read_once_a_series_while_it_is_young() -> None:
    memory = MemoryStore()
    memory.store.write([event_at(series="a"), event_at(series="b")])
    memory.clock.seconds += 9
    memory.store.write([event_at(series="a", event_id="2")])
    assert memory.table.counts["GetItem"] == 2
    memory.clock.seconds += 2
    memory.store.write([event_at(series="a", event_id="3")])
    assert memory.table.counts["GetItem"] == 3


def test_ids_are_made_where_the_client_sends_none() -> None:
    memory = MemoryStore()
    result = memory.store.write([event_at(event_id=None), event_at(), event_at(event_id=None)])
    assert result.ids == ("made-0", "1", "made-1")
    assert {parse_sort_key(item["SK"]["S"]).id for item in memory.stored} == {
        "made-0",
        "1",
        "made-1",
    }


def test_real_ids_are_distinct_uuids_of_version_7() -> None:
    memory = MemoryStore()
    store = EventStore(memory.table, table="events", layouts="layouts")
    ids = store.write([event_at(NOON - DAY, event_id=None) for _ in range(100)]).ids
    assert len(set(ids)) == 100
    assert {(id_ or "")[14] for id_ in ids} == {"7"}


def test_invalid_events_do_not_sink_the_others() -> None:
    memory = MemoryStore(Settings(late_limit=DAY))
    result = memory.store.write(
        [
            event_at(series=""),
            event_at(event_id="good"),
            event_at(NOON + HOUR, event_id=None),
            event_at(NOON - 2 * DAY, event_id="late"),
            event_at(payload={"a": float("nan")}),
            event_at(payload={"a": "x" * 410_000}),
        ]
    )
    assert result.accepted == 1
    assert _codes(result) == [
        (0, "invalid_event", False),
        (2, "in_future", False),
        (3, "too_late", False),
        (4, "invalid_event", False),
        (5, "item_too_large", False),
    ]
    assert [each.where for each in result.rejected] == [
        "series",
        "time",
        "time",
        "payload",
        "payload",
    ]
    assert result.ids == ("1", "good", None, "late", "1", "1")


def test_the_same_event_twice_is_one_event_and_both_are_accepted() -> None:
    memory = MemoryStore()
    twice = [event_at(payload={"a": 1, "b": 2}), event_at(payload={"b": 2, "a": 1})]
    result = memory.store.write([*twice, event_at(event_id="2")])
    assert (result.accepted, result.rejected) == (3, ())
    assert len(memory.stored) == 2


def test_one_identity_with_two_payloads_is_refused_as_a_duplicate() -> None:
    memory = MemoryStore()
    result = memory.store.write([event_at(n=1), event_at(n=2), event_at(n=1)])
    assert _codes(result) == [(1, "duplicate_event", False)]
    assert result.accepted == 2
    assert memory.stored[0]["payload"] == {"S": '{"n":1}'}


@pytest.mark.parametrize(
    "change", [{"series": "LGA"}, {"id": "2"}, {"sharding_key": "x"}, {"time": NOON - HOUR}]
)
def test_each_part_of_the_identity_tells_events_apart(change: dict[str, Any]) -> None:
    memory = MemoryStore()
    first = event_at(n=1)
    fields = {name: getattr(first, name) for name in Event.__struct_fields__}
    memory.store.write([first, Event(**{**fields, **change})])
    assert len(memory.stored) == 2


def test_merged_events_share_their_outcome() -> None:
    memory = _with_faults(*SETTLED, *[Fault.THROTTLED] * 100)
    result = memory.store.write([event_at(), event_at(event_id="2"), event_at()], timeout=1)
    assert _codes(result) == [(n, "throttled", True) for n in range(3)]


@pytest.mark.parametrize(
    "faults",
    [
        [Fault.THROTTLED],
        [*SETTLED, Fault.THROTTLED, Fault.UNREACHABLE],
        [*SETTLED, Fault.HALF, Fault.ONE, Fault.HALF],
        [*SETTLED, Fault.LOST_REQUEST],
        [*SETTLED, Fault.LOST_REPLY, Fault.HALF, Fault.THROTTLED],
        [Fault.LOST_REQUEST, Fault.LOST_REPLY, Fault.UNREACHABLE],
        [Fault.NONE, Fault.LOST_REPLY],
    ],
)
def test_what_fails_on_its_way_is_written_in_the_end_and_once(faults: list[Fault]) -> None:
    memory = _with_faults(*faults)
    result = memory.store.write(events_every(HOUR, 10))
    assert (result.accepted, result.rejected) == (10, ())
    assert len(memory.stored) == 10


def test_only_unprocessed_items_are_sent_again() -> None:
    memory = _with_faults(*SETTLED, Fault.ONE, growth=AS_IT_IS)
    memory.store.write(events_every(HOUR, 5))
    batches = memory.table.requests_of("BatchWriteItem")
    assert [len(batch["RequestItems"]["events"]) for batch in batches] == [1, 4]


def test_retries_wait_with_full_jitter_that_grows() -> None:
    # One of the faults meets the look at who else changed the layout.
    memory = _with_faults(*SETTLED, *[Fault.THROTTLED] * 5, growth=AS_IT_IS)
    memory.store.write([event_at()])
    assert memory.clock.naps == pytest.approx([0.05, 0.1, 0.2, 0.4])


@pytest.mark.parametrize(
    ("fault", "code"),
    [
        (Fault.THROTTLED, "throttled"),
        (Fault.ONE, "throttled"),
        (Fault.UNREACHABLE, "storage_unavailable"),
        (Fault.LOST_REQUEST, "unknown_outcome"),
        (Fault.LOST_REPLY, "unknown_outcome"),
    ],
)
def test_at_the_deadline_what_is_left_is_rejected_for_its_last_failure(
    fault: Fault, code: str
) -> None:
    memory = _with_faults(*SETTLED, *[fault] * 100, growth=AS_IT_IS)
    began = memory.clock.seconds
    events = events_every(HOUR, 30)
    result = memory.store.write(events, timeout=5)
    assert {each.code for each in result.rejected} == {code}
    assert all(each.retryable for each in result.rejected)
    assert result.accepted + len(result.rejected) == 30
    assert result.ids == tuple(event.id for event in events)
    assert memory.clock.seconds - began < 5


def test_an_unknown_outcome_stays_unknown_whatever_fails_later() -> None:
    memory = _with_faults(*SETTLED, Fault.LOST_REPLY, *[Fault.THROTTLED] * 100)
    result = memory.store.write([event_at()], timeout=1)
    assert _codes(result) == [(0, "unknown_outcome", True)]


@pytest.mark.parametrize("fault", [Fault.LOST_REQUEST, Fault.LOST_REPLY])
def test_an_event_whose_layout_can_not_be_had_is_known_not_to_be_stored(fault: Fault) -> None:
    memory = _with_faults(*[fault] * 100)
    result = memory.store.write([event_at()], timeout=1)
    assert _codes(result) == [(0, "storage_unavailable", True)]
    assert memory.stored == []


def test_an_unknown_outcome_is_settled_by_the_retry() -> None:
    memory = _with_faults(*SETTLED, Fault.LOST_REQUEST)
    assert memory.store.write([event_at()]).accepted == 1


def _slow(memory: MemoryStore, seconds: float, call: Call) -> FaultyCall:
    def wait(_: str) -> None:
        memory.clock.seconds += seconds

    return FaultyCall(call, [Fault.UNREACHABLE] * 10_000, on_call=wait)


@pytest.mark.parametrize("series", [["ORD"], [f"s-{n}" for n in range(500)]])
def test_a_write_ends_soon_after_its_deadline_however_slow_the_storage_fails(
    series: Iterable[str],
) -> None:
    memory = MemoryStore()
    for name in series:
        store_layout(memory.table, [epoch()], series=name)
    memory.wrap = lambda call: _slow(memory, 4, call)
    began = memory.clock.seconds
    events = [event_at(series=name, event_id=str(n)) for n in range(2) for name in series]
    result = memory.another().write(events, timeout=20)
    # A few of the 500 series get their turn; the time is up before that of the others.
    late = {"deadline"} if len(events) > 2 else set()
    assert {each.code for each in result.rejected} == {"storage_unavailable"} | late
    assert len(result.rejected) == len(events)
    assert memory.clock.seconds - began <= 24


def _each_batch_takes(seconds: float, error: StorageError | None = None) -> MemoryStore:
    """Return a store whose batches take `seconds` each, in turn, and fail with `error`."""
    memory = MemoryStore(Settings(growth=AS_IT_IS))
    store_layout(memory.table, [epoch()])

    def call(operation: str, request: Any, /) -> dict[str, Any]:
        if operation == "BatchWriteItem":
            memory.clock.seconds += seconds
            if error is not None:
                raise error
        return memory.table(operation, request)

    memory.wrap = lambda _: call
    memory.store = memory.another()
    return memory


def test_events_that_are_never_sent_since_time_is_up_are_rejected_as_deadline() -> None:
    memory = _each_batch_takes(1)
    result = memory.store.write((event for event in events_every(HOUR, 1_000)), timeout=10)
    assert (result.accepted, len(memory.stored)) == (250, 250)
    assert _codes(result) == [(n, "deadline", True) for n in range(250, 1_000)]
    assert all("send it again" in each.message for each in result.rejected)


def test_a_series_whose_layout_is_never_read_since_time_is_up_is_rejected_as_deadline() -> None:
    memory = MemoryStore()

    def wait(_: str) -> None:
        memory.clock.seconds += 3

    memory.wrap = lambda call: FaultyCall(call, [], on_call=wait)
    events = [event_at(series=f"s-{n}") for n in range(100)]
    result = memory.another().write(events, timeout=10)
    assert {each.code for each in result.rejected} == {"deadline"}


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (ThrottledError("ThrottlingException", "slow down"), "throttled"),
        (UnreachableError("EndpointConnectionError", "refused"), "storage_unavailable"),
        (OutcomeUnknownError("ReadTimeoutError", "timed out"), "unknown_outcome"),
    ],
)
def test_an_event_that_was_sent_keeps_its_code_when_time_is_up_before_its_retry(
    error: StorageError, code: str
) -> None:
    memory = _each_batch_takes(2.4, error)
    # Time is up within the second attempt: it sends the first of the four batches only.
    result = memory.store.write(events_every(HOUR, 100), timeout=10)
    assert memory.clock.seconds - NOON.timestamp() > 5 * 2.4
    assert _codes(result) == [(n, code, True) for n in range(100)]


def test_throttled_and_never_sent_events_are_told_apart() -> None:
    memory = _each_batch_takes(4, ThrottledError("ThrottlingException", "slow down"))
    result = memory.store.write(events_every(HOUR, 100), timeout=10)
    codes = [each.code for each in result.rejected]
    assert codes == ["throttled"] * 75 + ["deadline"] * 25


class _Invalid:
    """Finds one item invalid, with the batch it is in."""

    def __init__(self, call: Call, seconds: float = 0, memory: MemoryStore | None = None) -> None:
        self._call, self._seconds, self._memory = call, seconds, memory

    def __call__(self, operation: str, request: Any, /) -> dict[str, Any]:
        if self._memory is not None:
            self._memory.clock.seconds += self._seconds
        if operation == "BatchWriteItem" and '"bad"' in str(request):
            raise RefusedError("ValidationException", "DynamoDB does not like it")
        return self._call(operation, request)


def test_what_dynamodb_finds_invalid_does_not_sink_its_batch() -> None:
    memory = MemoryStore(wrap=_Invalid)
    events = [event_at(event_id=str(n), v="bad" if n == 3 else "ok") for n in range(10)]
    result = memory.store.write(events)
    assert _codes(result) == [(3, "invalid_event", False)]
    assert "DynamoDB does not like it" in result.rejected[0].message
    assert len(memory.stored) == 9
    assert memory.clock.naps == []


def test_writing_event_by_event_ends_at_the_deadline_too() -> None:
    memory = MemoryStore()
    memory.wrap = lambda call: _Invalid(call, 3, memory)
    began = memory.clock.seconds
    events = [event_at(event_id=str(n), v="bad" if n == 3 else "ok") for n in range(25)]
    result = memory.another().write(events, timeout=20)
    assert memory.clock.seconds - began <= 23
    assert result.accepted == len(memory.stored) > 0
    assert {each.code for each in result.rejected} == {"invalid_event", "deadline"}


@pytest.mark.parametrize("code", ["AccessDeniedException", "ResourceNotFoundException"])
def test_what_dynamodb_refuses_for_good_is_not_tried_again(code: str) -> None:
    def refuse(operation: str, request: Any, /) -> dict[str, Any]:
        if operation == "BatchWriteItem":
            raise RefusedError(code, "no")
        return memory.table(operation, request)

    memory = MemoryStore()
    memory.wrap = lambda _: refuse
    result = memory.another().write([event_at(), event_at(event_id="2")])
    assert _codes(result) == [(0, "storage_refused", True), (1, "storage_refused", True)]
    assert memory.clock.naps == []


def test_a_layout_that_can_not_be_had_rejects_only_its_own_series() -> None:
    def without_a(operation: str, request: Any, /) -> dict[str, Any]:
        if operation == "GetItem" and request["Key"]["series"]["S"] == "a":
            return throttled_call(operation, request)
        return memory.table(operation, request)

    memory = MemoryStore()
    memory.wrap = lambda _: without_a
    result = memory.another().write([event_at(series="a"), event_at(series="b")], timeout=2)
    assert _codes(result) == [(0, "throttled", True)]
    assert len(memory.stored) == 1


def test_a_layout_kept_for_long_is_read_again_before_writing_beyond_its_reach() -> None:
    memory = MemoryStore(Settings(layout_ttl=86_400))
    memory.store.write([event_at()])
    memory.clock.forward(HOUR)
    result = memory.store.write([event_at(memory.clock.time, event_id="2")])
    assert result.accepted == 1
    assert memory.table.counts["GetItem"] == 2


def test_events_go_under_the_newest_epoch_that_covers_their_time() -> None:
    memory = MemoryStore()
    old = epoch(1, shards=1, close=NOON - HOUR)
    store_layout(memory.table, [old, epoch(2, shards=256, low=NOON - 2 * HOUR)])
    events = [event_at(NOON - n * HOUR / 2, event_id=str(n), n=n) for n in range(8)]
    memory.store.write(events)
    shards = {
        parse_sort_key(item["SK"]["S"]).id: parse_partition_key(item["PK"]["S"]).shard
        for item in memory.stored
    }
    assert {shards[str(n)] for n in range(5, 8)} == {0}
    assert len({shards[str(n)] for n in range(5)}) > 2


def test_in_random_mode_events_are_spread_by_chance_over_any_number_of_shards() -> None:
    numbers = iter([0.0, 0.34, 0.67, 0.999] * 2)
    memory = MemoryStore(Settings(mode=ShardingMode.RANDOM, shards=3), random=lambda: next(numbers))
    memory.store.write(events_every(HOUR, 4))
    shards = [parse_partition_key(item["PK"]["S"]).shard for item in memory.stored]
    assert shards == [0, 1, 2, 2]


def test_in_random_mode_a_retry_goes_where_the_lost_attempt_went() -> None:
    memory = _with_faults(*SETTLED, Fault.LOST_REPLY, mode=ShardingMode.RANDOM, shards=8)
    numbers = iter([0.1, 0.9, 0.5, 0.7, 0.2])
    memory.random = lambda: next(numbers)
    memory.another().write([event_at()])
    assert len(memory.stored) == 1


def test_throttles_carry_their_reasons_to_whoever_asks() -> None:
    error = ThrottledError("ThrottlingException", "hot")
    assert (error.code, error.reasons, str(error)) == (
        "ThrottlingException",
        (),
        "ThrottlingException: hot",
    )


def test_another_payload_under_the_same_identity_replaces_the_first() -> None:
    memory = MemoryStore(Settings(shards=8))
    memory.store.write([event_at(n=1)])
    memory.another(replace(memory.settings, shards=64)).write([event_at(n=2)])
    assert [item["payload"]["S"] for item in memory.stored] == ['{"n":2}']
