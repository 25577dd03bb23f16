"""The engine's own ConsumedCapacity as the second best source of what a request consumed."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from dynamoheat.charges import Charge, IndexTarget, Work
from dynamoheat.tables import Table

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
    scale = _scale(_charged(works), reported_units(answer))
    return [
        [
            (arm, part, units * scale.get(arm, 1.0), key, sort, tokens * scale.get(arm, 1.0))
            for arm, part, units, key, sort, tokens in work
        ]
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
    charged = _charged(works) if reported else {}
    scale = _scale(charged, reported)
    unseen = _unseen(charged, reported)
    if not unseen and all(factor == 1.0 for factor in scale.values()):
        return list(works)  # the rule, and cheap
    scaled: list[Work] = []
    for work in works:
        first = work[0]
        name = first[0].resource.table
        missed = unseen.pop(name, {})
        scaled.append(
            [
                *(_scaled_write(charge, scale.get(charge[0], 1.0)) for charge in work),
                *_guessed(first, tables[name], missed),
            ]
        )
    return scaled


def _scaled_write(charge: Charge, scale: float) -> Charge:
    arm, partition, units, key, sort, growth = charge
    if arm.name is None:
        scale = max(scale, 1.0)
    return (arm, partition, units * scale, key, sort, growth)


def _unseen(charged: Mapping[IndexTarget, float], reported: Mapping[str, Arms]) -> dict[str, Arms]:
    """Return by table the indexes that are reported without a charge."""
    known = {(arm.resource.table, arm.name) for arm in charged}
    missed: dict[str, Arms] = {
        table: {
            name: units
            for name, units in arms.items()
            if units and name not in (None, TOTAL) and (table, name) not in known
        }
        for table, arms in reported.items()
    }
    return {table: arms for table, arms in missed.items() if arms}


def _guessed(beside: Charge, table: Table, arms: Arms) -> Iterable[Charge]:
    _, home, _, key, sort, _ = beside
    for name, units in arms.items():
        index = table.indexes[str(name)]
        partition = home if index.local else index.resource.partitions.find(key, sort)
        yield (index.arm, partition, units, key, sort, 0.0)


def _charged(works: Works) -> dict[IndexTarget, float]:
    charged: dict[IndexTarget, float] = {}
    for work in works:
        for arm, _, units, *_ in work:
            charged[arm] = charged.get(arm, 0.0) + units
    return charged


def _scale(
    charged: Mapping[IndexTarget, float], reported: Mapping[str, Arms]
) -> dict[IndexTarget, float]:
    scale: dict[IndexTarget, float] = {}
    for arm, units in charged.items():
        arms = reported.get(arm.resource.table)
        if not arms or not units:
            continue
        if TOTAL in arms:
            table = arm.resource.table
            total = sum(u for other, u in charged.items() if other.resource.table == table)
            scale[arm] = arms[TOTAL] / total
        else:
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
