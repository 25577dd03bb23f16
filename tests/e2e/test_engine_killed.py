"""What the API has accepted survives `kill -9` of the engine under it."""

import asyncio
import os
import signal

import pytest

from local.cloud import Cloud
from local.demo.client import Client, ClientEvent
from local.demo.flights import FLIGHTS_FILE, event_batches
from local.demo.workers import share
from tests.e2e.calls import with_client

pytestmark = [pytest.mark.cloud, pytest.mark.xdist_group("deployed")]

COUNT = 6_000
KILLS_AFTER = (1_000, 2_500, 4_000)  # events accepted


def renamed(batch: list[ClientEvent]) -> list[ClientEvent]:
    return [{**event, "series": f"killed-{event['series']}"} for event in batch]


class Load:
    """A load that keeps account of what was accepted, and kills the engine on its way."""

    def __init__(self, cloud: Cloud, client: Client) -> None:
        self.cloud = cloud
        self.client = client
        self.accepted: list[ClientEvent] = []
        self.killed: list[int] = []

    async def run(self) -> None:
        killer = asyncio.create_task(self.kill())
        batches = (renamed(batch) for batch in event_batches(FLIGHTS_FILE, COUNT, 500))
        await share(batches, self.write, workers=2)
        killer.cancel()

    async def write(self, batch: list[ClientEvent]) -> None:
        refused = await self.client.write(batch)
        lost = [each.event["id"] for each in refused]
        self.accepted += [event for event in batch if event["id"] not in lost]

    async def kill(self) -> None:
        for after in KILLS_AFTER:
            while len(self.accepted) < after or self.cloud.engine_pid in self.killed:
                await asyncio.sleep(0.01)
            await asyncio.sleep(0.05)  # into the next request's writes
            self.killed.append(self.cloud.engine_pid)
            os.kill(self.killed[-1], signal.SIGKILL)

    async def found(self) -> list[ClientEvent]:
        events: list[ClientEvent] = []

        async def read(series: str) -> None:
            async for page in self.client.pages(series):
                events.extend(page)

        await share(sorted({event["series"] for event in self.accepted}), read, workers=2)
        return events


def test_every_accepted_event_is_there_once_after_the_engine_was_killed(cloud: Cloud) -> None:
    async def load_and_read(client: Client) -> tuple[Load, list[ClientEvent]]:
        load = Load(cloud, client)
        await load.run()
        return load, await load.found()

    load, found = with_client(cloud.api_url, load_and_read)
    assert len(set(load.killed)) == len(KILLS_AFTER)
    assert cloud.engine_pid not in load.killed
    assert len(load.accepted) == COUNT
    by_id = {event["id"]: event for event in found}
    assert len(by_id) == len(found)
    assert by_id == {event["id"]: event for event in load.accepted}
