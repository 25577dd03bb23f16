"""Where a Query or a Scan starts reading: the partition that serves its page.

A page that runs over into the next partition is still charged to the first (at most 1 MB, 256 units).
"""

import re
from collections.abc import Mapping
from typing import Any, Final

from dynamoheat.items import comparable, key_text
from dynamoheat.partitions import HASHES, LAST, position
from dynamoheat.tables import Index, Table

__all__ = ["query_start", "scan_start"]

_NAME: Final = r"(#?[\w.]+)"
_COMPARISON: Final = re.compile(_NAME + r"\s*(<=|>=|=|<|>)\s*(:\w+)")
_BETWEEN: Final = re.compile(_NAME + r"\s+BETWEEN\s+(:\w+)\s+AND\s+(:\w+)", re.IGNORECASE)
_BEGINS: Final = re.compile(r"begins_with\s*\(\s*" + _NAME + r"\s*,\s*(:\w+)\s*\)", re.IGNORECASE)
_LEGACY: Final = {"EQ": "=", "LE": "<=", "LT": "<", "GE": ">=", "GT": ">", "BEGINS_WITH": "begins"}

Value = Mapping[str, Any]
Condition = tuple[str, str, list[Value]]  # attribute, operator, values


def query_start(request: Mapping[str, Any], table: Table, index: Index | None) -> tuple[str, Any]:
    """Return the key where a query's page starts: text of the partition key, comparable sort key.

    KeyError where the request names no value for the partition key.
    """
    names = table if index is None else index
    start = request.get("ExclusiveStartKey")
    if start:
        return _key(start, names)
    forward = request.get("ScanIndexForward") is not False
    key: str | None = None
    sort = None if forward else LAST
    for name, operator, values in _conditions(request):
        if name == names.partition_name and operator == "=":
            key = key_text(values[0])
        elif name == names.sort_name:
            sort = _bound(operator, values, sort, forward=forward)
    if key is None:
        raise KeyError(names.partition_name)
    return key, sort if names.sort_name else None


def scan_start(request: Mapping[str, Any], table: Table, index: Index | None) -> int:
    """Return the hash where a scan's page starts: its start key's, or its segment's first."""
    start = request.get("ExclusiveStartKey")
    if start:
        hashed: int = position(_key(start, table if index is None else index)[0])[0]
        return hashed
    return HASHES * int(request.get("Segment") or 0) // int(request.get("TotalSegments") or 1)


def _key(start: Mapping[str, Value], names: Table | Index) -> tuple[str, Any]:
    sort = None if names.sort_name is None else comparable(start[names.sort_name])
    return key_text(start[names.partition_name]), sort


def _bound(operator: str, values: list[Value], otherwise: Any, *, forward: bool) -> Any:
    if operator in ("=", "begins"):
        return comparable(values[0])
    if operator == "between":
        return comparable(values[0 if forward else 1])
    lower = operator in (">", ">=")
    return comparable(values[0]) if lower == forward else otherwise


def _conditions(request: Mapping[str, Any]) -> list[Condition]:
    legacy = request.get("KeyConditions")
    if legacy:
        return [
            (
                name,
                _LEGACY.get(condition["ComparisonOperator"], "between"),
                condition["AttributeValueList"],
            )
            for name, condition in legacy.items()
        ]
    expression = request["KeyConditionExpression"]
    names = request.get("ExpressionAttributeNames") or {}
    values = request.get("ExpressionAttributeValues") or {}
    between = _BETWEEN.findall(expression)
    found: list[tuple[str, str, tuple[str, ...]]]
    found = [(name, "between", (low, high)) for name, low, high in between]
    found += [(name, "begins", (prefix,)) for name, prefix in _BEGINS.findall(expression)]
    rest = _BETWEEN.sub("", expression)
    found += [(name, sign, (value,)) for name, sign, value in _COMPARISON.findall(rest)]
    return [
        (names.get(name, name), sign, [values[text] for text in texts])
        for name, sign, texts in found
    ]
