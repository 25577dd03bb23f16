"""DynamoDB's data-plane requests turned into charges, item by item in the order of the request.

What a request doesn't tell is guessed low and made good by `dynamoheat.settlement` once the engine answered:
reads reserve what the remembered item (else the least item) costs, updates and deletes likewise.
PartiQL is not modelled.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from dynamoheat.charges import SCAN, Charge, Work
from dynamoheat.errors import UnknownTableError
from dynamoheat.items import Item, item_bytes
from dynamoheat.queries import query_start, scan_start
from dynamoheat.tables import Index, Table
from dynamoheat.units import EVENTUAL, STRONG, TRANSACTIONAL, read_units

__all__ = ["OPERATIONS", "RequestCost", "Tables", "ask", "find_index", "find_table"]

Tables = Mapping[str, Table]
Request = Mapping[str, Any]


@dataclass(slots=True)
class RequestCost:
    """A request's items as charges."""

    works: list[Work]
    tables: list[Table]  # that are touched, each once
    write: bool
    together: bool = False  # all or nothing


def ask(operation: str, request: Request, tables: Tables) -> RequestCost:
    """Return what a request would consume, as far as it is known beforehand. KeyError: not metered."""
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


def _batch_write(request: Request, tables: Tables) -> RequestCost:
    works: list[Work] = []
    touched = []
    for name, entries in request["RequestItems"].items():
        table = find_table(name, tables)
        touched.append(table)
        works.extend(_batched(table, entries))
    return RequestCost(works, touched, write=True)


def _batched(table: Table, entries: Sequence[Request]) -> Iterable[Work]:
    deletes = [at for at, entry in enumerate(entries) if "PutRequest" not in entry]
    puts = table.puts([entry["PutRequest"]["Item"] for entry in entries if "PutRequest" in entry])
    for at in deletes:  # ascending, so that each lands where it stood
        puts.insert(at, _delete(table, entries[at]["DeleteRequest"]["Key"]))
    return puts


def _put_item(request: Request, tables: Tables) -> RequestCost:
    table = find_table(request["TableName"], tables)
    return RequestCost([table.put(request["Item"])], [table], write=True)


def _update_item(request: Request, tables: Tables) -> RequestCost:
    table = find_table(request["TableName"], tables)
    return RequestCost([_update(table, request["Key"])], [table], write=True)


def _delete_item(request: Request, tables: Tables) -> RequestCost:
    table = find_table(request["TableName"], tables)
    return RequestCost([_delete(table, request["Key"])], [table], write=True)


def _transact_write(request: Request, tables: Tables) -> RequestCost:
    works: list[Work] = []
    touched: dict[str, Table] = {}
    for entry in request["TransactItems"]:
        ((kind, wanted),) = entry.items()
        table = find_table(wanted["TableName"], tables)
        touched[table.name] = table
        works.append(_TRANSACTED[kind](table, wanted))
    return RequestCost(works, list(touched.values()), write=True, together=True)


def _get_item(request: Request, tables: Tables) -> RequestCost:
    table = find_table(request["TableName"], tables)
    return RequestCost([_get(table, request["Key"], _consistency(request))], [table], write=False)


def _batch_get(request: Request, tables: Tables) -> RequestCost:
    works: list[Work] = []
    touched = []
    for name, wanted in request["RequestItems"].items():
        table = find_table(name, tables)
        touched.append(table)
        consistency = _consistency(wanted)
        works.extend(_get(table, key, consistency) for key in wanted["Keys"])
    return RequestCost(works, touched, write=False)


def _transact_get(request: Request, tables: Tables) -> RequestCost:
    works: list[Work] = []
    touched: dict[str, Table] = {}
    for entry in request["TransactItems"]:
        wanted = entry["Get"]
        table = find_table(wanted["TableName"], tables)
        touched[table.name] = table
        works.append(_get(table, wanted["Key"], TRANSACTIONAL))
    return RequestCost(works, list(touched.values()), write=False, together=True)


def _query(request: Request, tables: Tables) -> RequestCost:
    table = find_table(request["TableName"], tables)
    index = find_index(request, table)
    where = query_start(request, table, index)
    return RequestCost([table.read(where, 0, _consistency(request), index)], [table], write=False)


def _scan(request: Request, tables: Tables) -> RequestCost:
    table = find_table(request["TableName"], tables)
    index = find_index(request, table)
    start = scan_start(request, table, index)
    arm = table.arm if index is None else index.arm
    units = read_units(0, _consistency(request))
    tokens = table.read_tokens(units, _consistency(request))
    charge: Charge = (arm, arm.resource.partitions.at((start,)), units, SCAN, start, tokens)
    return RequestCost([(charge,)], [table], write=False)


def _get(table: Table, key: Item, consistency: float) -> Work:
    where = table.identity(key)
    known = table.remembered.get(where)
    return table.read(where, item_bytes(known) if known else 0, consistency)


def _delete(table: Table, key: Item, factor: float = 1.0) -> Work:
    known = table.remembered.get(table.identity(key))
    return table.write(known, None, factor) if known else table.touch(key, factor=factor)


def _update(table: Table, key: Item, factor: float = 1.0) -> Work:
    known = table.remembered.get(table.identity(key))
    return table.touch(key, item_bytes(known) if known else 0, factor)


def _consistency(request: Request) -> float:
    return STRONG if request.get("ConsistentRead") else EVENTUAL


_TRANSACTED: Final[dict[str, Callable[[Table, Request], Work]]] = {
    "Put": lambda table, wanted: table.put(wanted["Item"], TRANSACTIONAL),
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
