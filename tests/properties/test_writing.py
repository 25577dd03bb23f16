"""Whatever fails on the way: what is accepted is stored, what is known not to be stored is not."""

from datetime import datetime, timedelta
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from spillway import Event, Settings, ShardingMode
from tests.support.fakes import NOON
from tests.support.faults import Fault, FaultyCall
from tests.support.stores import DAY, HOUR, MemoryStore, identity, read_all
from tests.support.strategies import (
    event_ids,
    json_objects,
    orders,
    recent_times,
    series_names,
    sharding_keys,
)

START, END = NOON - DAY, NOON + HOUR
faults = st.lists(st.sampled_from(Fault), max_size=40)
settings = st.builds(
    lambda mode, shards, index_shards: Settings(
        mode=mode, shards=shards, index_shards=index_shards
    ),
    st.sampled_from(ShardingMode),
    st.sampled_from([1, 4, 16]),
    st.sampled_from([1, 2]),
)
events = st.builds(
    lambda series, time, number, key, value: Event(
        series=series, time=time, id=str(number), sharding_key=key, payload={"v": value}
    ),
    st.sampled_from(["a", "a#0", "b"]),
    recent_times,
    st.integers(0, 40),
    st.none() | st.sampled_from(["k", "l"]),
    st.just(1),
)

any_events = st.builds(
    Event,
    series=series_names,
    time=recent_times,
    id=event_ids,
    sharding_key=sharding_keys,
    payload=json_objects,
)


@given(st.lists(events, max_size=60), faults, settings, st.sampled_from([0.5, 5, 60]))
def test_what_is_accepted_is_stored_and_what_is_known_not_to_be_is_not(
    written: list[Event], failing: list[Fault], chosen: Settings, timeout: float
) -> None:
    memory = MemoryStore(chosen, wrap=lambda call: FaultyCall(call, failing))
    result = memory.store.write(written, timeout=timeout)
    assert result.accepted + len(result.rejected) == len(written)
    assert result.ids == tuple(event.id for event in written)
    codes = {each.index: each.code for each in result.rejected}
    assert set(codes.values()) <= {
        "throttled",
        "storage_unavailable",
        "deadline",
        "unknown_outcome",
    }
    memory.wrap = lambda call: call
    found = {
        identity(event): event
        for series in ("a", "a#0", "b")
        for event in read_all(memory.another(), series, START, END)
    }
    for index, event in enumerate(written):
        code = codes.get(index)
        if code is None:
            assert found[identity(event)] == event
        elif code != "unknown_outcome":
            assert identity(event) not in found
    assert set(found) <= {identity(event) for event in written}


conflicting_writes = st.tuples(
    st.integers(0, 2),  # the process
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, 1)), min_size=1, max_size=4),
    st.none() | st.sampled_from([1, 2, 8, 64]),  # shards from then on
    st.sampled_from([0, 1, 30, 4_000]),  # seconds that pass
)


@given(st.lists(conflicting_writes, max_size=12), faults, settings, st.randoms())
def test_whatever_changes_a_conflict_with_an_accepted_event_is_refused(
    writes: list[tuple[int, list[tuple[int, int]], int | None, int]],
    failing: list[Fault],
    chosen: Settings,
    random: Random,
) -> None:
    memory = MemoryStore(chosen, random=random.random)
    memory.wrap = lambda call: FaultyCall(call, failing)
    processes = [memory.another() for _ in range(3)]
    memory.wrap = lambda call: call
    accepted: dict[int, int] = {}
    for process, numbers, shards, seconds in writes:
        distinct = dict(numbers)
        batch = [
            Event(series="a", time=NOON - HOUR, id=str(number), payload={"v": value})
            for number, value in distinct.items()
        ]
        result = processes[process].write(batch, on_conflict="reject", timeout=600)
        codes = {each.index: each.code for each in result.rejected}
        for index, (number, value) in enumerate(distinct.items()):
            is_conflict = accepted.setdefault(number, value) != value
            # An earlier attempt of the same write may have been lost: it stays in doubt then.
            refused = {"conflict", "unknown_outcome"} if is_conflict else {None}
            assert codes.get(index) in refused
        if shards is not None:
            memory.another().set_layout("a", shards=shards)
        memory.clock.seconds += seconds
    found = read_all(memory.another(), "a", START, END)
    assert {int(event.id or ""): event.payload["v"] for event in found} == accepted


@given(st.lists(events, max_size=30, unique_by=identity), faults, settings, orders)
def test_faults_delay_a_write_and_a_read_and_change_neither(
    written: list[Event], failing: list[Fault], chosen: Settings, order: str
) -> None:
    memory = MemoryStore(chosen, wrap=lambda call: FaultyCall(call, failing))
    result = memory.store.write(written, timeout=600)
    assert result.accepted == len(written)
    memory.wrap = lambda call: FaultyCall(call, [Fault(fault) for fault in failing])
    reader = memory.another()
    for series in ("a", "a#0", "b"):
        found = list(read_all(reader, series, START, END, order=order, limit=7, timeout=600))
        mine = {identity(event) for event in written if event.series == series}
        assert [identity(event) for event in found] == sorted(
            mine, key=lambda each: _position(*each), reverse=order == "desc"
        )


def _position(
    _: str, time: datetime, sharding_key: str | None, event_id: str | None
) -> tuple[datetime, bytes]:
    key = "" if sharding_key is None else f"{sharding_key}#"
    return time, f"{key}{event_id}".encode()


@given(any_events, st.sampled_from(ShardingMode))
def test_an_event_of_any_names_is_read_as_it_was_written(
    written: Event, mode: ShardingMode
) -> None:
    memory = MemoryStore(Settings(mode=mode, shards=4, index_shards=2))
    assert memory.store.write([written]).rejected == ()
    series, time, sharding_key, event_id = identity(written)
    assert event_id is not None
    found = memory.store.read_one(series, time, event_id, sharding_key=sharding_key)
    assert found == written
    end = time + timedelta(microseconds=1)
    for read in ("table", "index"):
        page = memory.store.read(series, time, end, source=read, consistent=False)
        assert page.events == (written,)
