"""ConsumedCapacity as DynamoDB shapes it, from charges."""

from collections.abc import Iterable, Mapping
from typing import Any

from dynamoheat.charges import IndexTarget, Work

__all__ = ["consumed_capacity"]


def consumed_capacity(
    works: Iterable[Work], form: str, *, write: bool, transactional: bool = False
) -> list[dict[str, Any]]:
    """Return one ConsumedCapacity a table, in the order of first use.

    `form` is ReturnConsumedCapacity's TOTAL or INDEXES (the single-table operations answer the only
    element). Transactions also name the units' kind. Indexes that consumed nothing are left out.
    """
    kind = ("WriteCapacityUnits" if write else "ReadCapacityUnits") if transactional else None
    return [
        _shape(table, arms, kind, detailed=form == "INDEXES")
        for table, arms in _by_table(works).items()
    ]


def _by_table(works: Iterable[Work]) -> dict[str, dict[IndexTarget, float]]:
    tables: dict[str, dict[IndexTarget, float]] = {}
    for work in works:
        for arm, _, units, *_ in work:
            arms = tables.setdefault(arm.resource.table, {})
            arms[arm] = arms.get(arm, 0.0) + units
    return tables


def _shape(
    table: str, arms: Mapping[IndexTarget, float], kind: str | None, *, detailed: bool
) -> dict[str, Any]:
    shape: dict[str, Any] = {"TableName": table, **_units(sum(arms.values()), kind)}
    if not detailed:
        return shape
    own = sum(units for arm, units in arms.items() if arm.name is None)
    shape["Table"] = _units(own, kind)
    for group, local in (("GlobalSecondaryIndexes", False), ("LocalSecondaryIndexes", True)):
        indexes = {
            arm.name: _units(units, kind)
            for arm, units in arms.items()
            if arm.name is not None and arm.local is local
        }
        if indexes:
            shape[group] = indexes
    return shape


def _units(units: float, kind: str | None) -> dict[str, float]:
    return {"CapacityUnits": units} if kind is None else {"CapacityUnits": units, kind: units}
