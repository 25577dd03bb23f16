"""What the scaler works on, in one process: tables in memory, a table's description, CloudWatch as a test wants it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any, Final

from spillway import Settings, keys
from spillway.control.capacity import CapacityBounds
from spillway.control.monitoring import AlarmState, ThrottledKey
from spillway.control.scaler import Scaler, ScalerOptions, TableNames, open_scaler
from spillway.dynamodb.port import RefusedError
from spillway.layouts.codec import STOP, decode_layout, encode_layout, encode_stop
from spillway.layouts.model import Layout
from spillway.layouts.transitions import begin_epoch, close_retired, first_layout
from spillway.scaling.updates import ScalingEvent, ScalingKind
from spillway.scaling.usage import WINDOW, UsageSample, add_request, window_of
from spillway.settings import Growth
from tests.support.fakes import FakeClock, fake_runtime
from tests.support.memory_table import EVENTS, LAYOUTS, USAGE, MemoryTable, memory_table, targets_of

__all__ = ["PREFIX", "RULE", "TABLES", "Watched", "World", "alarm"]

TABLES: Final = TableNames(events=EVENTS, layouts=LAYOUTS, usage=USAGE)
PREFIX: Final = "Spillway-test-"
RULE: Final = f"DynamoDBContributorInsights-PKT-{EVENTS}-1780000000000"
DAY: Final = 86_400


@dataclass
class Watched:
    """CloudWatch: what throttled, which alarms are on. Times as the world's clock."""

    keys: list[ThrottledKey] = field(default_factory=list)
    index: dict[float, float] = field(default_factory=dict)
    alarms: list[AlarmState] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)

    def in_alarm(self) -> Sequence[AlarmState]:
        self.asked.append("DescribeAlarms")
        return [each for each in self.alarms if each.fires]

    def throttled_keys(self, rule: str, since: float, until: float) -> Sequence[ThrottledKey]:
        self.asked.append("GetInsightRuleReport")
        if rule != RULE:
            raise RefusedError("ResourceNotFoundException", rule)
        return [each for each in self.keys if since - 60 < each.at <= until]

    def index_throttles(self, since: float, until: float) -> Mapping[float, float]:
        self.asked.append("GetMetricData")
        return {at: times for at, times in self.index.items() if since - 60 < at <= until}


