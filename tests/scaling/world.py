"""DynamoDB in virtual time for the tests of scaling: the model of its partitions in front of tables in memory."""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import timedelta
from random import Random
from typing import Any, Final

from dynamoheat import Heat, IndexSettings, Key, ModelParameters, TableSettings, ThroughputSettings
from spillway import Event, EventStore, Settings, ThrottledError, keys
from spillway.dynamodb.port import ThrottlingReason
from spillway.layouts.codec import decode_layout
from spillway.layouts.model import Layout
from spillway.layouts.source import LayoutSource
from spillway.runtime import Runtime
from spillway.scaling.autoscaler import WriterAutoscaler
from spillway.scaling.evidence import ThrottledWrite, ThrottleSummary
from spillway.scaling.updates import ScalingEvent, ScalingKind
from spillway.scaling.usage import UsageRecorder
from tests.support.atomic_table import AtomicTables
from tests.support.fakes import FakeClock, dated, fake_runtime
from tests.support.memory_table import EVENTS, LAYOUTS

__all__ = [
    "INDEX_KEY_RANGE",
    "SERIES",
    "TABLE_KEY_RANGE",
    "USAGE",
    "World",
    "events_table",
    "pressure_on",
    "throttled",
]

SERIES: Final = "ORD"
USAGE: Final = "usage"
TABLE_KEY_RANGE: Final = ThrottlingReason("TableWriteKeyRangeThroughputExceeded", "table/events")
INDEX_KEY_RANGE: Final = ThrottlingReason(
    "IndexWriteKeyRangeThroughputExceeded", "table/events/index/i"
)


def events_table(**throughput: float) -> TableSettings:
    """The main table: on demand and warm with 40 partitions, as its index is, unless told otherwise."""
    given = ThroughputSettings(**(throughput or {"warm_write": 40_000.0}))
    index = IndexSettings(
        name=keys.INDEX_NAME,
        key=Key(keys.INDEX_PARTITION_KEY, keys.SORT_KEY),
        throughput=ThroughputSettings(warm_write=40_000.0)
        if given.provisioned_write is None
        else given,
    )
    return TableSettings(
        name=EVENTS,
        key=Key(keys.PARTITION_KEY, keys.SORT_KEY),
        provisioned=given.provisioned_write is not None,
        throughput=given,
        indexes=(index,),
    )


class World:
    """The port, its clock, and what processes on it report. A call takes a millisecond.

    `before` runs ahead of each call: it may raise, or do what another process does meanwhile.
    `names_reasons` is off for an old endpoint.
    """

    def __init__(
        self,
        settings: TableSettings | None = None,
        parameters: ModelParameters | None = None,
        *,
        seed: int = 1,
    ) -> None:
        self.clock = FakeClock()
        self.random = Random(seed)
        self.heat = Heat(parameters, seed=seed)
        self.heat.create_table(settings or events_table(), self.clock.now())
        self.kept = AtomicTables()
        self.reported: list[ScalingEvent] = []
        self.calls: Counter[str] = Counter()
        self.before: Callable[[str, Mapping[str, Any]], None] = lambda *_: None
        self.names_reasons = True

    def __call__(self, operation: str, request: Mapping[str, Any], /) -> dict[str, Any]:
        self.clock.seconds += 0.001
        table = request.get("TableName", EVENTS)
        self.calls[f"{operation} {table}"] += 1
        self.before(operation, request)
        if table != EVENTS or operation == "Query":
            return dated(self.kept(operation, request), self.clock.now())
        return self._write(operation, request)

    def _write(self, operation: str, request: Mapping[str, Any]) -> dict[str, Any]:
        admission = self.heat.admit(operation, request, self.clock.now())
        if admission.is_rejected:
            found = {
                ThrottlingReason(str(each.reason), each.resource) for each in admission.throttles
            }
            reasons = tuple(found) if self.names_reasons else ()
            raise ThrottledError(admission.throttles[0].exception, "", reasons)
        self.kept(operation, admission.forwarded_request)
        return {"UnprocessedItems": admission.unprocessed}

    def runtime(self) -> Runtime:
        """Return clocks and chance of a process."""
        return fake_runtime(self.clock, self.random.random)

    def store(self, settings: Settings | None = None, **options: Any) -> EventStore:
        """Return another process's store, with a usage table unless told otherwise."""
        return EventStore(
            self,
            table=EVENTS,
            layouts=LAYOUTS,
            settings=settings,
            runtime=self.runtime(),
            observe=self.reported.append,
            **{"usage": USAGE, **options},
        )

    def grower(
        self, settings: Settings | None = None, *, with_usage: bool = True
    ) -> WriterAutoscaler:
        """Return another process's grower that has loaded the layout."""
        settings = settings or Settings()
        layouts = LayoutSource(self, LAYOUTS, settings, self.runtime())
        layouts.load_for_write(SERIES)
        recorder = UsageRecorder(self, USAGE, self.clock.now, self.random.random)
        return WriterAutoscaler(
            layouts,
            recorder if with_usage else None,
            settings.growth,
            self.runtime(),
            self.reported.append,
        )

    @property
    def layout(self) -> Layout:
        """The layout as it is stored."""
        return decode_layout(self.kept.layouts[SERIES])

    @property
    def counts(self) -> tuple[int, int]:
        """The counts in force: shards, index shards."""
        return self.layout.current.shards, self.layout.current.index_shards

    @property
    def kinds(self) -> list[ScalingKind]:
        """What was reported, in order."""
        return [each.kind for each in self.reported]

    def events(
        self,
        count: int,
        *,
        payload_bytes: int = 500,
        sharding_key: Callable[[int], str | None] = lambda _: None,
    ) -> list[Event]:
        """Return events of now."""
        payload = {"value": "x" * payload_bytes}
        tick = timedelta(microseconds=1)
        return [
            Event(
                series=SERIES,
                time=self.clock.time + n * tick,
                id=str(n),
                sharding_key=sharding_key(n),
                payload=payload,
            )
            for n in range(count)
        ]

    def offer(self, store: EventStore, seconds: int, count: int, **event: Any) -> int:
        """Write so many events at the start of each of some seconds, and return how many were accepted."""
        accepted = 0
        for _ in range(seconds):
            begun = self.clock.seconds
            accepted += store.write(self.events(count, **event), timeout=10).accepted
            self.clock.seconds = max(self.clock.seconds, begun + 1)
        return accepted


def throttled(
    *reasons: ThrottlingReason,
    shard: int = 0,
    index_shard: int = 0,
    units: int = 1,
    sharding_key: str | None = None,
) -> ThrottledWrite:
    """Return a write that throttled for these reasons."""
    item = {
        keys.PARTITION_KEY: {"S": keys.partition_key(SERIES, shard)},
        keys.INDEX_PARTITION_KEY: {"S": keys.index_key(SERIES, "2026-06-01T12", index_shard)},
    }
    return ThrottledWrite(
        item, units, sharding_key, ThrottledError("ThrottlingException", "", reasons)
    )


def pressure_on(
    *writes: ThrottledWrite, epoch_id: int | None = None, new_units: int = 1_000
) -> ThrottleSummary:
    """Return a pressure of writes, by default of one that a key range of the table throttled.

    By default so many events throttled for the first time that the series is lower_bound hot.
    """
    pressure = ThrottleSummary.of(writes or (throttled(TABLE_KEY_RANGE),))
    return replace(pressure, epoch_id=epoch_id, new_units=new_units)
