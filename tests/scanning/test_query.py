from datetime import datetime, timedelta
from typing import Any

import pytest

from spillway import Event, InvalidInputError
from spillway.scanning.query import MAX_LIMIT
from tests.support.fakes import NOON
from tests.support.stores import HOUR, MemoryStore, event_at

MICRO = timedelta(microseconds=1)


def _refusal(series: Any = "ORD", **change: Any) -> tuple[str, str]:
    query = {"start": NOON - HOUR, "end": NOON, **change}
    with pytest.raises(InvalidInputError) as caught:
        MemoryStore().store.read(series, **query)
    return caught.value.code, caught.value.where


@pytest.mark.parametrize(
    ("change", "where"),
    [
        ({"series": ""}, "series"),
        ({"series": "x" * 1_025}, "series"),
        ({"series": "\ud800"}, "series"),
        ({"series": None}, "series"),
        ({"sharding_key": ""}, "sharding_key"),
        ({"sharding_key": "é" * 257}, "sharding_key"),
        ({"sharding_key": 7}, "sharding_key"),
        ({"start": datetime(2026, 6, 1)}, "start"),  # noqa: DTZ001
        ({"start": "2026-06-01T00:00:00Z"}, "start"),
        ({"end": datetime(2026, 6, 2)}, "end"),  # noqa: DTZ001
        ({"end": None}, "end"),
        ({"end": NOON - HOUR}, "start"),
        ({"end": NOON - HOUR - MICRO}, "start"),
        ({"limit": 0}, "limit"),
        ({"limit": -1}, "limit"),
        ({"limit": MAX_LIMIT + 1}, "limit"),
        ({"order": "up"}, "order"),
        ({"order": ""}, "order"),
        ({"source": "cache"}, "source"),
        ({"source": "index", "consistent": True}, "source"),
    ],
)
def test_each_wrong_parameter_of_a_read_is_named(change: dict[str, Any], where: str) -> None:
    assert _refusal(**change) == ("invalid_query", where)


def test_a_cursor_that_is_none_of_ours_is_named() -> None:
    assert _refusal(cursor="garbage") == ("invalid_cursor", "cursor")


def test_a_wrong_read_sends_no_request() -> None:
    memory = MemoryStore()
    with pytest.raises(InvalidInputError):
        memory.store.read("ORD", NOON, NOON)
    assert memory.table.counts == {}


def test_a_range_of_one_microsecond_is_read() -> None:
    memory = MemoryStore()
    memory.store.write(
        [event_at(NOON - MICRO, "before"), event_at(), event_at(NOON + MICRO, "after")]
    )
    page = memory.store.read("ORD", NOON, NOON + MICRO)
    assert [event.id for event in page.events] == ["1"]


@pytest.mark.parametrize(
    ("change", "where"),
    [
        ({"series": ""}, "series"),
        ({"time": datetime(2026, 6, 1)}, "time"),  # noqa: DTZ001
        ({"event_id": ""}, "id"),
        ({"event_id": "a#b"}, "id"),
        ({"event_id": "x" * 129}, "id"),
        ({"event_id": None}, "id"),
        ({"sharding_key": ""}, "sharding_key"),
    ],
)
def test_each_wrong_part_of_an_identity_is_named(change: dict[str, Any], where: str) -> None:
    identity: dict[str, Any] = {"series": "ORD", "time": NOON, "event_id": "1", **change}
    with pytest.raises(InvalidInputError) as caught:
        MemoryStore().store.read_one(**identity)
    assert (caught.value.code, caught.value.where) == ("invalid_query", where)


def test_what_was_written_can_be_read_by_its_identity() -> None:
    memory = MemoryStore()
    written = Event(series="a#1", time=NOON, id="é", sharding_key="#", payload={"n": 1})
    memory.store.write([written])
    assert memory.store.read_one("a#1", NOON, "é", sharding_key="#") == written
    assert memory.store.read_one("a#1", NOON, "é") is None
    assert memory.store.read_one("a", NOON, "é", sharding_key="#") is None
