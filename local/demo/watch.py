"""Watches from outside what a load does to its table: writes, throttles and layouts, again and again."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from local.demo.client import Client
from local.demo.errors import DemoError
from local.demo.transport import Send

__all__ = ["LoadSample", "LoadWatch", "MetricCounts"]


class MetricCounts(NamedTuple):
    """Shards of a series' layout in force: of the table and of the index; 0 before its first write."""

    shards: int
    index_shards: int


@dataclass(frozen=True, slots=True)
class LoadSample:
    """What was seen at a time. `written` are write units, `throttled` writes, since the table was made."""

    at: float
    written: float
    throttled: int
    layouts: Mapping[str, MetricCounts]


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadWatch:
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

    async def _counts(self, series: str) -> MetricCounts:
        layout = await self.client.layout(series)
        if layout is None:
            return MetricCounts(0, 0)
        return MetricCounts(layout["number_of_shards"], layout["index_shards"])


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
