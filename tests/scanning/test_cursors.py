import base64
from datetime import timedelta
from itertools import islice

import pytest
import xxhash
from hypothesis import given
from hypothesis import strategies as st

from spillway import InvalidInputError, Settings
from spillway.keys import sort_key
from spillway.scanning.export_position import ExportCursors, ExportMode, ExportPosition
from spillway.scanning.query import ReadQuery
from spillway.timestamps import format_time
from tests.scanning.world import END, START
from tests.support.fakes import NOON
from tests.support.stores import MemoryStore, events_every

MODES = [mode.value for mode in ExportMode]


def _positions(mode: str = "shards", series: str = "ORD") -> ExportCursors:
    query = ReadQuery.checked(
        series, START, END, order="asc", sharding_key=None, source="table", consistent=True
    )
    return ExportCursors(query, ExportMode(mode))


@pytest.mark.parametrize("mode", MODES)
def test_the_longest_cursor_fits_into_a_url(mode: str) -> None:
    longest = sort_key(format_time(NOON), "é" * 256, "😀" * 32)
    for after in ("", format_time(NOON), longest):
        position = ExportPosition(255, 256, after)
        cursor = _positions(mode).encode(position)
        assert len(cursor) <= 930
        assert cursor.replace("-", "").replace("_", "").isalnum()
        assert _positions(mode).decode(cursor) == position


@pytest.mark.parametrize("mode", MODES)
def test_a_cursor_of_another_export_or_of_a_read_is_refused(mode: str) -> None:
    memory = MemoryStore(Settings(shards=2))
    memory.store.write(events_every(timedelta(minutes=1), 20))
    export = memory.store.export("ORD", START, END, mode=mode)
    assert len(export.chunk(1).records) == 1
    own = export.cursor
    page = memory.store.read("ORD", START, END, limit=1)
    others = [
        ("ORD", START, END, next(other for other in MODES if other != mode), own),
        ("LGA", START, END, mode, own),
        ("ORD", START + timedelta(seconds=1), END, mode, own),
        ("ORD", START, END + timedelta(seconds=1), mode, own),
        ("ORD", START, END, mode, page.cursor),
        ("ORD", START, END, mode, f"{own}x"),
        ("ORD", START, END, mode, ""),
        ("ORD", START, END, mode, "é"),
    ]
    for series, start, end, other, cursor in others:
        with pytest.raises(InvalidInputError) as raised:
            memory.store.export(series, start, end, mode=other, cursor=cursor)
        assert (raised.value.code, raised.value.where) == ("invalid_cursor", "cursor")
    with pytest.raises(InvalidInputError):
        memory.store.read("ORD", START, END, cursor=own)


def _forged(text: str) -> str:
    """Return a cursor that has the right check for what it says."""
    query = _positions()
    binding = query._binding  # noqa: SLF001
    check = xxhash.xxh64_digest(text.encode() + b"\0" + binding.encode())
    return base64.urlsafe_b64encode(check + text.encode()).rstrip(b"=").decode()


@given(
    st.sampled_from(["", ":", "::", "a:1:", "0:0:", "-1:1:", "0:257:", "257:1:", "0:1"])
    | st.text(max_size=40)
    | st.builds("0:1:{}".format, st.text(max_size=40))
    | st.just(f"0:1:{format_time(END)}#1")
    | st.just(f"0:1:{format_time(NOON)}#{'x' * 1_000}")
)
def test_a_forged_cursor_is_refused_or_names_a_point_of_the_range(text: str) -> None:
    try:
        position = _positions().decode(_forged(text))
    except InvalidInputError:
        return
    assert 0 <= position.first <= 256
    assert 1 <= position.width <= 256
    time = position.after[:27]
    assert not time or format_time(START) <= time < format_time(END)


def test_a_cursor_is_there_before_anything_is_read_and_gone_at_the_end() -> None:
    memory = MemoryStore(Settings(shards=2))
    memory.store.write(events_every(timedelta(minutes=1), 20))
    export = memory.store.export("ORD", START, END)
    again = memory.store.export("ORD", START, END, cursor=export.cursor)
    assert sum(1 for _ in again) == 20
    assert (again.cursor, again.complete) == (None, True)
    assert list(again) == []
    assert (export.complete, export.spent.requests) == (False, 0)


def test_an_iteration_that_stops_anywhere_goes_on_after_its_last_event() -> None:
    memory = MemoryStore(Settings(shards=4))
    memory.store.write(events_every(timedelta(minutes=1), 60))
    for mode in MODES:
        found: list[str | None] = []
        cursor = None
        while len(found) < 60:
            export = memory.another().export("ORD", START, END, mode=mode, cursor=cursor)
            found += [event.id for event in islice(export, 7)]
            cursor = export.cursor
        assert sorted(map(str, found)) == [f"{n:07d}" for n in range(60)]


@pytest.mark.parametrize(
    ("given_", "where"),
    [
        ({"mode": "random"}, "mode"),
        ({"pool": 0}, "pool"),
        ({"pool": 9}, "pool"),
        ({"max_rcu": 0}, "max_rcu"),
        ({"max_rcu": float("nan")}, "max_rcu"),
        ({"start": END}, "start"),
        ({"series": ""}, "series"),
    ],
)
def test_parameters_that_are_wrong_are_named_at_once(given_: dict[str, object], where: str) -> None:
    store = MemoryStore().store
    with pytest.raises(InvalidInputError) as raised:
        store.export(**{"series": "ORD", "start": START, "end": END, **given_})  # type: ignore[arg-type]
    assert raised.value.where == where


@pytest.mark.parametrize("mode", MODES)
def test_an_unknown_series_and_an_empty_range_have_no_events(mode: str) -> None:
    memory = MemoryStore(Settings(shards=2))
    memory.store.write(events_every(timedelta(minutes=1), 20))
    for series, end in (("LGA", END), ("ORD", START + timedelta(seconds=1))):
        export = memory.store.export(series, START, end, mode=mode)
        assert list(export.chunks()) == []
        assert export.complete
