import asyncio
from collections.abc import AsyncIterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from local.demo.client import ApiAnswer, ClientEvent
from local.demo.flights import FLIGHTS_FILE, read_flights
from local.demo.load import load_batches
from local.demo.verify import MismatchError, compare, verify
from tests.local.demo.answers import Played, accept, client_of, event, reject

EXPECTED = [event(f"{number:02}", number) for number in range(6)]


async def _paged(events: list[ClientEvent], sizes: list[int]) -> AsyncIterator[list[ClientEvent]]:
    start = 0
    for size in [*sizes, len(events)]:
        yield events[start : start + size]
        start += size


def read(found: list[ClientEvent], sizes: list[int]) -> int:
    told: list[int] = []
    count = asyncio.run(compare("ORD", EXPECTED, _paged(found, sizes), told.append))
    assert sum(told) == count
    return count


@given(st.lists(st.integers(0, 4), max_size=4))
def test_the_same_events_compare_equal_however_they_are_paged(sizes: list[int]) -> None:
    assert read(EXPECTED, sizes) == 6


@given(
    found=st.lists(st.sampled_from([*EXPECTED, event("x", 3)]), max_size=8).filter(
        lambda found: found != EXPECTED
    ),
    sizes=st.lists(st.integers(0, 4), max_size=4),
)
def test_events_that_differ_in_any_way_are_a_mismatch(
    found: list[ClientEvent], sizes: list[int]
) -> None:
    with pytest.raises(MismatchError) as raised:
        read(found, sizes)
    at = raised.value.position
    assert found[:at] == EXPECTED[:at]
    assert raised.value.expected == (EXPECTED[at] if at < 6 else None)
    assert raised.value.found == (found[at] if at < len(found) else None)
    assert raised.value.expected != raised.value.found


def test_a_mismatch_says_which_series_what_was_expected_and_what_was_found() -> None:
    changed: ClientEvent = {**EXPECTED[2], "payload": {"delay": 99}}
    with pytest.raises(MismatchError) as raised:
        read([*EXPECTED[:2], changed, *EXPECTED[3:]], [])
    text = str(raised.value)
    assert text.startswith("ORD: event 2 ")
    assert str(EXPECTED[2]) in text
    assert str(changed) in text


def test_every_series_is_compared_and_its_flights_counted() -> None:
    flights = read_flights(FLIGHTS_FILE, 40)
    busiest_first = [
        ApiAnswer(200, {"events": [each.event() for each in flights.of(origin)], "cursor": None})
        for origin in flights.origins()
    ]
    told: list[int] = []
    played = Played(busiest_first)
    verified = asyncio.run(verify(client_of(played), flights, concurrency=1, on_equal=told.append))
    assert verified == sum(told) == 40
    assert [each.query["series"] for each in played.requests] == flights.origins()


def test_a_load_ends_with_the_first_event_that_is_refused() -> None:
    played = Played([accept(1), reject(400, [(0, "too_late", False)]), accept(1)])
    stored: list[int] = []
    batches = [[EXPECTED[0]], [EXPECTED[1]], [EXPECTED[2]]]
    with pytest.raises(Exception, match="too_late"):
        asyncio.run(
            load_batches(client_of(played), batches, concurrency=1, on_stored=stored.append)
        )
    assert stored == [1]
    assert len(played.requests) == 2
