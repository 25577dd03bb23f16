"""However a series is sharded, and whatever its layout does meanwhile: the same answers, byte for byte."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from lambdas.api.answers import EventRenderer, answer_page
from spillway import Event, EventStore, Settings
from spillway.scanning.query import Order
from tests.support.fakes import NOON
from tests.support.stores import DAY, HOUR, MemoryStore, event_at, identity
from tests.support.strategies import orders

START, END = NOON - 6 * HOUR, NOON - HOUR
SOURCES = st.sampled_from(["table", "index", "auto"])

events = st.lists(
    st.builds(
        lambda minute, number, key: event_at(
            NOON - timedelta(minutes=minute), f"{number}", sharding_key=key, n=minute
        ),
        st.integers(50, 370),
        st.integers(0, 3),
        st.none() | st.sampled_from(["a", "b#1"]),
    ),
    max_size=60,
    unique_by=lambda event: (event.time, event.id, event.sharding_key),
)


@dataclass(frozen=True)
class Query:
    """One page's parameters that may differ from page to page."""

    limit: int
    read: str
    consistent: bool


queries = st.lists(
    st.builds(Query, st.integers(1, 25), SOURCES, st.booleans()), min_size=1, max_size=8
).map(lambda made: [each if each.read == "table" else Query(each.limit, each.read, False) for each in made])  # fmt: skip


def _answers(
    memory: MemoryStore, queries: list[Query], order: str, sharding_key: str | None
) -> list[str]:
    """Return the answers to pages that cycle through the queries, while events keep arriving behind the range."""
    store, writer = memory.another(), memory.another()
    answers: list[str] = []
    cursor: str | None = None
    for number in range(200):
        query = queries[number % len(queries)]
        renderer = EventRenderer("ORD")
        page = store.read(
            "ORD", START, END, limit=query.limit, order=order, cursor=cursor, source=query.read,
            consistent=query.consistent, sharding_key=sharding_key, measure=renderer.measure,
        )  # fmt: skip
        answers.append(str(answer_page(page, renderer).body))
        writer.write([event_at(END + timedelta(seconds=number), f"late-{number}")])
        cursor = page.cursor
        if cursor is None:
            return answers
    raise AssertionError("the pages do not end")


@given(events, queries, orders, st.sampled_from([None, "a"]))
def test_1_4_16_and_64_shards_give_byte_equal_answers(
    events: list[Event], queries: list[Query], order: str, sharding_key: str | None
) -> None:
    found = []
    for shards in (1, 4, 16, 64):
        memory = MemoryStore(Settings(shards=shards, index_shards=max(1, shards // 4)))
        assert not memory.store.write(events).rejected
        found.append(_answers(memory, queries, order, sharding_key))
    assert found[1:] == found[:-1]


counts = st.sampled_from([1, 2, 4, 8, 16])


@given(
    events,
    queries,
    orders,
    st.lists(st.tuples(counts, counts, st.booleans()), min_size=1, max_size=5),
)
def test_cursors_survive_growth_and_shrinking_between_pages(
    events: list[Event], queries: list[Query], order: str, changes: list[tuple[int, int, bool]]
) -> None:
    memory = MemoryStore(Settings(shards=4))
    assert not memory.store.write(events).rejected
    expected = sorted((each for each in events if START <= each.time < END), key=_position)
    if order == Order.DESCENDING:
        expected.reverse()
    store, admin = memory.another(), memory.another()
    found: list[Event] = []
    cursor: str | None = None
    for number in range(200):
        query = queries[number % len(queries)]
        page = store.read(
            "ORD", START, END, limit=query.limit, order=order, cursor=cursor, source=query.read,
            consistent=query.consistent,
        )  # fmt: skip
        found += page.events
        cursor = page.cursor
        if cursor is None:
            break
        shards, index_shards, again = changes[number % len(changes)]
        admin.set_layout("ORD", shards=shards, index_shards=index_shards)
        if again:  # what was written before is stored a second time, under the new layout
            _write_again(memory.another(), events, memory.clock.time)
        memory.clock.forward(timedelta(seconds=20))  # so that every process sees the change
    assert [identity(each) for each in found] == [identity(each) for each in expected]
    assert found == expected


def _write_again(store: EventStore, events: list[Event], now: datetime) -> None:
    recent = [each for each in events if each.time > now - DAY]
    assert not store.write(recent).rejected


def _position(event: Event) -> tuple[datetime, bytes]:
    key = "" if event.sharding_key is None else f"{event.sharding_key}#"
    return event.time, f"{key}{event.id}".encode()
