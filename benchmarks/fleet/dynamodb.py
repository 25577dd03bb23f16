"""DynamoDB for the fleet: the model admits or throttles writes, which are not stored.

Layouts and usage are stored.
"""

from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from random import Random
from typing import Any, Final

from benchmarks.fleet.virtual_time import VirtualTime
from dynamoheat import Heat, IndexSettings, Key, TableSettings, ThroughputSettings
from dynamoheat.admission import Admission
from spillway import ThrottledError, keys
from spillway.dynamodb.port import ConditionFailedError, ThrottlingReason
from tests.support.atomic_table import AtomicTables

__all__ = [
    "EVENTS",
    "LAYOUTS",
    "USAGE",
    "Seconds",
    "SimulatedDynamoDB",
    "events_table",
    "layouts_table",
]

EVENTS: Final = "events"
LAYOUTS: Final = "layouts"
USAGE: Final = "usage"


def events_table(
    *,
    warm_write: float | None,
    with_index: bool = True,
    throughput: ThroughputSettings | None = None,
) -> TableSettings:
    """Return the main table, on demand, table and index warm for so many units a second."""
    given = throughput or ThroughputSettings(warm_write=warm_write)
    index = IndexSettings(
        name=keys.INDEX_NAME,
        key=Key(keys.INDEX_PARTITION_KEY, keys.SORT_KEY),
        throughput=given,
    )
    return TableSettings(
        name=EVENTS,
        key=Key(keys.PARTITION_KEY, keys.SORT_KEY),
        indexes=(index,) if with_index else (),
        throughput=given,
    )


def layouts_table() -> TableSettings:
    """Return the layout table with its sparse index.

    All entries of the index share one partition key. It projects keys only, so a change of a layout
    costs the index nothing, unless the layout enters or leaves it.
    """
    index = IndexSettings(
        name=keys.LAYOUT_INDEX_NAME,
        key=Key(keys.LAYOUT_INDEX_KEY, keys.LAYOUT_KEY),
        projected=frozenset(),
    )
    return TableSettings(name=LAYOUTS, key=Key(keys.LAYOUT_KEY), indexes=(index,))


@dataclass
class Seconds:
    """Distinct events by the second of their first attempt, and how many that stored."""

    offered: Counter[int] = field(default_factory=Counter)
    at_once: Counter[int] = field(default_factory=Counter)


class SimulatedDynamoDB:
    """The port in virtual time; a call takes `latency` seconds, half of them before it acts."""

    def __init__(
        self, time: VirtualTime, settings: TableSettings, random: Random, latency: float = 0.006
    ) -> None:
        self._time = time
        self._random = random
        self._latency = latency
        self._seen: set[str] = set()
        self.heat = Heat(seed=random.randrange(1 << 30))
        self.heat.create_table(settings, time.now)
        usage = TableSettings(name=USAGE, key=Key(keys.USAGE_KEY, keys.USAGE_SORT_KEY))
        for small in (layouts_table(), usage):
            self.heat.create_table(small, time.now)
        self.kept = AtomicTables()
        self.seconds: defaultdict[str, Seconds] = defaultdict(Seconds)  # by series
        self.calls: Counter[str] = Counter()
        self.refused_updates = 0

    def __call__(self, operation: str, request: Mapping[str, Any], /) -> dict[str, Any]:
        """Carry out an operation as the port does."""
        self._time.sleep(self._half())
        table = request.get("TableName", EVENTS)
        self.calls[f"{operation} {table}"] += 1
        if table != EVENTS and operation == "UpdateItem":  # so that it can be settled
            request = {**request, "ReturnValues": "ALL_NEW"}
        admission = self.heat.admit(operation, request, self._time.now)
        answer = self._carry_out(operation, request, table, admission)
        self._time.sleep(self._half())
        if admission.is_rejected:
            raise ThrottledError("ThrottlingException", "", _reasons(admission))
        if isinstance(answer, Exception):
            raise answer
        return answer

    def _half(self) -> float:
        return self._latency * (0.25 + self._random.expovariate(4))

    def _carry_out(
        self, operation: str, request: Mapping[str, Any], table: str, admission: Admission
    ) -> dict[str, Any] | ConditionFailedError:
        if table == EVENTS:
            self._note(operation, request, admission)
            left = admission.unprocessed
            return {"UnprocessedItems": left} if left and not admission.is_rejected else {}
        if admission.is_rejected:
            return {}
        try:
            answer = self.kept(operation, request)
        except ConditionFailedError as error:
            # Races of creation are no changes of a layout.
            self.refused_updates += ":known" in request["ExpressionAttributeValues"]
            self.heat.fail(admission, {}, self._time.now)
            return error
        if table == LAYOUTS and operation == "UpdateItem":
            answer = {"Attributes": self.kept.layouts[request["Key"][keys.LAYOUT_KEY]["S"]]}
        self.heat.settle(admission, answer, self._time.now)
        return answer

    def _note(self, operation: str, request: Mapping[str, Any], admission: Admission) -> None:
        if operation == "PutItem":
            items = [request["Item"]]
        else:
            items = [each["PutRequest"]["Item"] for each in request["RequestItems"][EVENTS]]
        second = int(self._time.now)
        for item, verdict in zip(items, admission.verdicts, strict=True):
            name = item[keys.SORT_KEY]["S"]
            if name in self._seen:
                continue
            self._seen.add(name)
            series, _ = keys.parse_partition_key(item[keys.PARTITION_KEY]["S"])
            seconds = self.seconds[series]
            seconds.offered[second] += 1
            seconds.at_once[second] += verdict is None


def _reasons(admission: Admission) -> tuple[ThrottlingReason, ...]:
    return tuple(
        {ThrottlingReason(str(each.reason), each.resource) for each in admission.throttles}
    )
