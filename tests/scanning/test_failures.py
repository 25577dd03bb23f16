"""Shards that throttle, fail or are slow: everything else is given out, and what is missing is said."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import pytest

from spillway import (
    ExportError,
    OutcomeUnknownError,
    RefusedError,
    Settings,
    StorageError,
    ThrottledError,
    UnreachableError,
)
from spillway.dynamodb.port import Call
from tests.scanning.world import END, START, small_pages
from tests.support.stores import MemoryStore, events_every

MODES = ["shards", "blocks", "round_robin"]
ERRORS = [
    ThrottledError("ThrottlingException", "slow down"),
    UnreachableError("EndpointConnectionError", "refused"),
    OutcomeUnknownError("ReadTimeoutError", "timed out"),
]
IDS = {f"{n:07d}" for n in range(200)}


@dataclass
class BadShard:
    """A port on which the queries of one shard fail from some point on, for some times."""

    shard: int
    error: StorageError
    after: int = 0
    times: float = float("inf")
    slow: Callable[[], None] = lambda: None
    asked: list[str] = field(default_factory=list)

    def __call__(self, call: Call) -> Call:
        inner = small_pages(call, 10)

        def failing(operation: str, request: Mapping[str, Any], /) -> dict[str, Any]:
            if operation == "Query":
                key = request["ExpressionAttributeValues"][":p"]["S"]
                self.asked.append(key)
                of_it = self.asked.count(key)
                if key == f"ORD#{self.shard}" and self.after < of_it <= self.after + self.times:
                    self.slow()
                    raise self.error
            return inner(operation, request)

        return failing


def _memory(bad: BadShard | None = None, shards: int = 4) -> MemoryStore:
    memory = MemoryStore(Settings(shards=shards))
    assert memory.store.write(events_every(timedelta(minutes=1), 200)).accepted == 200
    if bad is not None:
        memory.wrap = bad
    return memory


def _export(memory: MemoryStore, mode: str, **options: Any) -> Any:
    return memory.another().export("ORD", START, END, mode=mode, **options)


def _until_failure(things: Iterable[Any]) -> tuple[list[Any], ExportError]:
    """Return what came before the error, and the error."""
    found: list[Any] = []
    try:
        found.extend(things)
    except ExportError as error:
        return found, error
    raise AssertionError(f"all {len(found)} came")


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
def test_a_shard_that_fails_for_a_while_is_asked_again_with_jitter(
    mode: str, error: StorageError
) -> None:
    memory = _memory(BadShard(2, error, after=1, times=4))
    export = _export(memory, mode)
    assert {event.id for event in export} == IDS
    assert export.complete
    assert len(memory.clock.naps) == 4
    assert memory.clock.naps == sorted(memory.clock.naps)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("after", [0, 1, 3])
@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
def test_an_iterator_says_which_shard_failed_after_what_it_gave_and_its_cursor_completes_it(
    mode: str, after: int, error: StorageError
) -> None:
    memory = _memory(BadShard(2, error, after=after))
    export = _export(memory, mode, timeout=3)
    found, failed = _until_failure(event.id for event in export)
    assert (failed.partition_key, failed.cause, failed.code) == ("ORD#2", error, error.code)
    assert "ORD#2" in str(failed)
    assert isinstance(failed, StorageError)
    assert export.failure is failed
    assert not export.complete
    assert failed.cursor == export.cursor is not None
    assert len(found) > 0 or (after == 0 and mode != "shards")
    memory.wrap = lambda call: call
    found += [event.id for event in _export(memory, mode, cursor=failed.cursor)]
    assert len(found) == 200
    assert set(found) == IDS
    with pytest.raises(ExportError):
        next(iter(export))


@pytest.mark.parametrize("mode", MODES)
def test_a_chunk_before_the_failure_is_returned_and_the_next_call_raises(mode: str) -> None:
    memory = _memory(BadShard(2, ERRORS[0], after=1))
    export = _export(memory, mode, timeout=1)
    chunk = export.chunk(1_000_000)
    assert len(chunk.records) > 0
    assert chunk.cursor is not None
    assert isinstance(export.failure, ExportError)
    with pytest.raises(ExportError):
        export.chunk(1_000_000)
    memory.wrap = BadShard(2, ERRORS[0], after=1)
    chunks, _ = _until_failure(_export(memory, mode, timeout=1).chunks(500))
    assert len(chunks) > 1
    assert tuple(record for each in chunks for record in each.records) == chunk.records


def test_a_request_that_is_refused_is_not_tried_again() -> None:
    memory = _memory(BadShard(1, RefusedError("AccessDeniedException", "no")))
    export = _export(memory, "shards")
    with pytest.raises(ExportError) as raised:
        list(export)
    assert isinstance(raised.value.cause, RefusedError)
    assert memory.clock.naps == []


def test_a_shard_in_which_copies_are_looked_up_is_named_too() -> None:
    memory = _memory(shards=1)
    memory.store.set_layout("ORD", shards=2)
    layout = memory.store.layout("ORD")
    assert layout is not None
    memory.store.write(events_every(timedelta(seconds=7), 20))
    memory.wrap = BadShard(1, ERRORS[0])
    found, failed = _until_failure(_export(memory, "shards", timeout=1))
    assert failed.partition_key == "ORD#1"
    assert found
    assert len(found) < 200


def test_an_unreadable_layout_is_a_storage_error_and_no_empty_export() -> None:
    def fail(operation: str, request: Mapping[str, Any], /) -> dict[str, Any]:
        raise ThrottledError("ThrottlingException", f"{operation} {len(request)}")

    memory = _memory()
    memory.wrap = lambda _: fail
    export = _export(memory, "shards", timeout=1)
    for _ in range(2):
        with pytest.raises(ThrottledError):
            export.chunk()
    assert not export.complete


@pytest.mark.parametrize("mode", MODES)
def test_nothing_is_sent_after_the_time_is_up(mode: str) -> None:
    memory = _memory()
    bad = BadShard(2, ERRORS[0], after=1, slow=lambda: memory.clock.sleep(0.5))
    memory.wrap = bad
    began = memory.clock.seconds
    export = _export(memory, mode, max_seconds=4)
    chunk = export.chunk()
    assert chunk.records
    assert isinstance(export.failure, ExportError)
    assert memory.clock.seconds - began <= 4.5


def test_time_that_is_up_between_turns_stops_the_export_with_a_cursor() -> None:
    memory = _memory()

    def slow(call: Call) -> Call:
        def wait(operation: str, request: Mapping[str, Any], /) -> dict[str, Any]:
            memory.clock.sleep(1)
            return call(operation, request)

        return wait

    memory.wrap = lambda call: slow(small_pages(call, 10))
    found: list[Any] = []
    cursor = None
    while True:
        export = _export(memory, "shards", cursor=cursor, max_seconds=9)
        found += [event.id for event in export]
        cursor = export.cursor
        if cursor is None:
            break
        assert (export.stopped, export.failure) == ("deadline", None)
    assert sorted(found) == sorted(IDS)


@pytest.mark.parametrize("mode", MODES)
def test_read_units_are_bounded_and_the_bound_is_said(mode: str) -> None:
    memory = _memory()

    def metered(call: Call) -> Call:
        def count(operation: str, request: Mapping[str, Any], /) -> dict[str, Any]:
            response = call(operation, request)
            if operation == "Query":
                assert request["ReturnConsumedCapacity"] == "TOTAL"
                response["ConsumedCapacity"] = {"CapacityUnits": 2.0}
            return response

        return count

    memory.wrap = lambda call: metered(small_pages(call, 10))
    export = _export(memory, mode, max_rcu=12)
    found = [event.id for event in export]
    assert (export.stopped, export.complete) == ("read_units", False)
    assert 12 <= export.spent.read_units < 12 + 4 * 2
    assert export.spent.read_units == 2 * export.spent.requests
    found += [event.id for event in _export(memory, mode, cursor=export.cursor)]
    assert sorted(map(str, found)) == sorted(IDS)


@pytest.mark.parametrize("mode", MODES)
def test_an_export_gets_on_by_one_turn_though_little_time_is_left(mode: str) -> None:
    memory = _memory()
    memory.wrap = lambda call: small_pages(call, 10)
    export = _export(memory, mode, max_seconds=10)
    memory.clock.sleep(6)
    assert len(list(export)) > 0
    assert (export.stopped, export.complete) == ("deadline", False)
