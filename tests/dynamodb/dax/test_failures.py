import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import pytest

from spillway import DaxCall, Event, EventStore, Runtime, ThrottledError
from spillway.dynamodb import dax as adapter
from tests.dynamodb.dax.world import World, dax_session
from tests.support.faults import throttled_call
from tests.support.stores import DAY, HOUR, read_all

pytestmark = pytest.mark.engine

PAUSE = 30
MAX_FAILURES = 3
LONG = 40  # seconds, about one is usual; the client's own timeouts would be 60


def _read(world: World, store: EventStore, limit: int = 1_000) -> list[Event]:
    now = world.clock.time
    return list(
        read_all(store, world.series, now - 2 * DAY, now - HOUR, consistent=False, limit=limit)
    )


def _warm(world: World) -> tuple[EventStore, list[Event]]:
    """Return a process that has read its series by way of DAX, and the events it found."""
    events = world.write(world.process(), 30)
    store = world.process()
    assert _read(world, store) == events
    assert store.cache_failures == 0
    world.forget_requests()
    return store, events


def test_reads_go_on_where_the_node_dies_midway(world: World) -> None:
    store, events = _warm(world)
    pages = read_all(store, world.series, world.clock.time - 2 * DAY, world.clock.time - HOUR,
                     consistent=False, limit=4)  # fmt: skip
    found = [next(pages) for _ in range(10)]
    world.dax.kill()
    assert found + list(pages) == events
    assert store.cache_failures == MAX_FAILURES
    assert len(world.dynamodb.of("Query")) >= MAX_FAILURES


@pytest.mark.parametrize(
    "code", ["ThrottlingException", "InternalServerErrorException", "ValidationException"]
)
def test_what_dax_refuses_dynamodb_answers(world: World, code: str) -> None:
    store, events = _warm(world)
    world.dax.node.error = code
    for n in range(2 * MAX_FAILURES):
        assert _read(world, store, limit=100 + n) == events
    assert store.cache_failures == MAX_FAILURES
    assert world.dax.node.calls["Query"] == MAX_FAILURES  # none was sent twice


@pytest.mark.parametrize(
    "garbage",
    [b"\x00", b"\x80", b"\x80\xff", b"\x80\xa1\x18\x63\x00", b"\xff" * 64,
     b"\x83\x01\x02", b"HTTP/1.1 400 Bad Request\r\n\r\n", b"\x80\xa1\x00\xf6"],
)  # fmt: skip
def test_what_nobody_can_decode_dynamodb_answers(world: World, garbage: bytes) -> None:
    store, events = _warm(world)
    world.dax.garbage = garbage
    assert _read(world, store, limit=99) == events
    assert store.cache_failures == 1


def test_a_layout_that_dax_damages_is_read_from_dynamodb(world: World) -> None:
    events = world.write(world.process(), 3)

    def damaging(operation: str, request: Mapping[str, Any], /) -> dict[str, Any]:
        response = world.engine(operation, request)
        response.get("Item", {}).pop("epochs", None)
        return response

    assert _read(world, world.process(cache=damaging)) == events


def test_a_black_hole_costs_about_a_second_a_request(world: World) -> None:
    store, events = _warm(world)
    world.dax.silent = True
    began = time.monotonic()
    assert _read(world, store, limit=99) == events
    assert time.monotonic() - began < LONG
    assert store.cache_failures == 1


def test_a_black_hole_from_the_start_costs_about_a_second_a_request(world: World) -> None:
    events = world.write(world.process(), 3)
    store = world.process()
    world.dax.silent = True
    began = time.monotonic()
    assert _read(world, store) == events
    assert time.monotonic() - began < LONG
    assert store.cache_failures == 2  # for the layout and for events


