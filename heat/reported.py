"""The engine's own ConsumedCapacity as the second best source of what a request consumed."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from heat.charges import Arm, Charge, Work
from heat.tables import Table

__all__ = ["TOTAL", "read_as_reported", "reported_units", "written_as_reported"]

TOTAL: Final = "*"  # an arm's name where only the sum over all arms is reported

Works = Sequence[Work]
Arms = dict[str | None, float]


def reported_units(answer: Mapping[str, Any]) -> dict[str, Arms]:
    """Return what an engine's answer reports: by table, by index (None: the table itself, or `TOTAL`)."""
    reports = answer.get("ConsumedCapacity") or []
    if isinstance(reports, Mapping):
        reports = [reports]
    return {report["TableName"]: _arms(report) for report in reports}


def read_as_reported(works: Works, answer: Mapping[str, Any]) -> list[Work]:
    """Return read charges scaled so that each arm sums to what is reported; as they are without a report."""
    scale = _scale(works, reported_units(answer))
    return [
        tuple(
            (arm, part, units * scale.get(arm, 1.0), key, sort, tokens * scale.get(arm, 1.0))
            for arm, part, units, key, sort, tokens in work
        )
        for work in works
    ]


def written_as_reported(
    works: Works, answer: Mapping[str, Any], tables: Mapping[str, Table]
) -> list[Work]:
    """Return write charges scaled likewise, the table's own never down: the image they come from is there.

    An index that is reported without a charge (an entry that nobody saw was moved or removed) is charged
    where the table's key would lie in it: the sum is right, the place is anyone's guess.
    """
    reported = reported_units(answer)
    scale = _scale(works, reported)
    scaled: list[Work] = [
        tuple(_scaled_write(charge, scale.get(charge[0], 1.0)) for charge in work) for work in works
    ]
    charged = {(arm.resource.table, arm.name) for work in works for arm, *_ in work}
    for at, work in enumerate(scaled):
        name = work[0][0].resource.table
        unseen = [
            (index, units)
            for index, units in reported.pop(name, {}).items()
            if index not in (None, TOTAL) and (name, index) not in charged and units
        ]
        scaled[at] = (*work, *_unseen(work[0], tables[name], unseen))
    return scaled


def _scaled_write(charge: Charge, scale: float) -> Charge:
    arm, partition, units, key, sort, growth = charge
    if arm.name is None:
        scale = max(scale, 1.0)
    return (arm, partition, units * scale, key, sort, growth)


def _unseen(
    beside: Charge, table: Table, arms: Iterable[tuple[str | None, float]]
) -> Iterable[Charge]:
    _, home, _, key, sort, _ = beside
    for name, units in arms:
        index = table.indexes[str(name)]
        partition = home if index.local else index.resource.partitions.find(key, sort)
        yield (index.arm, partition, units, key, sort, 0.0)


def _scale(works: Works, reported: Mapping[str, Arms]) -> dict[Arm, float]:
    charged: dict[Arm, float] = {}
    totals: dict[str, float] = {}
    for work in works:
        for arm, _, units, *_ in work:
            charged[arm] = charged.get(arm, 0.0) + units
            totals[arm.resource.table] = totals.get(arm.resource.table, 0.0) + units
    scale: dict[Arm, float] = {}
    for arm, units in charged.items():
        arms = reported.get(arm.resource.table)
        if arms and TOTAL in arms:
            scale[arm] = arms[TOTAL] / totals[arm.resource.table]
        elif arms and units:
            scale[arm] = arms.get(arm.name, 0.0) / units
    return scale


def _arms(report: Mapping[str, Any]) -> Arms:
    if "Table" not in report:
        return {TOTAL: report.get("CapacityUnits", 0.0)}
    arms: Arms = {None: report["Table"]["CapacityUnits"]}
    for group in ("GlobalSecondaryIndexes", "LocalSecondaryIndexes"):
        for name, part in (report.get(group) or {}).items():
            arms[name] = part["CapacityUnits"]
    return arms
