"""The step with hot keys against a stand-in whose layouts grow as it is written to."""

import asyncio
import io
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

import pytest
from rich.console import Console

from local.demo.client import ApiAnswer, Client, Retries
from local.demo.display import Display
from local.demo.errors import DemoError
from local.demo.flights import FLIGHTS_FILE, read_flights
from local.demo.hot_keys import AIRPORTS, SMALL_PARTITIONS, HotKeyStep, LoadSize
from local.demo.load import LoadMonitor, RequestPacer, ShardCounts, load_batches
from local.demo.verify import MismatchError

FLIGHTS = 3_000
SIZE = LoadSize(flights=40, request_events=20, concurrency=2, events_a_second=1_000.0)


def keep(events: list[Any]) -> list[Any]:
    return events


@dataclass
class Service:
    """Takes every other request and throttles the rest; a throttled series doubles its shards."""

    kept: Callable[[list[Any]], list[Any]] = keep
    heat_status: int = 200
    now: float = 0.0
    stored: dict[str, list[Any]] = field(default_factory=dict)
    shards: dict[str, list[int]] = field(default_factory=dict)
    posts: list[float] = field(default_factory=list)
    throttled: int = 0

    async def sleep(self, seconds: float) -> None:
        self.now += seconds
        await asyncio.sleep(0)

    async def send(
        self, method: str, path: str, *, query: Mapping[str, str] | None = None, body: Any = None
    ) -> ApiAnswer:
        await asyncio.sleep(0)
        if path == "/heat":
            return ApiAnswer(self.heat_status, {"tables": {"events": self.heat()}})
        if method == "POST":
            return self.write(body["events"])
        series = (query or {})["series"]
        return self.layout(series) if path == "/v1/layout" else self.page(series)

    def heat(self) -> dict[str, Any]:
        written = sum(map(len, self.stored.values()))
        index = {"throttled": {"IndexWriteKeyRangeThroughputExceeded": self.throttled}}
        table = {
            "TableWriteKeyRangeThroughputExceeded": 1,
            "TableReadKeyRangeThroughputExceeded": 9,
        }
        return {"consumed": {"write": written}, "throttled": table, "indexes": {"i": index}}

    def write(self, events: list[Any]) -> ApiAnswer:
        self.posts.append(self.now)
        series = {each["series"] for each in events}
        for name in series:
            self.shards.setdefault(name, [1])
        if len(self.posts) % 2:
            self.throttled += len(events)
            for name in series:
                self.shards[name].append(2 * self.shards[name][-1])
            return ApiAnswer(429, {"error": {"code": "throttled", "message": "later"}})
        for each in self.kept(events):
            self.stored.setdefault(each["series"], []).append(each)
        return ApiAnswer(200, {"accepted": len(events), "rejected": []})

    def layout(self, series: str) -> ApiAnswer:
        if series not in self.shards:
            return ApiAnswer(404, {"error": {"code": "unknown_series", "message": "none"}})
        counts = self.shards[series]
        epochs = [
            {
                "id": number,
                "shards": count,
                "index_shards": 1,
                "low": None if number == 1 else "2001-01-01T00:00:00.000000Z",
                "close": None if number == len(counts) else "2026-01-01T00:00:00.000000Z",
            }
            for number, count in enumerate(counts, 1)
        ]
        return ApiAnswer(
            200, {"shards": counts[-1], "index_shards": 1, "epochs": epochs}
        )  # fmt: skip

    def page(self, series: str) -> ApiAnswer:
        events = sorted(self.stored.get(series, []), key=lambda each: (each["time"], each["id"]))
        return ApiAnswer(200, {"events": events, "cursor": None})


def client_of(service: Service) -> Client:
    retries = Retries(clock=lambda: service.now, sleep=service.sleep, random=lambda: 0.5)
    return Client(service.send, retries)


def show(service: Service, flights: int = FLIGHTS) -> tuple[int, str]:
    output = io.StringIO()
    step = HotKeyStep(
        client=client_of(service),
        endpoint=service.send,
        table="events",
        display=Display(Console(file=output, width=80)),
        flights=read_flights(FLIGHTS_FILE, flights),
        clock=lambda: service.now,
        sleep=service.sleep,
        size=SIZE,
        period=0.0,
    )
    return asyncio.run(step.run()), output.getvalue()


