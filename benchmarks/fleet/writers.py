"""A fleet of writers with an event store each, which send batches at a given rate.

All writers write the hot series. Each neighbour is written by one of them.
"""

import itertools
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from random import Random
from typing import Final

from benchmarks.fleet.dynamodb import EVENTS, LAYOUTS, USAGE, Seconds, SimulatedDynamoDB
from benchmarks.fleet.virtual_time import VirtualTime
from spillway import Event, EventStore, Runtime, Settings, keys
from spillway.layouts.codec import decode_layout
from spillway.layouts.model import Layout
from spillway.scaling.updates import ScalingEvent, ScalingKind

__all__ = ["BATCH", "SERIES", "FleetOutcome", "WriterFleet"]

BATCH: Final = 25
SERIES: Final = "SENSOR_READING"
_START: Final = 1_780_315_200.0
_RUN_OFF: Final = 5.0  # seconds for requests that are under way at the end


@dataclass
class FleetOutcome:
    """What a run showed; seconds count from its start.

    Attributes:
        offered, at_once: distinct events of the hot series by second, and how many the first
        attempt stored.
        neighbours_at_once: share of the neighbours' events that the first attempt stored.
        grown: neighbours that have more than one shard in the end.
        index_throttled: writes that the layout table's sparse index throttled.
    """

    offered: list[int]
    at_once: list[int]
    kinds: Counter[ScalingKind]
    events: list[ScalingEvent]
    refused_updates: int
    rejected: int
    layout: Layout | None
    calls: Counter[str]
    neighbours_at_once: float
    grown: list[str]
    index_throttled: int

    def settled_after(self, share: float = 0.99) -> int | None:
        """Return the second from which on `share` is stored at once, None without one."""
        last_bad = max(
            (
                second
                for second, offered in enumerate(self.offered)
                if self.at_once[second] < share * offered
            ),
            default=-1,
        )
        return None if last_bad >= len(self.offered) - 2 else last_bad + 1

    def throttled_share(self, until: int | None = None) -> float:
        """Return the share of distinct events that their first attempt did not store."""
        offered = sum(self.offered[:until])
        return 1 - sum(self.at_once[:until]) / offered if offered else 0.0


def no_sharding_key(_: Random) -> str | None:
    """Give an event no sharding key."""
    return None


@dataclass
class WriterFleet:
    """Writers that share a simulated DynamoDB.

    `rate` gives the hot series' events a second at each second of the run, None where there is
    none. Each neighbour gets `neighbour_rate` events a second, `neighbour_batch` at a time.
    """

    database: Callable[[VirtualTime, Random], SimulatedDynamoDB]
    settings: Settings
    rate: Callable[[float], float] | None
    seconds: int
    writers: int = 200
    batch: int = BATCH
    neighbours: int = 0
    neighbour_rate: float = 6.0
    neighbour_batch: int = 3
    with_usage: bool = True
    sharding_key: Callable[[Random], str | None] = no_sharding_key
    payload_bytes: int = 800  # an item of just below 1 KB
    timeout_seconds: float = 4.0  # of a write

    def run(self, seed: int) -> FleetOutcome:
        """Run in virtual time; equal seeds give equal outcomes."""
        self._numbers = itertools.count()
        self._random = Random(seed)
        self._time = VirtualTime(_START + self._random.random() * 10)
        self._began = self._time.now
        self._database = self.database(self._time, self._random)
        self._noted: list[ScalingEvent] = []
        self._rejected = 0
        stores = [self._store() for _ in range(self.writers)]
        for store in stores:
            if self.rate is not None:
                self._begin(store, SERIES, self.rate, self.writers, self.batch)
        for number in range(self.neighbours):
            store = stores[number % self.writers]
            self._begin(store, f"neighbour-{number}", self._neighbour, 1, self.neighbour_batch)
        self._time.run_until(self._began + self.seconds + _RUN_OFF)
        return self._outcome()

    def _neighbour(self, _: float) -> float:
        return self.neighbour_rate

    def _begin(
        self,
        store: EventStore,
        series: str,
        rate: Callable[[float], float],
        writers: int,
        batch: int,
    ) -> None:
        """Let a store write its share of a series' events."""
        work = partial(self._send_batches, store, series, rate, writers, batch)
        self._time.at(self._time.now, work)

    def _store(self) -> EventStore:
        runtime = Runtime(
            now=lambda: self._time.now,
            monotonic=lambda: self._time.now,
            sleep=self._time.sleep,
            random=self._random.random,
            new_id=lambda: str(next(self._numbers)),
            parallel=lambda tasks: [task() for task in tasks],
        )
        return EventStore(
            self._database,
            table=EVENTS,
            layouts=LAYOUTS,
            usage=USAGE if self.with_usage else None,
            settings=self.settings,
            runtime=runtime,
            observe=self._noted.append,
        )

    def _send_batches(
        self,
        store: EventStore,
        series: str,
        rate: Callable[[float], float],
        writers: int,
        batch: int,
    ) -> None:
        """Begin a batch as often as this writer's share of the rate has it, without waiting."""
        end = self._began + self.seconds
        self._time.sleep(self._random.random() * batch * writers / rate(0.0))
        while self._time.now < end:
            self._time.at(self._time.now, partial(self._write, store, series, batch))
            share = rate(self._time.now - self._began) / writers
            self._time.sleep(batch / share * (0.9 + 0.2 * self._random.random()))

    def _write(self, store: EventStore, series: str, batch: int) -> None:
        time = datetime.fromtimestamp(self._time.now, UTC)
        payload = {"value": "x" * self.payload_bytes}
        events = [
            Event(
                series=series,
                time=time + timedelta(microseconds=n),
                id=str(next(self._numbers)),
                payload=payload,
                sharding_key=self.sharding_key(self._random),
            )
            for n in range(batch)
        ]
        result = store.write(events, timeout=self.timeout_seconds)
        self._rejected += len(result.rejected)

    def _outcome(self) -> FleetOutcome:
        database = self._database
        hot = database.seconds.pop(SERIES, Seconds())
        first = int(self._began)
        span = range(first, first + self.seconds)
        layouts = {name: decode_layout(item) for name, item in database.kept.layouts.items()}
        layout = layouts.pop(SERIES, None)
        offered = sum(each.offered.total() for each in database.seconds.values())
        at_once = sum(each.at_once.total() for each in database.seconds.values())
        index = database.heat.resource(LAYOUTS, keys.LAYOUT_INDEX_NAME)
        return FleetOutcome(
            offered=[hot.offered[second] for second in span],
            at_once=[hot.at_once[second] for second in span],
            kinds=Counter(event.kind for event in self._noted),
            events=self._noted,
            refused_updates=database.refused_updates,
            rejected=self._rejected,
            layout=layout,
            calls=database.calls,
            neighbours_at_once=at_once / offered if offered else 1.0,
            grown=[
                name
                for name, each in layouts.items()
                if max(each.current.shards, each.current.index_shards) > 1
            ],
            index_throttled=index.meter.total.throttled.total(),
        )
