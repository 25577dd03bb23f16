"""Growth through the whole deployed service: hot keys on small partitions, loaded over HTTP."""

import asyncio
import io
from collections.abc import Generator
from itertools import islice
from time import perf_counter
from typing import Any

import aiohttp
import pytest
from rich.console import Console

from dynamoheat.serve.options import HeatOptions
from local.cloud import Cloud, running
from local.demo.client import Transport
from local.demo.display import Display
from local.demo.flights import FLIGHTS_FILE, Flights, read_flights
from local.demo.hot_keys import AIRPORTS, HotKeyStep, LoadSize, events_table
from local.demo.verify import compare
from tests.e2e.calls import connected, request

pytestmark = [pytest.mark.cloud, pytest.mark.xdist_group("deployed")]

EACH = 400  # flights of an airport: eight seconds of what its one partition takes
SIZE = LoadSize(flights=EACH, request_events=100, concurrency=4, events_a_second=1_000.0)


@pytest.fixture(scope="module")
def small() -> Generator[Cloud]:
    with running(heat=HeatOptions(partition_wcu=50)) as started:
        yield started


@pytest.fixture(scope="module")
def flights() -> Flights:
    return read_flights(FLIGHTS_FILE, 100_000)


async def run_step(cloud: Cloud, flights: Flights, output: io.StringIO) -> int:
    async with aiohttp.ClientSession() as session, connected(cloud.api_url) as client:
        endpoint = Transport(session, cloud.endpoint_url, perf_counter, lambda *_: None)
        step = HotKeyStep(
            client=client,
            endpoint=endpoint.send,
            table=events_table(cloud),
            display=Display(Console(file=output)),
            flights=flights,
            clock=perf_counter,
            sleep=asyncio.sleep,
            size=SIZE,
        )
        return await step.run()


async def read_latest_first(cloud: Cloud, flights: Flights) -> int:
    async with connected(cloud.api_url) as client:
        found = 0
        for name in AIRPORTS:
            expected = [each.event() for each in islice(flights.of(name), EACH)][::-1]
            pages = client.pages(name, order="desc", limit=300)
            found += await compare(name, expected, pages, lambda _: None)
        return found


def layout(cloud: Cloud, series: str) -> dict[str, Any]:
    answer = request(cloud.api_url, "GET", "/v1/layout", query={"series": series})
    assert answer.status == 200
    body: dict[str, Any] = answer.body
    return body


def test_layouts_grow_under_hot_keys_and_every_accepted_event_is_read_back(
    small: Cloud, flights: Flights
) -> None:
    output = io.StringIO()
    assert asyncio.run(run_step(small, flights, output)) == EACH * len(AIRPORTS)
    for name in AIRPORTS:
        found = layout(small, name)
        epochs = found["epochs"]
        assert len(epochs) > 1
        assert epochs[0]["shards"] == 1
        assert [each["id"] for each in epochs] == sorted(each["id"] for each in epochs)
        assert found["shards"] == epochs[-1]["shards"] > 1
        assert epochs[-1]["close"] is None
        assert all(each["close"] for each in epochs[:-1])
        assert f"{name} grew from 1 to {epochs[-1]['shards']} shards" in output.getvalue()
    assert asyncio.run(read_latest_first(small, flights)) == EACH * len(AIRPORTS)