def test_the_step_ends_with_every_event_compared_and_every_epoch_printed() -> None:
    service = Service()
    verified, output = show(service)
    assert verified == 120 == sum(map(len, service.stored.values()))
    lines = [line.split() for line in output.splitlines()]
    for name in AIRPORTS:
        counts = service.shards[name]
        assert len(counts) > 1
        printed = [line[1:3] for line in lines if line[:1] == [name] and "grew" not in line]
        assert printed == [[str(n), str(count)] for n, count in enumerate(counts, 1)]
        assert f"{name} grew from 1 to {counts[-1]} shards" in output
    assert "…" not in output  # nothing is cut off where there is no terminal
    assert f"{service.throttled:,} writes throttled" in output


def test_what_was_accepted_and_throttled_is_drawn() -> None:
    _, output = show(Service())
    chart = output[output.index("accepted/s") : output.index("Epochs")]
    assert "#" in chart
    assert "x" in chart


@pytest.mark.parametrize(
    "kept",
    [
        lambda events: events[1:],
        lambda events: [{**each, "payload": {}} for each in events],
        lambda events: [*events, {**events[0], "id": "9"}],
    ],
    ids=["lost", "changed", "added"],
)
def test_a_series_that_is_not_as_in_the_file_ends_the_step(
    kept: Callable[[list[Any]], list[Any]],
) -> None:
    with pytest.raises(MismatchError):
        show(Service(kept=kept))


def test_an_endpoint_that_does_not_tell_ends_the_step() -> None:
    with pytest.raises(DemoError, match="GET /heat"):
        show(Service(heat_status=500))


def test_flights_of_other_airports_only_leave_nothing_to_load() -> None:
    service = Service()
    verified, output = show(service, flights=1)
    assert (verified, service.posts) == (0, [])
    assert "nothing to load" in output


def test_the_small_partitions_are_limits_that_a_cloud_understands() -> None:
    SMALL_PARTITIONS.validate()
    assert SMALL_PARTITIONS.to_parameters().partition_wcu == 50


def watch(service: Service, **changes: Any) -> LoadMonitor:
    given: dict[str, Any] = {
        "endpoint": service.send,
        "client": client_of(service),
        "table": "events",
        "series": ["ORD"],
        "clock": lambda: service.now,
        "period": 0.0,
    }
    return LoadMonitor(**(given | changes))


def test_a_watch_sees_layouts_and_counters_before_and_after_the_work() -> None:
    service = Service()

    async def work() -> None:
        await service.sleep(5.0)
        service.shards["ORD"] = [1, 8]
        service.stored["ORD"] = [{}] * 30
        service.throttled = 4

    samples = asyncio.run(watch(service).sample_during(work))
    first, last = samples[0], samples[-1]
    assert (first.at, first.written, first.throttled) == (0.0, 0, 1)
    assert (last.at, last.written, last.throttled) == (
        5.0,
        30,
        5,
    )  # reads that throttle don't count
    assert (first.layouts, last.layouts) == (
        {"ORD": ShardCounts(0, 0)},
        {"ORD": ShardCounts(8, 1)},
    )


def test_a_table_that_nobody_has_used_has_neither_writes_nor_throttles() -> None:
    async def work() -> None:
        pass

    samples = asyncio.run(watch(Service(), table="other").sample_during(work))
    assert {(each.written, each.throttled) for each in samples} == {(0, 0)}


def test_work_that_fails_is_not_hidden_by_the_watch() -> None:
    async def work() -> None:
        raise DemoError("refused")

    with pytest.raises(DemoError, match="refused"):
        asyncio.run(watch(Service()).sample_during(work))


def test_a_watch_that_fails_ends_the_work() -> None:
    service = Service()
    ended: list[bool] = []

    async def work() -> None:
        service.heat_status = 503
        try:
            await asyncio.Event().wait()
        finally:
            ended.append(True)

    with pytest.raises(DemoError):
        asyncio.run(watch(service).sample_during(work))
    assert ended == [True]


def test_a_pace_keeps_its_distance_and_makes_up_for_nothing() -> None:
    service = Service()
    turns: list[float] = []

    async def take() -> None:
        pacer = RequestPacer(2.0, lambda: service.now, service.sleep)
        for late in (0.0, 0.0, 5.0, 0.0):
            service.now += late
            await pacer.wait()
            turns.append(service.now)

    asyncio.run(take())
    assert turns == [0.0, 2.0, 7.0, 9.0]


def test_every_request_waits_for_its_turn() -> None:
    seen: list[str] = []

    async def turn() -> None:
        seen.append("turn")

    events = [each.event() for each in islice(read_flights(FLIGHTS_FILE, FLIGHTS).of("ORD"), 3)]
    batches = [[each] for each in events]
    client = client_of(Service())
    asyncio.run(
        load_batches(
            client,
            batches,
            concurrency=1,
            on_stored=lambda _: seen.append("stored"),
            wait_to_start=turn,
        )
    )
    assert seen == ["turn", "stored"] * 3
