"""Requests of the data plane as charges, item by item in the order of the request.

What a request does not tell is estimated low, and corrected by `dynamoheat.settlement` after the
engine answered: reads, updates and deletes reserve what the cached image costs, or the smallest
item. A Query or a Scan is charged to the partition where its page starts, even if the page (at most
1 MB, 256 units) continues in the next. PartiQL is not modelled.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from dynamoheat.consumption import SCAN, Charge, ItemCharges
from dynamoheat.errors import UnknownTableError
from dynamoheat.partitions import HASHES, LAST, position
from dynamoheat.reasons import Throttle
from dynamoheat.sizes import (
    EVENTUAL,
    STRONG,
    TRANSACTIONAL,
    Item,
    item_bytes,
    key_text,
    read_units,
    sortable_value,
)
from dynamoheat.tables import Index, Table

__all__ = [
    "OPERATIONS",
    "RequestCost",
    "Tables",
    "estimate_cost",
    "find_index",
    "find_table",
    "query_start",
    "read_consistency",
    "scan_start",
    "split_batch",
]

_NAME: Final = r"(#?[\w.]+)"
_COMPARISON: Final = re.compile(_NAME + r"\s*(<=|>=|=|<|>)\s*(:\w+)")
_BETWEEN: Final = re.compile(_NAME + r"\s+BETWEEN\s+(:\w+)\s+AND\s+(:\w+)", re.IGNORECASE)
_BEGINS: Final = re.compile(r"begins_with\s*\(\s*" + _NAME + r"\s*,\s*(:\w+)\s*\)", re.IGNORECASE)
_LEGACY: Final = {"EQ": "=", "LE": "<=", "LT": "<", "GE": ">=", "GT": ">", "BEGINS_WITH": "begins"}

Tables = Mapping[str, Table]
Request = Mapping[str, Any]
Items = dict[str, Any]  # as in RequestItems
Value = Mapping[str, Any]
Condition = tuple[str, str, list[Value]]  # attribute, operator, values


@dataclass(slots=True)
class RequestCost:
    """The charges of a request, and the tables it touches."""

    item_charges: list[ItemCharges]
    tables: list[Table]  # that are touched, each once
    is_write: bool
    atomic: bool = False  # all or nothing


def estimate_cost(operation: str, request: Request, tables: Tables) -> RequestCost:
    """Return what a request would consume, as far as it is known beforehand.

    KeyError if the operation consumes no capacity units.
    """
    return OPERATIONS[operation](request, tables)


def find_table(name: str, tables: Tables) -> Table:
    """Return a table by name or ARN."""
    table = tables.get(name)
    if table is None:
        table = tables.get(name.partition(":table/")[2])
    if table is None:
        raise UnknownTableError(name)
    return table


def find_index(request: Request, table: Table) -> Index | None:
    """Return the index that a query or scan names."""
    name = request.get("IndexName")
    if name is None:
        return None
    if name not in table.indexes:
        raise UnknownTableError(f"{table.name}/index/{name}")
    return table.indexes[name]


def split_batch(
    request: Request, verdicts: Sequence[Throttle | None]
) -> tuple[dict[str, Any], Items]:
    """Divide a BatchWriteItem or BatchGetItem into the request to forward and the throttled items.

    The items are shaped as UnprocessedItems or UnprocessedKeys. `verdicts` are one an item, in
    order.
    """
    admitted: Items = {}
    refused: Items = {}
    each = iter(verdicts)
    for name, wanted in request["RequestItems"].items():
        passing, others = _divide_entries(_entries(wanted), each)
        if passing:
            admitted[name] = _with_entries(wanted, passing)
        if others:
            refused[name] = _with_entries(wanted, others)
    return {**request, "RequestItems": admitted}, refused


def query_start(request: Mapping[str, Any], table: Table, index: Index | None) -> tuple[str, Any]:
    """Return the key at which a query's page starts: partition key's text, comparable sort key.

    KeyError if the request gives no value for the partition key.
    """
    names = table if index is None else index
    start = request.get("ExclusiveStartKey")
    if start:
        return _start_key(start, names)
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
    """Return the hash at which a scan's page starts: its start key's, or its segment's first."""
    start = request.get("ExclusiveStartKey")
    if start:
        hashed: int = position(_start_key(start, table if index is None else index)[0])[0]
        return hashed
    return HASHES * int(request.get("Segment") or 0) // int(request.get("TotalSegments") or 1)


def _batch_write(request: Request, tables: Tables) -> RequestCost:
    item_charges: list[ItemCharges] = []
    touched = []
    for name, entries in request["RequestItems"].items():
        table = find_table(name, tables)
        touched.append(table)
        item_charges.extend(_batch_charges(table, entries))
    return RequestCost(item_charges, touched, is_write=True)


def _batch_charges(table: Table, entries: Sequence[Request]) -> Iterable[ItemCharges]:
    deletes = [at for at, entry in enumerate(entries) if "PutRequest" not in entry]
    puts = table.charge_puts(
        [entry["PutRequest"]["Item"] for entry in entries if "PutRequest" in entry]
    )
    for at in deletes:  # ascending, so that each lands where it stood
        puts.insert(at, _delete(table, entries[at]["DeleteRequest"]["Key"]))
    return puts


def _put_item(request: Request, tables: Tables) -> RequestCost:
    table = find_table(request["TableName"], tables)
    return RequestCost([table.charge_put(request["Item"])], [table], is_write=True)


def _update_item(request: Request, tables: Tables) -> RequestCost:
    table = find_table(request["TableName"], tables)
    return RequestCost([_update(table, request["Key"])], [table], is_write=True)


