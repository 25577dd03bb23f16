"""`python -m local.demo`: load real flights into the deployed stacks, read them back, compare them.

The environment variable `FLIGHTS` says how many flights (default: 100,000).
"""

import asyncio
import os
import signal
import sys
from collections.abc import Coroutine, Mapping
from time import perf_counter
from typing import Any, Final, TypeVar

import aiohttp
from rich.console import Console

from local.cloud import Cloud, running
from local.demo.client import ApiError, Client, Retries, Transport
from local.demo.display import Display, RequestTimings
from local.demo.errors import DemoError
from local.demo.flights import FLIGHTS_FILE, Flights, read_flights
from local.demo.hot_keys import AIRPORTS, SMALL_PARTITIONS, HotKeyStep, LoadSize, events_table
from local.demo.main_job import MainJob, MainJobReport, show_figures
from local.demo.table_folder import table_folder
from local.errors import LocalCloudError
from local.scratch import memory_folder
from local.state import DEFAULT_FOLDER

__all__ = ["main"]

T = TypeVar("T")

_DEFAULT_FLIGHTS: Final = 100_000
_LOGS: Final = DEFAULT_FOLDER / "demo-logs"
_INTERRUPTED: Final = 130  # as shells report a program that Ctrl-C ended
_CHECK_SECONDS: Final = 1.0


def main() -> int:
    """Run the demo and return its exit code."""
    # Shells start background jobs with Ctrl-C ignored, which Python then leaves so.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        _run(Display(Console(highlight=False)), _read_count(os.environ))
    except (ApiError, DemoError, LocalCloudError) as error:
        return _fail(f"demo: {error}", 1)
    except KeyboardInterrupt:
        return _fail("demo: interrupted. All that it started has stopped.", _INTERRUPTED)
    return 0


def _run(display: Display, count: int) -> None:
    flights = read_flights(FLIGHTS_FILE, count)
    timings = RequestTimings()
    report = _run_main_job(display, flights, timings)
    _run_hot_keys(display, min(count, _DEFAULT_FLIGHTS))
    show_figures(display, report, timings)
    display.print(f"\nverified: {report.verified} of {count}")


def _run_main_job(display: Display, flights: Flights, timings: RequestTimings) -> MainJobReport:
    display.heading(
        "Start a local cloud",
        "It consists of a DynamoDB engine and, for the rest of AWS, MiniStack. The real CDK CLI",
        "deploys the stacks of this repository to it: tables, functions, HTTP API, alarms.",
    )
    with (
        table_folder(len(flights), memory_folder()) as disk,
        running(quiet=False, data=disk, keep_logs=_LOGS) as cloud,
    ):
        if disk is not None:
            display.print("Memory is short, so the tables are on disk; loading takes longer.")
        display.done(f"HTTP API: {cloud.api_url}")
        return _run_on(cloud, _main_job(cloud, display, flights, timings))


def _run_hot_keys(display: Display, count: int) -> None:
    display.heading(
        "Make keys hot",
        f"Load {', '.join(AIRPORTS)} at {LoadSize().events_a_second:g} events a second into another"
        " cloud, whose partitions",
        f"take {SMALL_PARTITIONS.partition_wcu:g} writes a second instead of 1,000. One partition"
        " key an airport is too few,",
        "so the writers add shards.",
    )
    flights = read_flights(FLIGHTS_FILE, count)
    with (
        table_folder(count, memory_folder()) as disk,
        running(quiet=False, data=disk, heat=SMALL_PARTITIONS, keep_logs=_LOGS) as cloud,
    ):
        _run_on(cloud, _hot_keys(cloud, display, flights))


async def _main_job(
    cloud: Cloud, display: Display, flights: Flights, timings: RequestTimings
) -> MainJobReport:
    async with aiohttp.ClientSession() as session:
        transport = Transport(session, cloud.api_url, perf_counter, timings.observe)
        job = MainJob(
            client=Client(transport.send, Retries()),
            display=display,
            clock=perf_counter,
            file=FLIGHTS_FILE,
            flights=flights,
        )
        return await job.run()


async def _hot_keys(cloud: Cloud, display: Display, flights: Flights) -> int:
    observe = RequestTimings().observe  # not shown
    async with aiohttp.ClientSession() as session:
        api = Transport(session, cloud.api_url, perf_counter, observe)
        endpoint = Transport(session, cloud.endpoint_url, perf_counter, observe)
        step = HotKeyStep(
            client=Client(api.send, Retries()),
            endpoint=endpoint.send,
            table=events_table(cloud),
            display=display,
            flights=flights,
            clock=perf_counter,
            sleep=asyncio.sleep,
        )
        return await step.run()


def _run_on(cloud: Cloud, work: Coroutine[Any, Any, T]) -> T:
    """Run work on a cloud. Errors name the logs, and the cloud's end ends the work.

    Raises:
        DemoError: The work failed.
        LocalCloudError: The cloud ended.
    """
    try:
        return asyncio.run(_run_while_alive(cloud, work))
    except (ApiError, DemoError) as error:
        raise DemoError(f"{error}\nThe logs of the cloud's parts are in {_LOGS}.") from error


async def _run_while_alive(cloud: Cloud, work: Coroutine[Any, Any, T]) -> T:
    task = asyncio.ensure_future(work)
    try:
        while not task.done():
            cloud.check()
            await asyncio.wait({task}, timeout=_CHECK_SECONDS)
        return task.result()
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


def _read_count(environment: Mapping[str, str]) -> int:
    text = environment.get("FLIGHTS") or str(_DEFAULT_FLIGHTS)
    try:
        return int(text)
    except ValueError as error:
        raise DemoError(
            f"FLIGHTS: {text!r} is not a whole number, such as {_DEFAULT_FLIGHTS}."
        ) from error


def _fail(message: str, code: int) -> int:
    Console(stderr=True).print(message, markup=False, highlight=False, soft_wrap=True)
    return code


if __name__ == "__main__":
    sys.exit(main())
