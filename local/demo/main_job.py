"""The main steps of the demo against a deployed API: load flights, read them back, compare them."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Final

from local.demo.client import Client, ClientEvent, Order
from local.demo.display import Display, RequestTimings, percentile
from local.demo.errors import DemoError
from local.demo.flights import Flights, event_batches
from local.demo.load import load_batches
from local.demo.verify import MismatchError, compare, verify

__all__ = ["MainJob", "MainJobReport", "show_figures"]

_REQUEST_EVENTS: Final = 1_000
# The local functions share two cores with all else: further requests at once would only wait.
_CONCURRENCY: Final = 2
_SHARDING_KEY_EVENTS: Final = 1_000  # of the series with a sharding key
_TABLE_ROWS: Final = 3  # of a printed table


@dataclass(frozen=True, slots=True)
class MainJobReport:
    """The number of flights that were verified, and the seconds that loading and reading took."""

    verified: int
    loading_seconds: float
    reading_seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class MainJob:
    """The steps, and what they work on. Each raises DemoError or ApiError if it fails."""

    client: Client
    display: Display
    clock: Callable[[], float]
    file: Path
    flights: Flights

    async def run(self) -> MainJobReport:
        """Run all steps."""
        loading = await self._load()
        await self._read_back()
        verified, reading = await self._verify()
        return MainJobReport(verified, loading, reading)

    async def _load(self) -> float:
        total = len(self.flights)
        self.display.heading(
            f"Load {total:,} flights",
            f"POST /v1/events: {_REQUEST_EVENTS:,} events a request, {_CONCURRENCY} requests at"
            " once.",
            "An event's series is the airport of departure, its id the number of its row in the",
            "file. An event that is sent twice is stored once.",
        )
        batches = event_batches(self.file, total, _REQUEST_EVENTS)
        began = self.clock()
        with self.display.progress("stored", total) as on_stored:
            await load_batches(self.client, batches, concurrency=_CONCURRENCY, on_stored=on_stored)
        seconds = self.clock() - began
        self.display.done(f"{total:,} flights of {len(self.flights.origins())} airports stored")
        return seconds

    async def _read_back(self) -> None:
        busiest = self.flights.origins()[0]
        self.display.heading(
            "Read back",
            "GET /v1/events merges the shards of a series in order of time; GET /v1/events/one"
            " returns one event.",
        )
        await self._read_pages(busiest, "asc")
        await self._read_pages(busiest, "desc")
        await self._read_one(busiest)
        await self._read_destination(busiest)

    async def _read_pages(self, series: str, order: Order) -> None:
        latest_first = order == "desc"
        first = await anext(self.client.pages(series, limit=_TABLE_ROWS, order=order))
        which = "latest" if latest_first else "first"
        self.display.events(f"The {which} departures from {series} (order={order}):", first)
        expected = (each.event() for each in self.flights.of(series, latest_first=latest_first))
        pages = self.client.pages(series, order=order)
        count = await compare(f"{series}, order={order}", expected, pages, _ignore)
        self.display.done(f"{series}, order={order}: all {count:,} events equal the file's")

    async def _read_one(self, series: str) -> None:
        middle = self.flights.count(series) // 2
        expected = next(islice(self.flights.of(series), middle, None)).event()
        found = await self.client.one(series, expected["time"], expected["id"])
        if found != expected:
            raise MismatchError(f"{series}, one event", middle, expected, found)
        self.display.done(f"one event by its time and id: {found['time']} {found['id']}")

    async def _read_destination(self, origin: str) -> None:
        series = f"{origin}-by-destination"
        events = [
            _with_destination_as_key(flight.event(), series)
            for flight in islice(self.flights.of(origin), _SHARDING_KEY_EVENTS)
        ]
        await load_batches(self.client, [events], concurrency=1, on_stored=_ignore)
        destinations = Counter(each["payload"]["destination"] for each in events)
        ((destination, _),) = destinations.most_common(1)
        expected = [each for each in events if each["payload"]["destination"] == destination]
        pages = self.client.pages(series, sharding_key=destination, limit=100)
        name = f"{series}, sharding_key={destination}"
        count = await compare(name, expected, pages, _ignore)
        self.display.done(
            f"{name}: {count:,} of the series' {len(events):,} events, equal to the file's"
        )

    async def _verify(self) -> tuple[int, float]:
        total = len(self.flights)
        self.display.heading(
            "Compare every airport with the file",
            "Each series is read from its first to its last event. Every flight must be there"
            " once, in order,",
            "unchanged.",
        )
        began = self.clock()
        with self.display.progress("compared", total) as on_equal:
            verified = await verify(
                self.client, self.flights, concurrency=_CONCURRENCY, on_equal=on_equal
            )
        seconds = self.clock() - began
        if verified != total:
            raise DemoError(f"{verified:,} flights were read, but {total:,} were loaded.")
        self.display.done(f"all {len(self.flights.origins())} series equal the file's")
        return verified, seconds


def show_figures(display: Display, report: MainJobReport, timings: RequestTimings) -> None:
    """Print how fast the steps were."""
    display.heading(
        "Figures", "Measured on this machine; they include the emulated AWS and this client."
    )
    rows = [
        [name, f"{report.verified / seconds:,.0f}", *_describe_timings(timings.of(method))]
        for name, method, seconds in (
            ("write", "POST", report.loading_seconds),
            ("read", "GET", report.reading_seconds),
        )
    ]
    columns = ["", "events/s", "requests", "p50", "p99"]
    display.table(f"Up to {_REQUEST_EVENTS:,} events a request:", columns, rows)


def _ignore(_: int) -> None:
    """Ignore progress."""


def _with_destination_as_key(event: ClientEvent, series: str) -> ClientEvent:
    return {**event, "series": series, "sharding_key": event["payload"]["destination"]}


def _describe_timings(seconds: Sequence[float]) -> list[str]:
    percentiles = [f"{percentile(seconds, percent) * 1_000:,.0f} ms" for percent in (50, 99)]
    return [f"{len(seconds):,}", *percentiles]
