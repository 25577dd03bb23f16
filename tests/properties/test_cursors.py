"""Damaged, foreign and forged cursors: each is refused as invalid, or goes on where it says, with right figures."""

from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spillway import Event, InvalidInputError, Settings
from spillway.aggregating.aggregate import AggregateRow
from spillway.aggregating.query import AggregateQuery
from spillway.keys import sort_key
from spillway.scanning.cursor import decode_cursor
from spillway.scanning.export_position import ExportCursors, ExportMode
from spillway.scanning.query import ReadQuery
from spillway.timestamps import format_time
from tests.support.cursors import bad_cursors
from tests.support.fakes import NOON
from tests.support.stores import HOUR, MemoryStore, event_at

_EVENTS: Final = [
    event_at(
        NOON - (60 - n) * timedelta(minutes=5),
        f"{n:02}",
        sharding_key="k" if n % 7 == 0 else None,
        payload={"v": "x" if n % 5 == 1 else n},
    )
    for n in range(60)
]
_RANGES: Final = {
    "hours": (NOON - 6 * HOUR, NOON + HOUR),
    "all": (datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)),
}
_FILLS: Final = ("none", "zero", "previous", "linear")
_MODES: Final = tuple(mode.value for mode in ExportMode)


@cache
def _memory() -> MemoryStore:
    memory = MemoryStore(Settings(shards=4, index_shards=2))
    assert not memory.store.write(_EVENTS).rejected
    return memory


def _stored_key(event: Event) -> str:
    assert event.id is not None
    return sort_key(format_time(event.time), event.sharding_key, event.id)


def _query(span: str, order: str = "asc") -> ReadQuery:
    return ReadQuery.checked(
        "ORD", *_RANGES[span], order=order, sharding_key=None, source="auto", consistent=False
    )


def _page(span: str, order: str, **options: Any) -> Any:
    return _memory().store.read(
        "ORD", *_RANGES[span], order=order, limit=7, **{"consistent": False, **options}
    )


def _question(fill: str) -> dict[str, Any]:
    return {
        "interval": timedelta(minutes=20),
        "field": "v",
        "functions": ["count", "sum", "min", "last", "p50"],
        "fill": fill,
    }


def _aggregate(fill: str, **options: Any) -> Any:
    start, end = _RANGES["hours"]
    return _memory().store.aggregate("ORD", start, end, **_question(fill), **options)


def _export(mode: str, cursor: str | None = None) -> Any:
    return _memory().store.export("ORD", *_RANGES["hours"], mode=mode, cursor=cursor)


def _pages_binding(span: str, order: str) -> str:
    return _query(span, order).binding


def _rows_binding(fill: str) -> str:
    return AggregateQuery.checked(_query("hours"), **_question(fill)).binding


def _export_binding(mode: str) -> str:
    return ExportCursors(_query("hours"), ExportMode(mode))._binding  # noqa: SLF001


@cache
def _cursors() -> list[str]:
    """Return cursors of answers of all kinds."""
    found = [_page(span, order).cursor for span in _RANGES for order in ("asc", "desc")]
    found += [_aggregate(fill, limit=3).cursor for fill in _FILLS]
    for mode in _MODES:
        export = _export(mode)
        export.chunk(400)
        found.append(export.cursor)
    return [cursor for cursor in found if cursor is not None]


def _bad(*bindings: str) -> st.SearchStrategy[str]:
    return st.deferred(lambda: bad_cursors(_cursors(), bindings))


def _answer(ask: Callable[[], Any]) -> Any:
    """Return an answer, None where the cursor was refused."""
    try:
        return ask()
    except InvalidInputError as raised:
        error = raised
    assert (error.code, error.where) == ("invalid_cursor", "cursor")
    assert str(error).isprintable()
    return None


