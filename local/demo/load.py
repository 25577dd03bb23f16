"""Load."""

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


class RequestPacer:
    """Gives turns to whoever asks, in order. Turns that were missed are not made up for."""

    def __init__(
        self,
        interval: float,
        clock: Callable[[], float],
        sleep: Callable[[float], Awaitable[None]],
    ) -> None:
        """Take the seconds between turns, and the clock and sleep for them."""
        self._interval = interval
        self._clock = clock
        self._sleep = sleep
        self._next = -math.inf

    async def turn(self) -> None:
        """Wait for the next turn."""
        now = self._clock()
        at = max(now, self._next)
        self._next = at + self._interval
        await self._sleep(at - now)


T = TypeVar("T")


async def run_concurrently(
    things: Iterable[T], do: Callable[[T], Awaitable[None]], *, workers: int
) -> None:
    """Do all things, `workers` at a time, each taken only when a worker is free for it.

    The first failure ends all workers and is raised.
    """
    queue = iter(things)

    async def work() -> None:
        for thing in queue:
            await do(thing)

    tasks = [asyncio.create_task(work()) for _ in range(workers)]
    try:
        await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


ReportProgress = Callable[[int], None]
"""Is told how many more events are done."""


async def _no_wait() -> None:
    """Let the next request go at once."""


async def load_batches(
    client: Client,
    batches: Iterable[Sequence[ClientEvent]],
    *,
    at_once: int,
    stored: ReportProgress,
    turn: Callable[[], Awaitable[None]] = _no_wait,
) -> None:
    """Write all batches, `at_once` requests at a time; only these are in memory. Each waits for its turn.

    Raises:
        DemoError: An event was refused, or not stored for longer than the client's patience.
        ApiError: The API does not take a request.
    """

    async def write(batch: Sequence[ClientEvent]) -> None:
        await turn()
        refused = await client.write(batch)
        if refused:
            first = refused[0]
            raise DemoError(
                f"{len(refused):,} of {len(batch):,} events of a request were not stored, the first:"
                f" {first.event} because {first.code}: {first.message}"
            )
        stored(len(batch))

    await run_concurrently(batches, write, workers=at_once)


class ShardCounts(NamedTuple):
    """Shards of a series' layout in force: of the table and of the index; 0 before its first write."""

    shards: int
    index_shards: int


@dataclass(frozen=True, slots=True)
class LoadSample:
    """What was seen at a time. `written` are write units, `throttled` writes, since the table was made."""

    at: float
    written: float
    throttled: int
    layouts: Mapping[str, ShardCounts]


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadMonitor:
    """Looks at a table of a local cloud and at the layouts of series.

    Attributes:
        endpoint: the way to the cloud's endpoint, which answers `GET /heat`.
        client: of the API, which answers for layouts.
        table: whose writes and throttles are counted.
        series: whose layouts are read.
        clock: in seconds; times of samples are relative to the first.
        period: seconds between looks.
    """

    endpoint: Send
    client: Client
    table: str
    series: Sequence[str]
    clock: Callable[[], float]
    period: float = 1.0

    async def during(self, work: Callable[[], Awaitable[None]]) -> list[LoadSample]:
        """Do the work and return what was seen before, during and after it.

        Raises:
            DemoError: The endpoint does not tell. The work is cancelled then.
            ApiError: The API does not.
        """
        await self._look(0.0)  # functions start slowly: that is not part of the work
        began = self.clock()
        samples = [await self._look(began)]
        task = asyncio.ensure_future(work())
        try:
            while not task.done():
                await asyncio.wait({task}, timeout=self.period)
                samples.append(await self._look(began))
            await task
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
        return samples

    async def _look(self, began: float) -> LoadSample:
        answer = await self.endpoint("GET", "/heat")
        if answer.status != 200:
            raise DemoError(f"GET /heat: {answer.message} (status {answer.status})")
        at = self.clock() - began
        written, throttled = _totals(answer.body["tables"].get(self.table))
        layouts = await asyncio.gather(*map(self._counts, self.series))
        return LoadSample(at, written, throttled, dict(zip(self.series, layouts, strict=True)))

    async def _counts(self, series: str) -> ShardCounts:
        layout = await self.client.layout(series)
        if layout is None:
            return ShardCounts(0, 0)
        return ShardCounts(layout["number_of_shards"], layout["index_shards"])


def _totals(table: Mapping[str, Any] | None) -> tuple[float, int]:
    """Return write units consumed, and writes that it or its indexes throttled; a table that is not known has none."""
    if table is None:
        return 0.0, 0
    parts = [table, *table["indexes"].values()]
    throttled = sum(
        count
        for part in parts
        for reason, count in part["throttled"].items()
        if "Read" not in reason
    )
    return table["consumed"]["write"], throttled
