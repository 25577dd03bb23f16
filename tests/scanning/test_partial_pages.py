"""Whatever fails: a page holds what is certain, says what is missing, and its cursor completes it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spillway import (
    Event,
    InvalidInputError,
    OutcomeUnknownError,
    Page,
    Settings,
    StorageError,
    ThrottledError,
    UnreachableError,
)
from spillway.dynamodb.port import Call
from spillway.dynamodb.retries import DeadlinePassedError
from spillway.scanning.pages import MAX_MISSING, to_event
from spillway.scanning.partitions import ScanPartition
from spillway.scanning.query import Order
from spillway.scanning.source_scan import missing_partitions
from tests.support.fakes import NOON
from tests.support.stores import DAY, MemoryStore, event_at, identity
from tests.support.strategies import orders, ranges

START, END = NOON - DAY, NOON
SOURCES = st.sampled_from(["table", "index", "auto"])
ERRORS = {
    "throttled": ThrottledError("ThrottlingException", "hot"),
    "unreachable": UnreachableError("EndpointConnectionError", "refused"),
    "timed out": OutcomeUnknownError("ReadTimeoutError", "late"),
}


@dataclass
class Broken:
    """A table of which some partitions fail from one of their requests on, until it is repaired."""

    call: Call
    faults: Mapping[str, tuple[int, str]]  # by the partition key's last digit
    asked: dict[str, int] = field(default_factory=dict)
    repaired: bool = False

    def __call__(self, operation: str, request: Mapping[str, Any], /) -> dict[str, Any]:
        if operation == "Query" and not self.repaired:
            key = request["ExpressionAttributeValues"][":p"]["S"]
            self.asked[key] = self.asked.get(key, 0) + 1
            after, error = self.faults.get(key[-1], (1_000, "throttled"))
            if self.asked[key] > after:
                raise ERRORS[error]
            request = {**request, "Limit": min(request["Limit"], 4)}  # so that shards run dry
        return self.call(operation, request)


faults = st.dictionaries(
    st.sampled_from("0123"), st.tuples(st.integers(0, 3), st.sampled_from(list(ERRORS))), max_size=2
)
minutes = st.lists(st.integers(1, 1_400), max_size=60, unique=True)
spans = st.just((START, END)) | ranges(START, END)


def _written(
    minutes: list[int], broken: dict[str, tuple[int, str]]
) -> tuple[MemoryStore, list[Event], list[Broken]]:
    made: list[Broken] = []

    def wrap(call: Call) -> Call:
        made.append(Broken(call, broken))
        return made[-1]

    memory = MemoryStore(Settings(shards=4, index_shards=4), wrap=wrap)
    events = sorted(
        (event_at(NOON - timedelta(minutes=n), f"{n:04}", n=n) for n in minutes),
        key=lambda event: event.time,
    )
    assert not memory.store.write(events).rejected
    return memory, events, made


def _within(events: list[Event], span: tuple[datetime, datetime], order: str) -> list[Event]:
    start, end = span
    inside = [event for event in events if start <= event.time < end]
    return inside if order == Order.ASCENDING else inside[::-1]


@given(minutes, faults, spans, orders, SOURCES, st.integers(1, 40))
def test_a_page_is_complete_or_says_what_is_missing_and_its_cursor_completes_it(  # noqa: PLR0917
    minutes: list[int],
    faults: dict[str, tuple[int, str]],
    span: tuple[datetime, datetime],
    order: str,
    read: str,
    limit: int,
) -> None:
    memory, events, made = _written(minutes, faults)
    expected = _within(events, span, order)
    store = memory.another()
    found: list[Event] = []
    cursor: str | None = None
    failures = 0
    while True:
        try:
            page = store.read(
                "ORD", *span, limit=limit, cursor=cursor, order=order, source=read, consistent=False
            )
        except StorageError:
            failures += 1
            if failures > 2:
                made[-1].repaired = True
            continue
        records = [to_event("ORD", record) for record in page.records]
        # In order, without a gap, whatever failed.
        assert records == expected[len(found) : len(found) + len(records)]
        found += records
        if page.complete:
            assert len(records) == limit or page.cursor is None
            assert (page.missing, page.missing_count) == ((), 0)
        else:
            assert len(page.missing) == min(page.missing_count, MAX_MISSING)
            assert page.cursor is not None
            assert page.missing
            assert any(each.error == page.reason for each in page.missing)
        if page.cursor is None:
            break
        assert page.cursor != cursor
        cursor = page.cursor
    assert found == expected


@given(minutes, spans, st.integers(1, 30), st.floats(2, 12), orders, SOURCES)
def test_a_budget_is_kept_and_its_pages_are_the_whole_range(  # noqa: PLR0917
    minutes: list[int],
    span: tuple[datetime, datetime],
    limit: int,
    max_rcu: float,
    order: str,
    read: str,
) -> None:
    memory, events, _ = _written(minutes, {})
    store = memory.another()
    found: list[Event] = []
    cursor: str | None = None
    while True:
        page = store.read(
            "ORD", *span, limit=limit, cursor=cursor, order=order, source=read,
            consistent=False, max_rcu=max_rcu, explain=True,
        )  # fmt: skip
        assert page.explanation.read_units <= max_rcu
        assert page.complete or page.reason == "read_units"
        found += page.events
        cursor = page.cursor
        if cursor is None:
            break
    assert found == _within(events, span, order)


def test_a_budget_that_does_not_suffice_for_one_round_is_refused() -> None:
    memory, _, _ = _written([1, 2, 3], {})
    with pytest.raises(InvalidInputError, match="max_rcu: must be 4 at least"):
        memory.store.read("ORD", START, END, max_rcu=3.5)


def test_what_is_missing_names_the_partition_the_place_and_the_error() -> None:
    memory, events, _ = _written(list(range(1, 200)), {"2": (1, "timed out")})
    page = memory.another().read("ORD", START, END, limit=150, source="table")
    (missing,) = page.missing
    assert (missing.partition, missing.error) == ("ORD#2", "ReadTimeoutError")
    assert page.reason == "ReadTimeoutError"
    last = page.records[-1].sort_key
    assert last <= missing.reached
    assert [identity(each) for each in page.events] == [identity(each) for each in events[: len(page.events)]]  # fmt: skip


@pytest.mark.parametrize("limit", [1, 40])
def test_past_the_soft_deadline_no_other_source_is_begun_and_the_throttle_is_told(
    limit: int,
) -> None:
    """One shard throttles, and another is out of reach until the time is nearly up."""
    faults = {"0": (1, "throttled"), "1": (1, "unreachable")}
    memory, events, made = _written([1, *range(61, 661, 10)], faults)
    store = memory.another()
    pages: list[Page] = []

    def read_on() -> None:
        cursor = pages[-1].cursor if pages else None
        page = store.read("ORD", START, END, limit=limit, cursor=cursor, consistent=False)
        pages.append(page)
        assert page.reason in {None, *(each.error for each in page.missing)}
        read_on()

    with pytest.raises(ThrottledError):  # once a page makes no progress
        read_on()
    found = [event for page in pages for event in page.events]
    assert found
    assert found == events[: len(found)]
    assert all(not key.startswith("ORD#2026") for key in made[-1].asked)


def test_of_much_that_is_missing_some_is_named_errors_first() -> None:
    def left(number: int, failure: StorageError) -> Any:
        partition = ScanPartition(f"ORD#{number}", "", on_index=False)
        return SimpleNamespace(partition=partition, reached="", failure=failure)

    failed = [left(n, DeadlinePassedError()) for n in range(200)]
    failed += [left(n, ERRORS["throttled"]) for n in range(200, 205)]
    leg: Any = SimpleNamespace(failed_streams=failed, merge=SimpleNamespace(next_partition=None))
    named, count = missing_partitions(leg)
    assert (len(named), count) == (MAX_MISSING, 205)
    assert [each.partition for each in named[:6]] == [
        *(f"ORD#{n}" for n in range(200, 205)),
        "ORD#0",
    ]
    assert [each.error for each in named[4:6]] == ["ThrottlingException", None]


def test_a_failure_behind_the_page_does_not_touch_it() -> None:
    memory, events, _ = _written(list(range(1, 200)), {"2": (1, "timed out")})
    page = memory.another().read("ORD", START, END, limit=5, source="table")
    assert page.complete
    assert list(page.events) == events[:5]


def test_a_walk_that_ends_between_two_buckets_names_the_next_one() -> None:
    clock: list[MemoryStore] = []

    def slow(call: Call) -> Call:
        def waiting(operation: str, request: Mapping[str, Any], /) -> dict[str, Any]:
            if clock and operation == "Query":
                clock[0].clock.forward(timedelta(seconds=1))
            return call(operation, request)

        return waiting

    memory = MemoryStore(wrap=slow)
    assert not memory.store.write([event_at(NOON - timedelta(minutes=1))]).rejected
    clock.append(memory)
    page = memory.another().read(
        "ORD", NOON - timedelta(hours=20), NOON, source="index", consistent=False, timeout=6
    )
    (missing,) = page.missing
    assert (page.complete, page.reason, missing.error) == (False, "deadline", None)
    assert page.cursor is not None
    assert missing.partition.startswith("ORD#2026-")
