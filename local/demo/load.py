"""Load events at a steady pace, a few requests at once, and monitor the table meanwhile."""

import asyncio
import math
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

from local.demo.client import Client, ClientEvent, Send
from local.demo.errors import DemoError

__all__ = [
    "LoadMonitor",
    "LoadSample",
    "ReportProgress",
    "RequestPacer",
    "ShardCounts",
    "load_batches",
    "run_concurrently",
]

T = TypeVar("T")

ReportProgress = Callable[[int], None]
"""Receives how many more events are done."""


async def _start_at_once() -> None:
    """Let the next request start without a wait."""


async def load_batches(
    client: Client,
    batches: Iterable[Sequence[ClientEvent]],
    *,
    concurrency: int,
    on_stored: ReportProgress,
    wait_to_start: Callable[[], Awaitable[None]] = _start_at_once,
) -> None:
    """Write all batches, one request each, `concurrency` at a time. Only these are in memory.

    Raises:
        DemoError: An event was refused, or not stored before the client's retries ended.
        ApiError: The API refuses a whole request.
    """

    async def write(batch: Sequence[ClientEvent]) -> None:
        await wait_to_start()
        refused = await client.write(batch)
        if refused:
            first = refused[0]
            raise DemoError(
                f"{len(refused):,} of the {len(batch):,} events of a request were not stored. The"
                f" first is {first.event}, because of {first.code}: {first.message}"
            )
        on_stored(len(batch))

    await run_concurrently(batches, write, workers=concurrency)


async def run_concurrently(
    items: Iterable[T], action: Callable[[T], Awaitable[None]], *, workers: int
) -> None:
    """Run an action for each item, `workers` at a time. An item is taken when a worker is free.

    The first failure ends all workers and is raised.
    """
    queue = iter(items)

    async def work() -> None:
        for item in queue:
            await action(item)

    tasks = [asyncio.create_task(work()) for _ in range(workers)]
    try:
        await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


class RequestPacer:
    """Spaces the starts of requests by an interval. Starts that were missed are not made up for."""

    def __init__(
        self,
        interval_seconds: float,
        clock: Callable[[], float],
        sleep: Callable[[float], Awaitable[None]],
    ) -> None:
        """Take the least time between two starts."""
        self._interval = interval_seconds
        self._clock = clock
        self._sleep = sleep
        self._next = -math.inf

    async def wait(self) -> None:
        """Wait until the next request may start."""
        now = self._clock()
        start = max(now, self._next)
        self._next = start + self._interval
        await self._sleep(start - now)


class ShardCounts(NamedTuple):
    """Shards of a series' current layout, of the table and of the index; 0 before a write."""

    shards: int
    index_shards: int


@dataclass(frozen=True, slots=True)
class LoadSample:
    """Totals of a table at a time: write units, and throttled writes, since it was created."""

    at: float
    written: float
    throttled: int
    layouts: Mapping[str, ShardCounts]


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadMonitor:
    """Samples a table of a local cloud, and the layouts of series, from outside.

    Attributes:
        endpoint: sends requests to the cloud's endpoint, which answers `GET /heat`.
        client: of the API, which answers for layouts.
        table: whose writes and throttles are counted.
        series: whose layouts are read.
        clock: in seconds; times of samples are relative to the first.
        period: seconds between samples.
    """

    endpoint: Send
    client: Client
    table: str
    series: Sequence[str]
    clock: Callable[[], float]
    period: float = 1.0

    async def sample_during(self, work: Callable[[], Awaitable[None]]) -> list[LoadSample]:
        """Do the work, and return samples from before, during and after it.

        Raises:
            DemoError: The endpoint does not answer. The work is cancelled.
            ApiError: The API does not answer. The work is cancelled.
        """
        await self._sample(0.0)  # functions start slowly: that is not part of the work
        began = self.clock()
        samples = [await self._sample(began)]
        task = asyncio.ensure_future(work())
        try:
            while not task.done():
                await asyncio.wait({task}, timeout=self.period)
                samples.append(await self._sample(began))
            await task
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
        return samples

    async def _sample(self, began: float) -> LoadSample:
        answer = await self.endpoint("GET", "/heat")
        if answer.status != 200:
            raise DemoError(f"GET /heat failed with status {answer.status}: {answer.message}")
        at = self.clock() - began
        written, throttled = _totals(answer.body["tables"].get(self.table))
        layouts = await asyncio.gather(*map(self._shard_counts, self.series))
        return LoadSample(at, written, throttled, dict(zip(self.series, layouts, strict=True)))

    async def _shard_counts(self, series: str) -> ShardCounts:
        layout = await self.client.layout(series)
        if layout is None:
            return ShardCounts(0, 0)
        return ShardCounts(layout["shards"], layout["index_shards"])


def _totals(table: Mapping[str, Any] | None) -> tuple[float, int]:
    """Return the write units consumed and the writes throttled, by the table or its indexes."""
    if table is None:  # not used yet
        return 0.0, 0
    parts = [table, *table["indexes"].values()]
    throttled = sum(
        count
        for part in parts
        for reason, count in part["throttled"].items()
        if "Read" not in reason
    )
    return table["consumed"]["write"], throttled
