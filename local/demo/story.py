"""The main steps of the demo against a deployed API: load, read back, compare; and their figures."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Final

from local.demo.client import Client, ClientEvent, Order
from local.demo.display import Display
from local.demo.errors import DemoError
from local.demo.figures import Timings, percentile
from local.demo.flights import Flights, event_batches
from local.demo.load import load
from local.demo.verify import MismatchError, compare, verify

__all__ = ["Story", "StoryReport", "report"]

_REQUEST_EVENTS: Final = 1_000
# The local functions share two cores with everything else: more requests at once only wait longer.
_AT_ONCE: Final = 2
_SAMPLE: Final = 1_000  # events of the series with a sharding key
_ROWS: Final = 3  # of a printed table


def _unheard(_: int) -> None:
    """Take no note of progress."""


@dataclass(frozen=True, slots=True)
class StoryReport:
    """What the steps found: how many flights were verified, and the seconds that loading and reading took."""

    verified: int
    loading: float
    reading: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Story:
    """What the steps work on. Each raises DemoError or ApiError where something is wrong."""

    client: Client
    display: Display
    clock: Callable[[], float]
    file: Path
    flights: Flights

    async def tell(self) -> StoryReport:
        """Run all steps."""
        loading = await self._load()
        await self._read_back()
        verified, reading = await self._verify()
        return StoryReport(verified, loading, reading)

    async def _load(self) -> float:
        total = len(self.flights)
        self.display.heading(
            f"Load {total:,} flights",
            f"POST /v1/events, {_REQUEST_EVENTS:,} events a request, {_AT_ONCE} requests at once."
            " An event's series is the airport",
            "of departure, its id the number of its row: sent twice, it is still one event.",
        )
        batches = event_batches(self.file, total, _REQUEST_EVENTS)
        began = self.clock()
        with self.display.progress("stored", total) as stored:
            await load(self.client, batches, at_once=_AT_ONCE, stored=stored)
        seconds = self.clock() - began
        self.display.done(f"{total:,} flights of {len(self.flights.origins())} airports stored")
        return seconds

    async def _read_back(self) -> None:
        busiest = self.flights.origins()[0]
        self.display.heading(
            "Read back",
            "GET /v1/events, in order of time, from the shards of the table; GET /v1/events/one.",
        )
        await self._read_pages(busiest, "asc")
        await self._read_pages(busiest, "desc")
        await self._read_one(busiest)
        await self._read_destination(busiest)

    async def _read_pages(self, series: str, order: Order) -> None:
        latest_first = order == "desc"
        first = await anext(self.client.pages(series, limit=_ROWS, order=order))
        which = "latest" if latest_first else "first"
        self.display.events(f"The {which} departures of {series} (order={order}):", first)
        expected = (each.event() for each in self.flights.of(series, latest_first=latest_first))
        pages = self.client.pages(series, order=order)
        count = await compare(f"{series}, order={order}", expected, pages, _unheard)
        self.display.done(f"{series}, order={order}: all {count:,} events are as in the file")

    async def _read_one(self, series: str) -> None:
        middle = self.flights.count(series) // 2
        wanted = next(islice(self.flights.of(series), middle, None)).event()
        found = await self.client.one(series, wanted["time"], wanted["id"])
        if found != wanted:
            raise MismatchError(f"{series}, one event", middle, wanted, found)
        self.display.done(f"one event by its time and id: {found['time']} {found['id']}")

    async def _read_destination(self, origin: str) -> None:
        series = f"{origin}-by-destination"
        events = [
            _by_destination(flight.event(), series)
            for flight in islice(self.flights.of(origin), _SAMPLE)
        ]
        await load(self.client, [events], at_once=1, stored=_unheard)
        destinations = Counter(each["payload"]["destination"] for each in events)
        ((destination, _),) = destinations.most_common(1)
        expected = [each for each in events if each["payload"]["destination"] == destination]
        pages = self.client.pages(series, sharding_key=destination, limit=100)
        name = f"{series}, sharding_key={destination}"
        count = await compare(name, expected, pages, _unheard)
        self.display.done(
            f"{name}: {count:,} of the series' {len(events):,} events, as in the file"
        )

    async def _verify(self) -> tuple[int, float]:
        total = len(self.flights)
        self.display.heading(
            "Compare every airport with the file",
            "Each series is read from its first to its last event: every flight once, in order,"
            " unchanged.",
        )
        began = self.clock()
        with self.display.progress("compared", total) as same:
            verified = await verify(self.client, self.flights, at_once=_AT_ONCE, same=same)
        seconds = self.clock() - began
        if verified != total:
            raise DemoError(f"{verified:,} flights were read, {total:,} were loaded.")
        self.display.done(f"{len(self.flights.origins())} series are as in the file")
        return verified, seconds


def report(display: Display, told: StoryReport, timings: Timings) -> None:
    """Show how fast the steps were."""
    display.heading("Figures", "On this machine, emulated AWS and this client included.")
    rows = [
        [name, f"{told.verified / seconds:,.0f}", *_quantiles(timings.of(method))]
        for name, method, seconds in (
            ("write", "POST", told.loading),
            ("read", "GET", told.reading),
        )
    ]
    columns = ["", "events/s", "requests", "p50", "p99"]
    display.table(f"Up to {_REQUEST_EVENTS:,} events a request:", columns, rows)


def _by_destination(event: ClientEvent, series: str) -> ClientEvent:
    return {**event, "series": series, "sharding_key": event["payload"]["destination"]}


def _quantiles(seconds: Sequence[float]) -> list[str]:
    marks = [f"{percentile(seconds, percent) * 1_000:,.0f} ms" for percent in (50, 99)]
    return [f"{len(seconds):,}", *marks]
