"""A hot key: a few busy series on small partitions, whose layouts grow while they are loaded."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from itertools import islice
from typing import Any, Final

from dynamoheat.serve.options import HeatOptions
from local.cloud import Cloud
from local.demo.chart import chart
from local.demo.client import Client, ClientEvent
from local.demo.display import Display
from local.demo.errors import DemoError
from local.demo.flights import Flights
from local.demo.load import load
from local.demo.pace import Pace
from local.demo.transport import Send
from local.demo.verify import compare
from local.demo.watch import LoadSample, LoadWatch

__all__ = ["AIRPORTS", "SMALL", "HotKeys", "Size", "events_table"]

AIRPORTS: Final = ("ORD", "DFW", "ATL")
# A table that is warm for 40,000 writes a second, with all of its rates divided by twenty.
SMALL: Final = HeatOptions(partition_wcu=50, parameters=("on_demand_partitions=40",))


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """How much is loaded how fast."""

    flights: int = 3_500  # of each airport, at most
    request_events: int = 100
    at_once: int = 4
    events_a_second: float = 500.0


@dataclass(frozen=True, slots=True, kw_only=True)
class HotKeys:
    """What the step works on: an API, the endpoint under it, and the flights. Raises DemoError or ApiError."""

    client: Client
    endpoint: Send
    table: str
    display: Display
    flights: Flights
    clock: Callable[[], float]
    sleep: Callable[[float], Awaitable[None]]
    size: Size = Size()
    period: float = 1.0  # seconds between looks at rates and layouts

    async def show(self) -> int:
        """Load the airports while their layouts grow, draw that, compare all; return how many events were right."""
        series = _sequences(self.flights, self.size.flights)
        if not series:
            self.display.say("None of these airports is among the flights: nothing to load.")
            return 0
        samples = await self._load(series)
        self._draw(samples)
        layouts = {name: await self._layout(name) for name in series}
        self._epochs(layouts)
        return await self._verify(series)

    async def _load(self, series: Mapping[str, list[ClientEvent]]) -> list[LoadSample]:
        total = sum(map(len, series.values()))
        size = self.size
        pace = Pace(size.request_events / size.events_a_second, self.clock, self.sleep)
        watch = LoadWatch(
            endpoint=self.endpoint,
            client=self.client,
            table=self.table,
            series=list(series),
            clock=self.clock,
            period=self.period,
        )
        with self.display.progress("stored", total) as stored:
            batches = _requests(series, size.request_events)
            work = partial(
                load, self.client, batches, at_once=size.at_once, stored=stored, turn=pace.turn
            )
            samples = await watch.during(work)
        throttled = samples[-1].throttled - samples[0].throttled
        self.display.done(
            f"all {total:,} events accepted; {throttled:,} writes throttled meanwhile"
        )
        return samples

    def _draw(self, samples: Sequence[LoadSample]) -> None:
        self.display.say("")
        for line in chart(samples):
            self.display.say(line)
        self.display.say("")

    async def _layout(self, series: str) -> dict[str, Any]:
        layout = await self.client.layout(series)
        if layout is None:
            raise DemoError(f"{series} has no layout, although events of it were accepted.")
        return layout

    def _epochs(self, layouts: Mapping[str, dict[str, Any]]) -> None:
        columns = ["series", "epoch", "shards", "index", "from", "to"]
        rows = [
            [name, *_epoch(epoch)] for name, layout in layouts.items() for epoch in layout["epochs"]
        ]
        self.display.say(
            "Epochs: shards of the table and of the index, and the times of events covered."
        )
        self.display.say(
            "A throttled writer lowers the newest one's beginning, by leaps, to take old events too."
        )
        self.display.table("", columns, rows)
        for name, layout in layouts.items():
            first, last = layout["epochs"][0], layout["epochs"][-1]
            if last["id"] > first["id"]:
                shards = f"{first['shards']} to {last['shards']} shards"
                index = f"{first['index_shards']} to {last['index_shards']} index shards"
                self.display.done(f"{name} grew from {shards}, {index}")
            else:
                self.display.say(f"  {name} did not grow")

    async def _verify(self, series: Mapping[str, list[ClientEvent]]) -> int:
        verified = 0
        total = sum(map(len, series.values()))
        with self.display.progress("compared", total) as same:
            for name, events in series.items():
                verified += await compare(name, events, self.client.pages(name), same)
        self.display.done(f"all {verified:,} events are as in the file, under {len(series)} keys")
        return verified


def events_table(cloud: Cloud) -> str:
    """Return the name of the deployed table of events."""
    for outputs in cloud.outputs.values():
        if "EventsTable" in outputs:
            return outputs["EventsTable"]
    raise DemoError("The deployed stacks name no table of events.")


def _sequences(flights: Flights, count: int) -> dict[str, list[ClientEvent]]:
    """Return the first so many flights of each of the airports, as events in the order they are read back."""
    known = set(flights.origins())
    return {
        name: [flight.event() for flight in islice(flights.of(name), count)]
        for name in AIRPORTS
        if name in known
    }


def _requests(series: Mapping[str, Sequence[ClientEvent]], size: int) -> list[list[ClientEvent]]:
    """Return the events of all series in the order of the file, `size` a request."""
    events = sorted((each for events in series.values() for each in events), key=lambda e: e["id"])
    return [events[start : start + size] for start in range(0, len(events), size)]


def _epoch(epoch: Mapping[str, Any]) -> list[str]:
    return [
        str(epoch["id"]),
        str(epoch["shards"]),
        str(epoch["index_shards"]),
        _minute(epoch["low"]) or "the beginning",
        _minute(epoch["close"]) or "in force",
    ]


def _minute(time: str | None) -> str:
    return "" if time is None else f"{datetime.fromisoformat(time):%Y-%m-%d %H:%M}"
