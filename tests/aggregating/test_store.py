"""Through the store: neither shards nor epochs, late data, copies, budgets or faults show in the rows."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import count, pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spillway import (
    AggregatePage,
    AggregateRow,
    Event,
    EventStore,
    InvalidInputError,
    Settings,
    ThrottledError,
)
from spillway.aggregating.functions import PERCENTILES, AggregateFunction, Fill
from spillway.dynamodb.port import Call
from spillway.timestamps import format_time
from tests.aggregating.world import ask, expected_rows, record, shown
from tests.support.fakes import NOON
from tests.support.layouts import epoch, store_layout
from tests.support.memory_table import EVENTS
from tests.support.stores import DAY, HOUR, MemoryStore, event_at, events_every
from tests.support.strategies import ranges, recent_times

START, END = NOON - 6 * HOUR, NOON + HOUR
ALL = tuple(AggregateFunction)
EXACT = tuple(each for each in AggregateFunction if each not in PERCENTILES)
MINUTE = timedelta(minutes=1)
Span = tuple[datetime, datetime]

spans = st.just((START, END)) | ranges(START, END)
fills = st.sampled_from([each.value for each in Fill])
intervals = st.sampled_from([7 * MINUTE, 20 * MINUTE, HOUR, DAY])
numbers = st.integers(-50, 50) | st.floats(-1e9, 1e9) | st.sampled_from([None, "x", True])
identities = st.tuples(recent_times, st.integers(0, 3), st.none() | st.sampled_from(["k", "é#1"]))


@st.composite
def event_lists(draw: st.DrawFn) -> list[Event]:
    chosen = draw(st.lists(identities, max_size=25, unique=True))
    return [
        event_at(time, str(number), "s", sharding_key=key, payload={"v": draw(numbers)})
        for time, number, key in chosen
    ]


def _rows(store: EventStore, span: Span = (START, END), **question: Any) -> list[AggregateRow]:
    return [row for page in _pages(store, span, **question) for row in page.rows]


def _pages(store: EventStore, span: Span = (START, END), **question: Any) -> list[AggregatePage]:
    pages = [store.aggregate("s", *span, **question)]
    while pages[-1].cursor is not None:
        pages.append(store.aggregate("s", *span, cursor=pages[-1].cursor, **question))
        assert len(pages) < 2_000
    return pages


def _expected(events: list[Event], span: Span, **question: Any) -> list[AggregateRow]:
    kept = [record(e.time, f"{e.sharding_key or ''}#{e.id}", e.payload) for e in events]
    path, interval = question.pop("field"), question.pop("interval")
    return expected_rows(kept, ask(*span, interval, path=path, **question))


@given(
    event_lists(), spans, intervals, fills, st.integers(1, 30), st.sampled_from(["table", "index"])
)
def test_any_number_of_shards_gives_the_same_bytes(  # noqa: PLR0917
    events: list[Event], span: Span, interval: timedelta, fill: str, limit: int, read: str
) -> None:
    answers = set()
    for shards in (1, 4, 16, 64):
        memory = MemoryStore(Settings(shards=shards, index_shards=min(shards, 4)))
        assert not memory.store.write(events).rejected
        answers.add(
            shown(
                _rows(
                    memory.another(),
                    span,
                    interval=interval,
                    field="v",
                    functions=ALL,
                    fill=fill,
                    limit=limit,
                    source=read,
                    consistent=False,
                )
            )
        )
    assert len(answers) == 1


@dataclass(frozen=True)
class Grown:
    """Events written under one layout after the other, some of them under both."""

    early: list[Event]
    late: list[Event]
    counts: tuple[int, int]

    def play(self) -> MemoryStore:
        memory = MemoryStore()
        old, new = (epoch(n + 1, shards=shards) for n, shards in enumerate(self.counts))
        for each, events in ((old, self.early), (new, self.late)):
            store_layout(memory.table, [each], series="s")
            assert not memory.another().write(events).rejected
        store_layout(memory.table, [old, new], series="s")
        return memory

    @property
    def events(self) -> list[Event]:
        return list({(e.time, e.sharding_key, e.id): e for e in self.early + self.late}.values())


@st.composite
def grown(draw: st.DrawFn) -> Grown:
    events = draw(event_lists())
    early = [event for event in events if draw(st.booleans())]
    late = [event for event in events if event not in early or draw(st.booleans())]
    shards = st.sampled_from([1, 2, 8, 32])
    return Grown(early, draw(st.permutations(late)), (draw(shards), draw(shards)))


@given(grown(), spans, intervals, fills, st.integers(1, 9))
def test_copies_under_two_epochs_and_late_events_count_once(
    grown: Grown, span: Span, interval: timedelta, fill: str, limit: int
) -> None:
    asked: dict[str, Any] = {"interval": interval, "field": "v", "fill": fill}
    functions = ("count", "min", "max", "first", "last")
    found = _rows(grown.play().another(), span, limit=limit, functions=functions, **asked)
    expected = _expected(grown.events, span, functions=functions, **asked)
    assert [(row.start, row.skipped) for row in found] == [
        (row.start, row.skipped) for row in expected
    ]
    for row, wanted in zip(found, expected, strict=True):
        for name in functions:
            assert row[name] == (None if wanted[name] is None else pytest.approx(wanted[name]))


@given(ranges(START, END), intervals, fills, st.lists(st.booleans(), min_size=1, max_size=30))
def test_requests_that_fail_change_no_row(
    span: Span, interval: timedelta, fill: str, drawn: list[bool]
) -> None:
    fates: list[bool] = []

    def flaky(call: Call) -> Call:
        def through(operation: str, request: Mapping[str, Any], /) -> dict[str, Any]:
            if fates and fates.pop():
                raise ThrottledError("ThrottlingException", "")
            return call(operation, request)

        return through

    memory = MemoryStore(Settings(shards=32), wrap=flaky)
    memory.store.write(events_every(7 * MINUTE, 60, until=END, series="s"))
    store = memory.another()
    # Shows how few events there are, so that plans begin with the index.
    store.read("s", *span, consistent=False)
    fates += drawn
    asked: dict[str, Any] = {"interval": interval, "field": "n", "functions": EXACT, "fill": fill}
    found = _rows(store, span, consistent=False, timeout=1_000, **asked)
    assert shown(found) == shown(_rows(memory.store, span, **asked))


@given(event_lists(), spans, intervals, fills, st.floats(0.5, 6), st.sampled_from([1, 4]))
def test_any_budget_of_read_units_comes_to_the_same_rows_or_says_why_not(  # noqa: PLR0917
    events: list[Event], span: Span, interval: timedelta, fill: str, units: float, shards: int
) -> None:
    memory = MemoryStore(Settings(shards=shards))
    memory.store.write(events)
    asked: dict[str, Any] = {"interval": interval, "field": "v", "functions": EXACT, "fill": fill}
    whole = _rows(memory.store, span, **asked)
    refused, pages = "", []
    try:
        pages = _pages(memory.another(), span, max_rcu=units, consistent=False, **asked)
    except InvalidInputError as error:
        refused = f"{error.code} {error.where}"
    assert refused in {"", "invalid_query max_rcu", "interval_too_long interval"}
    if not refused:
        assert shown([row for page in pages for row in page.rows]) == shown(whole)


@pytest.mark.parametrize("fill", ["none", "previous"])
def test_a_page_that_reaches_its_read_units_ends_with_its_last_whole_row(fill: str) -> None:
    memory = MemoryStore()
    text = "x" * 3_000
    memory.store.write(
        event_at(START + n * MINUTE, f"{n}", "s", v=n, text=text) for n in range(150)
    )
    store = memory.another()
    asked: dict[str, Any] = {"field": "v", "functions": EXACT, "fill": fill}
    whole = _rows(memory.another(), interval=5 * MINUTE, **asked)
    store.read("s", START, END, limit=1)  # shows how large they are
    pages = _pages(store, interval=5 * MINUTE, max_rcu=20, **asked)
    assert len(pages) > 3
    assert shown([row for page in pages for row in page.rows]) == shown(whole)
    assert {page.reason for page in pages[:-1]} == {"read_units"}
    assert all(page.missing[0].partition == "s#0" for page in pages[:-1])
    assert all(page.spent.read_units <= 20 for page in pages)
    with pytest.raises(InvalidInputError, match="interval: holds more events"):
        _pages(store, interval=HOUR, max_rcu=20, **asked)


def test_rows_up_to_the_deadline_are_given_with_a_cursor_for_the_rest() -> None:
    memory = MemoryStore()
    memory.wrap = lambda call: _slow(call, memory)
    events = events_every(MINUTE, 400, series="s")
    for at in range(0, 400, 100):
        memory.store.write(events[at : at + 100])
    asked: dict[str, Any] = {"interval": 10 * MINUTE, "field": "n"}
    whole = _rows(memory.another(), timeout=10_000, **asked)
    pages = _pages(memory.another(), timeout=4, source="index", consistent=False, **asked)
    assert {page.reason for page in pages[:-1]} <= {"deadline", "DeadlinePassed"}
    assert not any(page.complete for page in pages[:-1])
    assert len(pages) > 1
    assert shown([row for page in pages for row in page.rows]) == shown(whole)


def _slow(call: Call, memory: MemoryStore) -> Call:
    def slow(operation: str, request: Mapping[str, Any], /) -> dict[str, Any]:
        memory.clock.forward(timedelta(seconds=1 if operation == "Query" else 0))
        return call(operation, request)

    return slow


def test_a_shard_that_fails_midway_is_named_and_its_rows_come_with_the_cursor() -> None:
    numbers = count()

    def failing(call: Call) -> Call:
        def through(operation: str, request: Mapping[str, Any], /) -> dict[str, Any]:
            if operation == "Query" and "ExclusiveStartKey" in request and next(numbers) < 40:
                raise ThrottledError("ThrottlingException", "")
            return call(operation, request)

        return through

    memory = MemoryStore(Settings(shards=2), wrap=failing)
    padding = "x" * 20_000  # more than one answer's megabyte a shard
    events = [event_at(START + n * MINUTE, f"{n}", "s", v=n, text=padding) for n in range(300)]
    for at in range(0, 300, 25):
        assert not memory.store.write(events[at : at + 25]).rejected
    asked: dict[str, Any] = {"interval": 10 * MINUTE, "field": "v", "functions": ALL}
    pages = _pages(memory.another(), timeout=2, **asked)
    assert pages[0].reason == "ThrottlingException"
    assert {each.error for each in pages[0].missing} == {"ThrottlingException"}
    assert 0 < len(pages[0].rows) < 30
    rows = [row for page in pages for row in page.rows]
    assert [row["count"] for row in rows] == [10] * 30
    assert [row["first"] for row in rows] == list(range(0, 300, 10))


def test_expired_events_are_in_no_row() -> None:
    memory = MemoryStore(Settings(retention=DAY))
    memory.store.write(events_every(HOUR, 6, until=NOON + MINUTE, series="s"))
    memory.clock.forward(timedelta(hours=21))
    (row,) = _rows(memory.another())
    assert row["count"] == 3
    assert len(memory.table.items[EVENTS]) == 6


def test_one_sharding_key_is_aggregated_alone() -> None:
    memory = MemoryStore(Settings(shards=4))
    memory.store.write(
        event_at(START, str(n), "s", sharding_key=f"k{n % 3}", v=n) for n in range(9)
    )
    (row,) = _rows(memory.store, field="v", functions=["sum", "count"], sharding_key="k1")
    assert dict(row.values) == {"sum": 12, "count": 3}


def test_an_unknown_series_has_no_events_and_rows_only_where_they_are_filled() -> None:
    store = MemoryStore().store
    assert _rows(store, interval=HOUR) == []
    assert [row["count"] for row in _rows(store, interval=HOUR, fill="null")] == [0] * 7


def test_a_cursor_goes_on_while_shards_grow_and_shrink_and_events_arrive_elsewhere() -> None:
    memory = MemoryStore(Settings(shards=4))
    events = events_every(MINUTE, 300, series="s")
    memory.store.write(events)
    asked: dict[str, Any] = {"interval": 10 * MINUTE, "field": "n", "functions": ALL, "limit": 3}
    whole = _rows(memory.another(), **asked)
    found: list[AggregateRow] = []
    cursor = None
    for shards in (16, 1, 64, 2, 8, 4, 32, 1, 16, 128):
        page = memory.another().aggregate("s", START, END, cursor=cursor, **asked)
        found += page.rows
        cursor = page.cursor
        memory.another().set_layout("s", shards=shards)
        assert not memory.another().write(events[:20]).rejected  # once more
        memory.another().write([event_at(END + MINUTE * shards, "new", "s")])
    assert shown(found) == shown(whole[: len(found)])
    assert len(found) == 30


def test_days_begin_at_midnight_and_weeks_on_mondays_in_utc() -> None:
    memory = MemoryStore()
    memory.store.write(events_every(timedelta(hours=7), 100, series="s"))
    begin, end = NOON - 20 * DAY, NOON
    for interval, hours in ((DAY, 24), (timedelta(weeks=1), 168), (8 * HOUR, 8)):
        rows = memory.store.aggregate("s", begin, end, interval=interval, fill="null").rows
        starts = [row.start for row in rows]
        assert {(later - earlier) for earlier, later in pairwise(starts)} == {hours * HOUR}  # fmt: skip
        assert starts[0] <= begin < starts[0] + interval
        assert starts[-1] < end <= starts[-1] + interval
        assert {start.hour % hours if hours < 24 else start.hour for start in starts} == {0}
        if hours == 168:
            assert {start.weekday() for start in starts} == {0}


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"interval": timedelta(0)}, "interval: must be a timedelta above 0"),
    ({"interval": 60}, "interval: must be a timedelta above 0"),
    ({"field": ""}, "field: must be 1 to 1,024 bytes"),
    ({"field": 7}, "field: must be 1 to 1,024 bytes"),
    ({"field": "é" * 513}, "field: must be 1 to 1,024 bytes"),
    ({"field": "a..b"}, "field: must be keys parted by dots"),
    ({"field": ".a"}, "field: must be keys parted by dots"),
    ({"field": "a."}, "field: must be keys parted by dots"),
    ({"field": 'a"b'}, "field: must be keys parted by dots"),
    ({"field": "a\\b"}, "field: must be keys parted by dots"),
    ({"field": "a\nb"}, "field: must be keys parted by dots"),
    ({"field": ".".join("a" * 33)}, "field: must be at most 32 keys deep"),
    ({"field": None, "functions": ["avg"]}, "field: is missing"),
    ({"functions": []}, "functions: must be some of count, sum"),
    ({"functions": ["median"]}, "functions: must be some of count, sum"),
    ({"functions": "avg,max"}, "functions: must be some of count, sum"),
    ({"fill": "next"}, "fill: must be one of none, null"),
    ({"limit": 0}, "limit: must be 1 to 10,000"),
    ({"limit": 10_001}, "limit: must be 1 to 10,000"),
    ({"max_rcu": 0}, "max_rcu: must be greater than 0"),
    ({"source": "index"}, "source: an index has no consistent reads"),
    ({"sharding_key": ""}, "sharding_key: must be 1 to 512 bytes"),
]


@pytest.mark.parametrize(("change", "said"), WRONG, ids=lambda value: str(value)[:30])
def test_each_wrong_parameter_is_named(change: dict[str, Any], said: str) -> None:
    memory = MemoryStore()
    with pytest.raises(InvalidInputError) as raised:
        memory.store.aggregate("s", START, END, **{"interval": HOUR, "field": "v", **change})
    assert str(raised.value).startswith(said)
    assert not memory.table.requests_of("Query")


PATHS: list[tuple[str, Any, int | None]] = [
    ("a", {"a": 1}, 1),
    ("a.b", {"a": {"b": 2}}, 2),
    ("a.b.c", {"a": {"x": 1, "b": {"c": 3, "d": 1}}}, 3),
    ("a.b", {"a.b": 4}, None),
    (r"a\.b", {"a.b": 5, "a": {"b": 6}}, 5),
    (r"a\.b.c\.d", {"a.b": {"c.d": 7}}, 7),
    ("a.b", {"a": 8}, None),
    ("a.b", {"a": [{"b": 8}]}, None),
    ("a.0", {"a": [8]}, None),
    ("a.b", {"a": None}, None),
    ("a.b", {}, None),
    ("日本.é ", {"日本": {"é ": 9}}, 9),
    ("a'b", {"a'b": 10}, 10),
    ("value", {"value": 11}, 11),
]


@pytest.mark.parametrize(("path", "payload", "value"), PATHS)
def test_a_path_leads_through_objects_by_their_keys(path: str, payload: Any, value: Any) -> None:
    memory = MemoryStore()
    memory.store.write([event_at(START, "1", "s", payload=payload or {"other": 1})])
    (row,) = _rows(memory.store, field=path, functions=["last", "count"])
    assert (row["last"], row["count"], row.skipped) == (value, int(value is not None), int(value is None))  # fmt: skip


@pytest.mark.parametrize("value", [2**53 + 1, -(2**63), 2**64, 10**300, 5e-324, 1e308, -0.5])
def test_numbers_stay_as_they_are(value: float) -> None:
    memory = MemoryStore()
    memory.store.write([event_at(START, "1", "s", v=value)])
    (row,) = _rows(memory.store, field="v", functions=["sum", "min", "max", "first", "last"])
    assert [repr(each) for each in row.values.values()] == [repr(value)] * 5


FILLED: dict[str, list[float | None]] = {
    "none": [None, 10, None, 40, None],
    "null": [None, None, 10, None, None, 40, None, None],
    "zero": [0, 0, 10, 0, 0, 40, 0, 0],
    "previous": [None, None, 10, 10, 10, 40, 40, 40],
    "linear": [None, None, 10, 20, 30, 40, None, None],
}


@pytest.mark.parametrize("fill", FILLED)
@pytest.mark.parametrize("limit", [1, 2, 3, 8])
def test_intervals_without_numbers_are_filled_and_still_count_what_they_skip(
    fill: str, limit: int
) -> None:
    """Hours: nothing, text, 10, text, nothing, 40, nothing, text."""
    memory, begin = MemoryStore(), NOON - 8 * HOUR
    values = {1: "x", 2: 10, 3: "x", 5: 40, 7: "x"}
    memory.store.write(event_at(begin + n * HOUR, f"{n}", "s", v=v) for n, v in values.items())
    rows: list[AggregateRow] = []
    cursor = None
    while True:
        page = memory.store.aggregate(
            "s", begin, NOON, interval=HOUR, field="v", fill=fill, limit=limit, cursor=cursor
        )
        rows += page.rows
        cursor = page.cursor
        if cursor is None:
            break
    assert [row["avg"] for row in rows] == FILLED[fill]
    hours = [(row.start - begin) // HOUR for row in rows]
    assert hours == ([1, 2, 3, 5, 7] if fill == "none" else list(range(8)))
    assert [hour for hour, row in zip(hours, rows, strict=True) if row.skipped] == [1, 3, 7]
    assert [hour for hour, row in zip(hours, rows, strict=True) if row["count"]] == [2, 5]


@pytest.mark.parametrize("value", [None, True, "7", [1], {"v": 1}, 10**309, -(10**400)])
def test_what_is_no_number_is_skipped(value: Any) -> None:
    memory = MemoryStore()
    memory.store.write([event_at(START, "1", "s", v=value), event_at(START, "2", "s", v=7)])
    (row,) = _rows(memory.store, field="v", functions=ALL)
    assert (row.skipped, row["count"], row["avg"], row["max"]) == (1, 1, 7, 7)


def test_rows_at_the_ends_of_time_are_made() -> None:
    memory = MemoryStore()
    first, last = NOON.replace(year=1, month=1, day=1, hour=0), NOON.replace(year=9999, month=12, day=31, hour=23)  # fmt: skip
    for interval in (timedelta(weeks=1), timedelta(days=999_999_999), HOUR, timedelta(hours=36)):
        page = memory.store.aggregate("s", first, first + HOUR, interval=interval, fill="null")
        assert format_time(page.rows[0].start) == format_time(first)
        page = memory.store.aggregate("s", last, last + 59 * MINUTE, interval=interval, fill="zero")
        assert [row["count"] for row in page.rows] == [0]