@pytest.mark.parametrize("order", ["asc", "desc"])
@pytest.mark.parametrize(
    ("span", "read"), [("hours", "table"), ("hours", "index"), ("hours", "auto"), ("all", "table")]
)
@given(st.data())
def test_a_page_goes_on_where_its_cursor_says_or_refuses_it(
    span: str, read: str, order: str, data: st.DataObject
) -> None:
    binding = _pages_binding(span, order)
    other = _pages_binding(span, "asc" if order == "desc" else "desc")
    cursor = data.draw(_bad(binding, other, _rows_binding("none"), _export_binding("shards")))

    def collect() -> list[Event]:
        page = _page(span, order, cursor=cursor, source=read)
        events = list(page.events)
        while page.cursor is not None:
            page = _page(span, order, cursor=page.cursor, source=read)
            events += page.events
        return events

    found = _answer(collect)
    if found is None:
        return
    position = decode_cursor(cursor, binding)
    if order == "asc":
        expected = [each for each in _EVENTS if _stored_key(each) > position]
    else:
        expected = [each for each in reversed(_EVENTS) if _stored_key(each) < position]
    assert found == expected


@cache
def _whole(fill: str) -> list[AggregateRow]:
    return list(_aggregate(fill).rows)


@pytest.mark.parametrize("fill", _FILLS)
@given(st.data())
def test_rows_go_on_where_their_cursor_says_or_it_is_refused(
    fill: str, data: st.DataObject
) -> None:
    binding = _rows_binding(fill)
    cursor = data.draw(_bad(binding, _rows_binding("null"), _pages_binding("hours", "asc")))
    page = _answer(lambda: _aggregate(fill, cursor=cursor))
    if page is None:
        return
    begin = decode_cursor(cursor, binding)
    assert list(page.rows) == [row for row in _whole(fill) if format_time(row.start) >= begin]
    assert page.cursor is None


@pytest.mark.parametrize("mode", _MODES)
@given(st.data())
def test_an_export_goes_on_where_its_cursor_says_or_refuses_it(
    mode: str, data: st.DataObject
) -> None:
    binding = _export_binding(mode)
    others = [_export_binding(other) for other in _MODES if other != mode]
    cursor = data.draw(_bad(binding, *others, _rows_binding("none"), _pages_binding("all", "asc")))
    found = _answer(lambda: list(_export(mode, cursor)))
    if found is None:
        return
    assert all(event in _EVENTS for event in found)
    assert set(Counter(map(_stored_key, found)).values()) <= {1}
    first, width, _, after = decode_cursor(cursor, binding).split(":", 3)
    if (first, width) == ("0", "256"):
        assert found == [each for each in _EVENTS if _stored_key(each) > after]


@pytest.mark.parametrize("cursor", [7, b"AAAA", ["x"], 1.5])
def test_a_cursor_that_is_no_text_is_refused(cursor: Any) -> None:
    assert _answer(lambda: _page("hours", "asc", cursor=cursor)) is None
    assert _answer(lambda: _aggregate("none", cursor=cursor)) is None
    assert _answer(lambda: _export("shards", cursor)) is None


@pytest.mark.parametrize("order", ["asc", "desc"])
def test_an_index_page_that_ends_before_its_first_events_has_a_cursor_that_is_taken(
    order: str,
) -> None:
    """The index's first bucket begins before the range, its last one ends after it."""
    memory = _memory()
    start, end = NOON - 30 * HOUR + timedelta(minutes=7), NOON + 30 * HOUR + timedelta(minutes=7)
    asked: dict[str, Any] = {"order": order, "source": "index", "consistent": False}
    found: list[Event] = []
    cursors: list[str | None] = [None]
    while len(cursors) < 200:
        page = memory.another().read("ORD", start, end, cursor=cursors[-1], max_rcu=1, **asked)
        found += page.events
        cursors.append(page.cursor)
        if page.cursor is None:
            break
    assert len(cursors) > 10
    assert found == (_EVENTS if order == "asc" else _EVENTS[::-1])
