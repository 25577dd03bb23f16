"""What a request did consume, from the engine's answer, against what was taken when it was admitted.

Exact where the images are known: a put's new one is, an old one is remembered or comes with
`ReturnValues=ALL_OLD`, an update's new one with `ALL_NEW`; items that a read shows whole are measured.
Elsewhere `dynamoheat.reported` takes the engine's own report, arm by arm. What stays unknown keeps its guess.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from dynamoheat.charges import Work
from dynamoheat.items import Item, item_bytes
from dynamoheat.queries import query_start
from dynamoheat.reported import read_as_reported, written_as_reported
from dynamoheat.requests import Tables, find_index, find_table
from dynamoheat.tables import Index
from dynamoheat.units import EVENTUAL, STRONG, TRANSACTIONAL

__all__ = ["failed_works", "settled_works"]

Request = Mapping[str, Any]
Answer = Mapping[str, Any]
Works = Sequence[Work]


def settled_works(
    operation: str, request: Request, works: Works, answer: Answer, tables: Tables
) -> list[Work]:
    """Return the final charges of a request that the engine did, and remember the images it left.

    `works` are the charges of the items that were admitted, `request` what was sent for them.
    """
    return _SETTLE[operation](request, works, answer, tables)


def failed_works(
    operation: str, request: Request, works: Works, error: Answer, tables: Tables
) -> list[Work]:
    """Return the final charges of a write whose condition failed (or a cancelled transaction).

    The table's units stay, at the larger of the item there (where the error carries it) and the item
    wanted; indexes were not written.
    """
    if operation == "TransactWriteItems":
        return [_table_arm(work) for work in works]
    table = find_table(request["TableName"], tables)
    there = error.get("Item") or table.remembered.get(table.identity(_named(request))) or {}
    wanted = request.get("Item") or {}
    return [table.touch(_named(request), max(item_bytes(there), item_bytes(wanted)))]


def _table_arm(work: Work) -> Work:
    return tuple(charge for charge in work if charge[0].name is None)


def _named(request: Request) -> Item:
    named: Item = request.get("Item") or request["Key"]
    return named


def _put(request: Request, works: Works, answer: Answer, tables: Tables) -> list[Work]:
    table = find_table(request["TableName"], tables)
    item = request["Item"]
    identity = table.identity(item)
    known = _old_image(request, answer, table.remembered.get(identity))
    table.remembered.put(identity, item)
    if known is None:
        return written_as_reported(works, answer, tables)
    return [table.write(known or None, item)]


def _delete(request: Request, works: Works, answer: Answer, tables: Tables) -> list[Work]:
    table = find_table(request["TableName"], tables)
    identity = table.identity(request["Key"])
    known = _old_image(request, answer, table.remembered.get(identity))
    table.remembered.put(identity, {})
    if known is None:
        return written_as_reported(works, answer, tables)
    return [table.write(known, None) if known else table.touch(request["Key"])]


def _update(request: Request, works: Works, answer: Answer, tables: Tables) -> list[Work]:
    table = find_table(request["TableName"], tables)
    identity = table.identity(request["Key"])
    old = _old_image(request, answer, table.remembered.get(identity))
    if request.get("ReturnValues") != "ALL_NEW" or "Attributes" not in answer:
        table.remembered.forget(identity)
        return written_as_reported(works, answer, tables)
    new = answer["Attributes"]
    table.remembered.put(identity, new)
    if old is None:
        return written_as_reported([table.write(None, new)], answer, tables)
    return [table.write(old or None, new)]


def _old_image(request: Request, answer: Answer, remembered: Item | None) -> Item | None:
    """Return the image before a write: empty where there was none, None where nobody knows."""
    if request.get("ReturnValues") == "ALL_OLD":
        shown: Item = answer.get("Attributes") or {}
        return shown
    return remembered


def _batch_write(request: Request, works: Works, answer: Answer, tables: Tables) -> list[Work]:
    at = 0
    undone = bool(
        answer.get("UnprocessedItems")
    )  # the engine's own: which, is not worth finding out
    for name, entries in request["RequestItems"].items():
        table = find_table(name, tables)
        for entry in entries:
            _, _, _, key, sort, _ = works[at][0]  # the table's own charge comes first
            at += 1
            if undone:
                table.remembered.forget((key, sort))
            else:
                image = entry["PutRequest"]["Item"] if "PutRequest" in entry else {}
                table.remembered.put((key, sort), image)
    return written_as_reported(works, answer, tables)


def _transact_write(request: Request, works: Works, answer: Answer, tables: Tables) -> list[Work]:
    for entry in request["TransactItems"]:
        ((kind, wanted),) = entry.items()
        table = find_table(wanted["TableName"], tables)
        if kind == "Put":
            table.remembered.put(table.identity(wanted["Item"]), wanted["Item"])
        elif kind == "Delete":
            table.remembered.put(table.identity(wanted["Key"]), {})
        elif kind == "Update":
            table.remembered.forget(table.identity(wanted["Key"]))
    return written_as_reported(works, answer, tables)


def _get(request: Request, works: Works, answer: Answer, tables: Tables) -> list[Work]:
    table = find_table(request["TableName"], tables)
    item = answer.get("Item")
    if item and _partial(request):
        return read_as_reported(works, answer)
    size = item_bytes(item) if item else 0
    return [table.read(table.identity(request["Key"]), size, _consistency(request))]


def _batch_get(request: Request, works: Works, answer: Answer, tables: Tables) -> list[Work]:
    final: list[Work] = []
    for name, wanted in request["RequestItems"].items():
        table = find_table(name, tables)
        if _partial(wanted):
            return read_as_reported(works, answer)
        found = {
            table.identity(item): item for item in (answer.get("Responses") or {}).get(name, ())
        }
        for key in wanted["Keys"]:
            where = table.identity(key)
            size = item_bytes(found[where]) if where in found else 0
            final.append(table.read(where, size, _consistency(wanted)))
    return final


def _transact_get(request: Request, works: Works, answer: Answer, tables: Tables) -> list[Work]:
    final: list[Work] = []
    for entry, response in zip(
        request["TransactItems"], answer.get("Responses") or (), strict=True
    ):
        wanted = entry["Get"]
        if _partial(wanted):
            return read_as_reported(works, answer)
        table = find_table(wanted["TableName"], tables)
        item = response.get("Item")
        where = table.identity(wanted["Key"])
        final.append(table.read(where, item_bytes(item) if item else 0, TRANSACTIONAL))
    return final


def _query(request: Request, works: Works, answer: Answer, tables: Tables) -> list[Work]:
    table = find_table(request["TableName"], tables)
    index = find_index(request, table)
    if not _whole_page(request, answer, index):
        return read_as_reported(works, answer)
    size = sum(map(item_bytes, answer["Items"]))
    where = query_start(request, table, index)
    return [table.read(where, size, _consistency(request), index)]


def _scan(request: Request, works: Works, answer: Answer, tables: Tables) -> list[Work]:
    table = find_table(request["TableName"], tables)
    if not _whole_page(request, answer, find_index(request, table)):
        return read_as_reported(works, answer)
    ((arm, partition, _, key, start, _),) = works[0]
    size = sum(map(item_bytes, answer["Items"]))
    ((_, _, units, _, _, tokens),) = table.read((key or " ", None), size, _consistency(request))
    return [((arm, partition, units, key, start, tokens),)]


def _partial(request: Request) -> bool:
    return bool(request.get("ProjectionExpression") or request.get("AttributesToGet"))


def _whole_page(request: Request, answer: Answer, index: Index | None) -> bool:
    """Say whether a page shows all that was read, so that its size can be measured."""
    fetches = index is not None and index.local and request.get("Select") == "ALL_ATTRIBUTES"
    hidden = answer.get("ScannedCount", 0) != answer.get("Count", 0) or "Items" not in answer
    return not (_partial(request) or fetches or hidden)


def _consistency(request: Request) -> float:
    return STRONG if request.get("ConsistentRead") else EVENTUAL


_SETTLE: Final[dict[str, Callable[[Request, Works, Answer, Tables], list[Work]]]] = {
    "BatchGetItem": _batch_get,
    "BatchWriteItem": _batch_write,
    "DeleteItem": _delete,
    "GetItem": _get,
    "PutItem": _put,
    "Query": _query,
    "Scan": _scan,
    "TransactGetItems": _transact_get,
    "TransactWriteItems": _transact_write,
    "UpdateItem": _update,
}
