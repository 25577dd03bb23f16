"""The one skewed workload that all generations are shown on: phases of even and of hot traffic.

Each phase is there for what one design cured, or for what none did. It is offered at its rate whatever is
refused: nothing is retried.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from heapq import merge
from itertools import count, cycle
from random import Random
from typing import Final

from dynamoheat.partitions import HASHES, position
from dynamoheat.studies.generations.settings import Ask, Opening

__all__ = ["ITEM_UNITS", "OPENING", "SKEWED", "Event", "Phase", "RequestStream", "Workload"]

ITEM_UNITS: Final = 100.0
"""Write units of each item: large items make few requests, and limits count only units."""

OPENING: Final = Opening(read=600, write=3200, stored_bytes=4 * 9.8e9)
"""The table of the paper's example, four partitions of 800, each about to outgrow 10 GB."""

_RANGES: Final = 16  # even traffic visits each of so many equal ranges of hashes in turn
_KEYS_A_RANGE: Final = 4

Where = tuple[str, str]
Event = tuple[float, int, Ask]
"""When, in which phase, and what."""


@dataclass(frozen=True, slots=True)
class RequestStream:
    """Writes at a steady rate, units a second, to keys that `where` draws."""

    rate: float
    where: Callable[[Random], Iterator[Where]]


@dataclass(frozen=True, slots=True)
class Phase:
    """Streams that run together for some minutes."""

    name: str
    minutes: float
    streams: tuple[RequestStream, ...]


@dataclass(frozen=True, slots=True)
class Workload:
    """Phases, one after the other."""

    phases: tuple[Phase, ...]

    @property
    def starts(self) -> list[float]:
        """When each phase starts, and at last when all is over; seconds."""
        starts = [0.0]
        for phase in self.phases:
            starts.append(starts[-1] + 60 * phase.minutes)
        return starts

    def events(self, seed: int = 0, routers: int = 8) -> Iterator[Event]:
        """Yield all writes in the order of time."""
        random = Random(seed)  # noqa: S311  # a simulation's chance, not a secret
        for number, (phase, start) in enumerate(zip(self.phases, self.starts, strict=False)):
            offered = merge(
                *(
                    _offered(stream, start, start + 60 * phase.minutes, random)
                    for stream in phase.streams
                )
            )
            for at, (key, sort) in offered:
                yield at, number, Ask(key, sort, ITEM_UNITS, random.randrange(routers))


def _offered(
    stream: RequestStream, start: float, end: float, random: Random
) -> Iterator[tuple[float, Where]]:
    step = ITEM_UNITS / stream.rate
    places = stream.where(random)
    for number in count():
        at = start + (number + 0.5) * step
        if at >= end:
            return
        yield at, next(places)


def _evenly(random: Random) -> Iterator[Where]:
    """Visit keys all over the table in turn, so that equal ranges of hashes get equal traffic."""
    rows: list[list[str]] = [[] for _ in range(_RANGES)]
    for number in count():
        key = f"user-{number}"
        row = rows[position(key)[0] * _RANGES // HASHES]
        if len(row) < _KEYS_A_RANGE:
            row.append(key)
        elif all(len(row) == _KEYS_A_RANGE for row in rows):
            break
    turns = [keys[turn] for turn in range(_KEYS_A_RANGE) for keys in rows]
    return ((key, f"{random.random():.9f}") for key in cycle(turns))


def _collection(key: str) -> Callable[[Random], Iterator[Where]]:
    """Write one partition key, sort keys all over its range."""
    return lambda random: ((key, f"{random.random():.9f}") for _ in count())


def _time_series(key: str) -> Callable[[Random], Iterator[Where]]:
    """Write one partition key, sort keys in order of time."""
    return lambda _: ((key, f"{number:09}") for number in count())


def _phase(name: str, minutes: float, even: float, hot: RequestStream | None = None) -> Phase:
    streams = (RequestStream(even, _evenly),)
    return Phase(name, minutes, streams if hot is None else (*streams, hot))


SKEWED: Final = Workload(
    (
        _phase("calm", 2, 1200),
        _phase("even", 5, 3000),
        _phase("calm", 3, 1200),
        _phase("spike", 2, 1200, RequestStream(650, _collection("flash-sale"))),
        _phase("calm", 4, 1200),
        _phase("hot key", 18, 1200, RequestStream(600, _collection("monday"))),
        _phase("hot key moves", 18, 1200, RequestStream(600, _collection("tuesday"))),
        _phase("hot range", 25, 1000, RequestStream(1600, _collection("launch"))),
        _phase("calm", 5, 1200),
        _phase("above provisioned", 12, 5500),
        _phase("calm", 3, 1200),
        _phase("one time series", 10, 500, RequestStream(1500, _time_series("sensor"))),
    )
)
"""107 minutes on `OPENING`; provisioned throughput is exceeded in "above provisioned" only."""
