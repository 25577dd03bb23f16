"""`python -m local.demo`: the whole main job by one command. `FLIGHTS` says how many flights, 100,000 if unset."""

import asyncio
import os
import shutil
import signal
import sys
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from time import perf_counter
from typing import Final

import aiohttp
from rich.console import Console

from local.cloud import Cloud, running
from local.demo.client import Client
from local.demo.display import Display
from local.demo.errors import DemoError
from local.demo.figures import Timings
from local.demo.flights import FLIGHTS_FILE, Flights, read_flights
from local.demo.hot_keys import AIRPORTS, SMALL, HotKeys, Size, events_table
from local.demo.retries import Retries
from local.demo.room import folder_for
from local.demo.story import Story, StoryReport, report
from local.demo.transport import ApiError, Transport
from local.errors import LocalCloudError
from local.scratch import memory_folder
from local.state import DEFAULT_FOLDER, State

__all__ = ["main"]

_FLIGHTS: Final = 100_000
_LOGS: Final = DEFAULT_FOLDER / "demo-logs"
_INTERRUPTED: Final = 130  # as shells report a program that Ctrl-C ended


def main() -> int:
    """Run the demo and return its exit code."""
    # Shells start background jobs with Ctrl-C ignored, which Python then leaves so.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        _run(Display(Console(highlight=False)), _count(os.environ))
    except (ApiError, DemoError, LocalCloudError) as error:
        return _fail(f"demo: {error}", 1)
    except KeyboardInterrupt:
        return _fail("demo: interrupted; everything that it started is stopped.", _INTERRUPTED)
    return 0


def _run(display: Display, count: int) -> None:
    flights = read_flights(FLIGHTS_FILE, count)
    timings = Timings()
    told = _main_job(display, flights, timings)
    _hot_keys(display, min(count, _FLIGHTS))
    report(display, told, timings)
    display.say(f"\nverified: {told.verified} of {count}")


def _main_job(display: Display, flights: Flights, timings: Timings) -> StoryReport:
    display.heading(
        "Start a local cloud",
        "A DynamoDB engine, and MiniStack for the rest of AWS; to these, the real CDK CLI deploys the",
        "stacks of this repository: tables, functions, HTTP API.",
    )
    with (
        folder_for(len(flights), memory_folder()) as disk,
        running(quiet=False, data=disk) as cloud,
        _logs_kept(cloud.state),
    ):
        if disk is not None:
            display.say("The tables are on disk, for lack of memory: loading takes longer.")
        display.done(f"API: {cloud.api_url}")
        return asyncio.run(_tell(cloud, display, flights, timings))


def _hot_keys(display: Display, count: int) -> None:
    display.heading(
        "Make keys hot",
        f"{', '.join(AIRPORTS)} at {Size().events_a_second:g} events a second, on another cloud whose"
        f" partitions take {SMALL.partition_wcu:g} writes",
        "a second, not 1,000: one partition key an airport is too few, so the writers add shards.",
    )
    flights = read_flights(FLIGHTS_FILE, count)
    with (
        folder_for(count, memory_folder()) as disk,
        running(quiet=False, data=disk, heat=SMALL) as cloud,
        _logs_kept(cloud.state),
    ):
        asyncio.run(_heat(cloud, display, flights))


async def _tell(cloud: Cloud, display: Display, flights: Flights, timings: Timings) -> StoryReport:
    async with aiohttp.ClientSession() as session:
        transport = Transport(session, cloud.api_url, perf_counter, timings.observe)
        story = Story(
            client=Client(transport.send, Retries()),
            display=display,
            clock=perf_counter,
            file=FLIGHTS_FILE,
            flights=flights,
        )
        return await story.tell()


async def _heat(cloud: Cloud, display: Display, flights: Flights) -> None:
    unheard = Timings().observe
    async with aiohttp.ClientSession() as session:
        api = Transport(session, cloud.api_url, perf_counter, unheard)
        endpoint = Transport(session, cloud.endpoint_url, perf_counter, unheard)
        step = HotKeys(
            client=Client(api.send, Retries()),
            endpoint=endpoint.send,
            table=events_table(cloud),
            display=display,
            flights=flights,
            clock=perf_counter,
            sleep=asyncio.sleep,
        )
        await step.show()


def _count(environment: Mapping[str, str]) -> int:
    text = environment.get("FLIGHTS") or str(_FLIGHTS)
    try:
        return int(text)
    except ValueError as error:
        raise DemoError(f"FLIGHTS: {text!r} is not a whole number, such as {_FLIGHTS}.") from error


@contextmanager
def _logs_kept(state: State) -> Generator[Path]:
    """Keep the logs of a cloud in which something went wrong, and say where."""
    try:
        yield state.logs
    except (ApiError, DemoError) as error:
        shutil.copytree(state.logs, _LOGS, dirs_exist_ok=True)
        raise DemoError(f"{error}\nThe logs of the cloud's parts are in {_LOGS}.") from error


def _fail(message: str, code: int) -> int:
    Console(stderr=True).print(message, markup=False, highlight=False, soft_wrap=True)
    return code


if __name__ == "__main__":
    sys.exit(main())