def _delete_item(request: Request, tables: Tables) -> RequestCost:
    table = find_table(request["TableName"], tables)
    return RequestCost([_delete(table, request["Key"])], [table], is_write=True)


def _transact_write(request: Request, tables: Tables) -> RequestCost:
    item_charges: list[ItemCharges] = []
    touched: dict[str, Table] = {}
    for entry in request["TransactItems"]:
        ((kind, wanted),) = entry.items()
        table = find_table(wanted["TableName"], tables)
        touched[table.name] = table
        item_charges.append(_TRANSACTED[kind](table, wanted))
    return RequestCost(item_charges, list(touched.values()), is_write=True, atomic=True)


def _get_item(request: Request, tables: Tables) -> RequestCost:
    table = find_table(request["TableName"], tables)
    return RequestCost(
        [_get(table, request["Key"], read_consistency(request))], [table], is_write=False
    )


def _batch_get(request: Request, tables: Tables) -> RequestCost:
    item_charges: list[ItemCharges] = []
    touched = []
    for name, wanted in request["RequestItems"].items():
        table = find_table(name, tables)
        touched.append(table)
        consistency = read_consistency(wanted)
        item_charges.extend(_get(table, key, consistency) for key in wanted["Keys"])
    return RequestCost(item_charges, touched, is_write=False)


def _transact_get(request: Request, tables: Tables) -> RequestCost:
    item_charges: list[ItemCharges] = []
    touched: dict[str, Table] = {}
    for entry in request["TransactItems"]:
        wanted = entry["Get"]
        table = find_table(wanted["TableName"], tables)
        touched[table.name] = table
        item_charges.append(_get(table, wanted["Key"], TRANSACTIONAL))
    return RequestCost(item_charges, list(touched.values()), is_write=False, atomic=True)


def _query(request: Request, tables: Tables) -> RequestCost:
    table = find_table(request["TableName"], tables)
    index = find_index(request, table)
    where = query_start(request, table, index)
    return RequestCost(
        [table.charge_read(where, 0, read_consistency(request), index)], [table], is_write=False
    )


def _scan(request: Request, tables: Tables) -> RequestCost:
    table = find_table(request["TableName"], tables)
    index = find_index(request, table)
    start = scan_start(request, table, index)
    target = table.target if index is None else index.target
    units = read_units(0, read_consistency(request))
    tokens = table.tokens_for_read(units, read_consistency(request))
    charge: Charge = (target, target.resource.partitions.at((start,)), units, SCAN, start, tokens)
    return RequestCost([(charge,)], [table], is_write=False)


def _get(table: Table, key: Item, consistency: float) -> ItemCharges:
    where = table.identity(key)
    known = table.image_cache.get(where)
    return table.charge_read(where, item_bytes(known) if known else 0, consistency)


def _delete(table: Table, key: Item, factor: float = 1.0) -> ItemCharges:
    known = table.image_cache.get(table.identity(key))
    return (
        table.charge_write(known, None, factor)
        if known
        else table.charge_unchanged(key, factor=factor)
    )


def _update(table: Table, key: Item, factor: float = 1.0) -> ItemCharges:
    known = table.image_cache.get(table.identity(key))
    return table.charge_unchanged(key, item_bytes(known) if known else 0, factor)


def read_consistency(request: Request) -> float:
    """Return the consistency that a read asks for."""
    return STRONG if request.get("ConsistentRead") else EVENTUAL


def _divide_entries(
    entries: Sequence[Any], verdicts: Iterator[Throttle | None]
) -> tuple[list[Any], list[Any]]:
    passing: list[Any] = []
    others: list[Any] = []
    for entry in entries:
        (passing if next(verdicts) is None else others).append(entry)
    return passing, others


def _entries(wanted: Any) -> Sequence[Any]:
    entries: Sequence[Any] = wanted["Keys"] if isinstance(wanted, Mapping) else wanted
    return entries


def _with_entries(wanted: Any, entries: list[Any]) -> Any:
    return {**wanted, "Keys": entries} if isinstance(wanted, Mapping) else entries


def _start_key(start: Mapping[str, Value], names: Table | Index) -> tuple[str, Any]:
    sort = None if names.sort_name is None else sortable_value(start[names.sort_name])
    return key_text(start[names.partition_name]), sort


def _bound(operator: str, values: list[Value], otherwise: Any, *, forward: bool) -> Any:
    if operator in ("=", "begins"):
        return sortable_value(values[0])
    if operator == "between":
        return sortable_value(values[0 if forward else 1])
    lower = operator in (">", ">=")
    return sortable_value(values[0]) if lower == forward else otherwise


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


_TRANSACTED: Final[dict[str, Callable[[Table, Request], ItemCharges]]] = {
    "Put": lambda table, wanted: table.charge_put(wanted["Item"], TRANSACTIONAL),
    "Update": lambda table, wanted: _update(table, wanted["Key"], TRANSACTIONAL),
    "Delete": lambda table, wanted: _delete(table, wanted["Key"], TRANSACTIONAL),
    "ConditionCheck": lambda table, wanted: _update(table, wanted["Key"], TRANSACTIONAL),
}
OPERATIONS: Final[dict[str, Callable[[Request, Tables], RequestCost]]] = {
    "BatchGetItem": _batch_get,
    "BatchWriteItem": _batch_write,
    "DeleteItem": _delete_item,
    "GetItem": _get_item,
    "PutItem": _put_item,
    "Query": _query,
    "Scan": _scan,
    "TransactGetItems": _transact_get,
    "TransactWriteItems": _transact_write,
    "UpdateItem": _update_item,
}