class World:
    """The port, its clock, and what the scaler reports. `before` runs ahead of each call: it may raise, or let time pass."""

    def __init__(self, **options: Any) -> None:
        self.clock = FakeClock()
        self.tables: MemoryTable = memory_table()
        self.watched = Watched()
        self.reported: list[ScalingEvent] = []
        self.calls: set[tuple[str, str]] = set()
        self.rules = [RULE, RULE.replace("PKT", "SKT")]
        self.table: dict[str, Any] = {
            "TableStatus": "ACTIVE",
            "WarmThroughput": _warm(4_000),
            "GlobalSecondaryIndexes": [
                {
                    "IndexName": keys.INDEX_NAME,
                    "IndexStatus": "ACTIVE",
                    "WarmThroughput": _warm(4_000),
                }
            ],
        }
        self.updates: list[dict[str, Any]] = []
        self.refusal: str | None = None  # of UpdateTable
        self.growth = Growth(cooldown_seconds=60.0)
        self.settings = Settings()
        self.options = options
        self.before: Callable[[str, Mapping[str, Any]], None] = lambda *_: None

    def __call__(self, operation: str, request: Mapping[str, Any], /) -> dict[str, Any]:
        for target in targets_of(request):
            self.calls.add((operation, target))
        self.before(operation, request)
        own = {
            "DescribeContributorInsights": self._insights,
            "DescribeTable": lambda _: {"Table": self.table},
            "UpdateTable": self._update,
            "Query": self._query,
        }.get(operation)
        return self.tables(operation, request) if own is None else own(request)

    def scaler(self, **options: Any) -> Scaler:
        """Return another process's scaler."""
        chosen = {**self.options, **options}
        bounds = CapacityBounds(
            warm=chosen.pop("warm", 0), provisioned=chosen.pop("provisioned", 0)
        )
        return open_scaler(
            self,
            self.watched,
            TABLES,
            settings=replace(self.settings, growth=self.growth),
            options=ScalerOptions(bounds=bounds, **{"shrink_window": None, **chosen}),
            observe=self.reported.append,
            runtime=fake_runtime(self.clock),
        )

    def shrinking(self, **options: Any) -> Scaler:
        """Return a scaler that shrinks layouts."""
        return self.scaler(shrink_window=timedelta(hours=36), **options)

    @property
    def now(self) -> float:
        return self.clock.seconds

    @property
    def kinds(self) -> list[ScalingKind]:
        return [each.kind for each in self.reported]

    def has(self, series: str, *counts: tuple[int, int], age: float = 3_600.0) -> None:
        """Give a series a layout that had these counts in turn and last changed some seconds ago."""
        settings = Settings(shards=counts[0][0], index_shards=counts[0][1])
        layout = first_layout(series, settings, self.now - age)
        for shards, index_shards in counts[1:]:
            layout = begin_epoch(
                layout, settings, self.now - age, shards=shards, index_shards=index_shards
            )
            layout = replace(close_retired(layout, self.now - age), version=layout.version + 1)
        self.put(replace(layout, last_updated=self.now - age))

    def put(self, layout: Layout) -> None:
        item = encode_layout(layout)
        if layout.stop is not None:
            item[STOP] = encode_stop(layout.stop)
        self.tables.items[LAYOUTS][self.tables.key_of(LAYOUTS, item)] = item

    def layout(self, series: str) -> Layout:
        """Return the layout as it is stored."""
        return decode_layout(self.tables.items[LAYOUTS][(series,)])

    def counts(self, series: str) -> tuple[int, int]:
        current = self.layout(series).current
        return current.shards, current.index_shards

    def writes(
        self,
        series: str,
        table: float,
        index: float | None = None,
        *,
        seconds: int = 60,
        ago: float = 0,
    ) -> None:
        """Let the fleet record that it wanted so many units a second for some seconds up to a time."""
        end = self.now - ago
        at = window_of(end - seconds)
        while at < end:
            units = UsageSample(table, table if index is None else index, table)
            for second in range(WINDOW):
                if at + second < end:
                    self.tables("UpdateItem", add_request(USAGE, series, at + second, units))
            at += WINDOW

    def throttles(self, series: str, *shards: int, times: float = 100, ago: float = 60) -> None:
        """Let shards of the table throttle in the minute that began so many seconds ago."""
        at = self.now - ago
        self.watched.keys += [
            ThrottledKey(keys.partition_key(series, shard), at, times) for shard in shards
        ]

    def index_throttles(self, times: float = 100, ago: float = 60) -> None:
        self.watched.index[self.now - ago] = times

    def _insights(self, _: Mapping[str, Any]) -> dict[str, Any]:
        return {"ContributorInsightsRuleList": self.rules}

    def _update(self, request: Mapping[str, Any]) -> dict[str, Any]:
        if self.refusal is not None:
            raise RefusedError(self.refusal, "no")
        self.updates.append(dict(request))
        changes = [
            request,
            *(each["Update"] for each in request.get("GlobalSecondaryIndexUpdates", ())),
        ]
        for change in changes:
            part = self.table["GlobalSecondaryIndexes"][0] if "IndexName" in change else self.table
            for name in ("WarmThroughput", "ProvisionedThroughput"):
                if name in change:
                    part[name] = {**part.get(name, {}), **change[name]}
        return {}

    def _query(self, request: Mapping[str, Any]) -> dict[str, Any]:
        if "IndexName" in request:
            return self.tables("Query", request)
        values = request["ExpressionAttributeValues"]
        low, high = int(values[":low"]["N"]), int(values[":high"]["N"])
        page = [
            item
            for (series, at), item in sorted(self.tables.items[USAGE].items())
            if series == values[":p"]["S"] and low <= int(at) <= high
        ]
        return {"Items": page}


def _warm(units: int) -> dict[str, Any]:
    return {"WriteUnitsPerSecond": units, "ReadUnitsPerSecond": 12_000, "Status": "ACTIVE"}


def alarm(
    metric: str = "WriteKeyRangeThroughputThrottleEvents",
    *,
    at: float = 0.0,
    index: bool = False,
    state: str = "ALARM",
    dimensions: Mapping[str, str] | None = None,
) -> AlarmState:
    """Return an alarm on the main table or its index, unless other dimensions are named."""
    of_index = {"GlobalSecondaryIndexName": keys.INDEX_NAME} if index else {}
    return AlarmState(
        name=f"{PREFIX}{metric}-{index}",
        state=state,
        at=at,
        namespace="AWS/DynamoDB",
        metric=metric,
        dimensions=dimensions or {"TableName": EVENTS, **of_index},
    )
