"""The step with hot keys: a few busy series on small partitions grow while they are loaded."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from itertools import islice
from typing import Any, Final

from dynamoheat.serve.options import HeatOptions
from local.cloud import Cloud
from local.demo.client import Client, ClientEvent, Send
from local.demo.display import Display, chart
from local.demo.errors import DemoError
from local.demo.flights import Flights
from local.demo.load import LoadMonitor, LoadSample, RequestPacer, load_batches
from local.demo.verify import compare

__all__ = ["AIRPORTS", "SMALL_PARTITIONS", "HotKeyStep", "LoadSize", "events_table"]

AIRPORTS: Final = ("ORD", "DFW", "ATL")
# A table that is warm for 40,000 writes a second, with all rates divided by twenty.
SMALL_PARTITIONS: Final = HeatOptions(partition_wcu=50, parameters=("on_demand_partitions=40",))


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadSize:
    """The size and the pace of the load."""

    flights: int = 3_500  # of each airport, at most
    request_events: int = 100
    concurrency: int = 4
    events_a_second: float = 500.0


@dataclass(frozen=True, slots=True, kw_only=True)
class HotKeyStep:
    """The step, and what it works on: an API, the endpoint below it, and the flights.

    It raises DemoError or ApiError if it fails.
    """

    client: Client
    endpoint: Send
    table: str
    display: Display
    flights: Flights
    clock: Callable[[], float]
    sleep: Callable[[float], Awaitable[None]]
    size: LoadSize = LoadSize()
    period: float = 1.0  # seconds between samples of rates and layouts

    async def run(self) -> int:
        """Load the airports, draw how layouts grow, compare; return how many events are equal."""
        series = _sequences(self.flights, self.size.flights)
        if not series:
            self.display.print(
                "None of these airports is among the flights, so there is nothing to load."
            )
            return 0
        samples = await self._load(series)
        self._draw(samples)
        layouts = {name: await self._layout(name) for name in series}
        self._show_epochs(layouts)
        return await self._verify(series)

    async def _load(self, series: Mapping[str, list[ClientEvent]]) -> list[LoadSample]:
        total = sum(map(len, series.values()))
        size = self.size
        pacer = RequestPacer(size.request_events / size.events_a_second, self.clock, self.sleep)
        monitor = LoadMonitor(
            endpoint=self.endpoint,
            client=self.client,
            table=self.table,
            series=list(series),
            clock=self.clock,
            period=self.period,
        )
        with self.display.progress("stored", total) as on_stored:
            batches = _requests(series, size.request_events)
            work = partial(
                load_batches,
                self.client,
                batches,
                concurrency=size.concurrency,
                on_stored=on_stored,
                wait_to_start=pacer.wait,
            )
            samples = await monitor.sample_during(work)
        throttled = samples[-1].throttled - samples[0].throttled
        self.display.done(
            f"all {total:,} events accepted, and {throttled:,} writes throttled meanwhile"
        )
        return samples

    def _draw(self, samples: Sequence[LoadSample]) -> None:
        self.display.print("")
        for line in chart(samples):
            self.display.print(line)
        self.display.print("")

    async def _layout(self, series: str) -> dict[str, Any]:
        layout = await self.client.layout(series)
        if layout is None:
            raise DemoError(f"{series} has no layout, although its events were accepted.")
        return layout

    def _show_epochs(self, layouts: Mapping[str, dict[str, Any]]) -> None:
        columns = ["series", "epoch", "shards", "index", "from", "to"]
        rows = [
            [name, *_epoch_row(epoch)]
            for name, layout in layouts.items()
            for epoch in layout["epochs"]
        ]
        self.display.print(
            "Epochs: how many shards the table and the index have, for events of which times."
        )
        self.display.print(
            "A throttled writer moves the newest epoch's start back, so that old events use it too."
        )
        self.display.table("", columns, rows)
        for name, layout in layouts.items():
            first, last = layout["epochs"][0], layout["epochs"][-1]
            if last["id"] > first["id"]:
                shards = f"{first['shards']} to {last['shards']} shards"
                index = f"{first['index_shards']} to {last['index_shards']} index shards"
                self.display.done(f"{name} grew from {shards}, {index}")
            else:
                self.display.print(f"  {name} did not grow")

    async def _verify(self, series: Mapping[str, list[ClientEvent]]) -> int:
        verified = 0
        total = sum(map(len, series.values()))
        with self.display.progress("compared", total) as on_equal:
            for name, events in series.items():
                verified += await compare(name, events, self.client.pages(name), on_equal)
        self.display.done(f"all {verified:,} events of {len(series)} series equal the file's")
        return verified


def events_table(cloud: Cloud) -> str:
    """Return the name of the deployed table of events; DemoError if the stacks have none."""
    for outputs in cloud.outputs.values():
        if "EventsTable" in outputs:
            return outputs["EventsTable"]
    raise DemoError("The deployed stacks have no output EventsTable.")


def _sequences(flights: Flights, count: int) -> dict[str, list[ClientEvent]]:
    """Return the first `count` flights of each airport as events, in the order of reads."""
    origins = set(flights.origins())
    return {
        name: [flight.event() for flight in islice(flights.of(name), count)]
        for name in AIRPORTS
        if name in origins
    }


def _requests(series: Mapping[str, Sequence[ClientEvent]], size: int) -> list[list[ClientEvent]]:
    """Return the events of all series in the order of the file, in lists of `size`."""
    events = sorted((each for events in series.values() for each in events), key=lambda e: e["id"])
    return [events[start : start + size] for start in range(0, len(events), size)]


def _epoch_row(epoch: Mapping[str, Any]) -> list[str]:
    return [
        str(epoch["id"]),
        str(epoch["shards"]),
        str(epoch["index_shards"]),
        _minute(epoch["low"]) or "the beginning",
        _minute(epoch["close"]) or "current",
    ]


def _minute(time: str | None) -> str:
    return "" if time is None else f"{datetime.fromisoformat(time):%Y-%m-%d %H:%M}"