@contextmanager
def _stuck(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """Make connecting take until the end of the block; yield the endpoints that were tried."""
    ended, tried = threading.Event(), list[str]()

    def connect(endpoint: str, _session: object) -> Any:
        tried.append(endpoint)
        ended.wait(LONG)
        raise TimeoutError

    monkeypatch.setattr(adapter, "_open_client", connect)
    monkeypatch.setattr(adapter, "_CONNECT_SECONDS", 0.05)
    yield tried
    ended.set()


def test_nobody_waits_for_the_last_of_many_dead_nodes(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    events = world.write(world.process(), 3)
    with _stuck(monkeypatch) as tried:
        store = world.process()
        assert _read(world, store) == events
        assert _read(world, store) == events
    assert tried == [world.dax.url]
    assert store.cache_failures == MAX_FAILURES


def test_a_cluster_that_refuses_is_left_alone_for_a_while_and_then_used(world: World) -> None:
    events = world.write(world.process(), 30)
    world.dax.kill()
    store = world.process()
    for n in range(2 * MAX_FAILURES):
        assert _read(world, store, limit=100 + n) == events
    assert store.cache_failures == MAX_FAILURES
    world.dax.start()
    world.clock.sleep(PAUSE - 1)
    assert _read(world, store) == events
    assert world.dax.connections == 0
    world.clock.sleep(1)
    world.forget_requests()
    assert _read(world, store) == events
    assert world.dax.node.calls["Query"] == 1
    assert world.dynamodb.requests == []
    assert store.cache_failures == MAX_FAILURES


def test_a_cluster_that_still_fails_after_the_pause_costs_one_attempt_a_pause(world: World) -> None:
    store, events = _warm(world)
    world.dax.kill()
    for n in range(5):
        _read(world, store, limit=100 + n)
    for n in range(3):
        world.clock.sleep(PAUSE)
        for limit in (200, 300, 400):
            assert _read(world, store, limit=limit + n) == events
        assert store.cache_failures == MAX_FAILURES + n + 1


def test_a_connection_that_broke_while_idle_costs_one_failure(world: World) -> None:
    store, events = _warm(world)
    world.dax.kill()
    world.dax.start()
    for n in range(5):
        assert _read(world, store, limit=100 + n) == events
    assert store.cache_failures == 1
    assert world.dax.node.calls["Query"] == 4


def test_what_dynamodb_answers_behind_dax_is_what_counts(world: World) -> None:
    world.write(world.process(), 1)
    world.dax.kill()
    store = EventStore(
        throttled_call, table="dax-events", layouts="dax-layouts", cache=world.way(),
        runtime=Runtime(now=world.clock.now, monotonic=world.clock.now, sleep=world.clock.sleep),
    )  # fmt: skip
    with pytest.raises(ThrottledError):
        _read(world, store)


def test_threads_that_read_at_once_share_one_attempt_to_connect(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    attempts = []
    connect = adapter._open_client  # noqa: SLF001

    def counted(endpoint: str, session: object) -> Any:
        attempts.append(endpoint)
        return connect(endpoint, session)

    monkeypatch.setattr(adapter, "_open_client", counted)
    events = world.write(world.process(), 10)
    store = world.process()
    assert _in_threads(world, store, 8) == [events] * 8
    assert len(attempts) == 1
    assert store.cache_failures == 0


def test_threads_that_meet_a_dead_node_all_get_their_answers(world: World) -> None:
    store, events = _warm(world)
    world.dax.kill()
    assert _in_threads(world, store, 8) == [events] * 8
    assert MAX_FAILURES <= store.cache_failures <= 8 + MAX_FAILURES


def _in_threads(world: World, store: EventStore, count: int) -> list[list[Event]]:
    found: list[list[Event]] = []
    threads = [
        threading.Thread(target=lambda n=n: found.append(_read(world, store, limit=100 + n)))
        for n in range(count)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return found


def test_an_endpoint_without_a_name_or_of_no_known_scheme_falls_back(world: World) -> None:
    events = world.write(world.process(), 2)
    for endpoint in ("dax://nowhere.invalid", "https://127.0.0.1", "dax://127.0.0.1:port", ""):
        way = DaxCall(endpoint, dax_session())
        world.ways.append(way)
        store = world.process(cache=way)
        assert _read(world, store) == events
        assert store.cache_failures > 0
