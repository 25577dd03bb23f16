"""Settlement: what a request did consume, by the engine's answer.

Costs are exact where images are known. A put's new image is; an old one is cached or comes with
`ReturnValues=ALL_OLD`, an update's new one with `ALL_NEW`; items that a read returns whole are
measured. Elsewhere the engine's own ConsumedCapacity scales the charges, target by target. What
stays unknown keeps its estimate.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

from dynamoheat.consumption import Charge, IndexTarget, ItemCharges
from dynamoheat.requests import (
    Request,
    Tables,
    find_index,
    find_table,
    query_start,
    read_consistency,
)
from dynamoheat.sizes import TRANSACTIONAL, Item, item_bytes
from dynamoheat.tables import Index, Table

__all__ = [
    "ALL_TARGETS",
    "parse_reported_units",
    "scale_reads",
    "scale_writes",
    "settle_failure",
    "settle_request",
]

ALL_TARGETS: Final = "*"  # name of the sum, where table and indexes are not reported apart

Answer = Mapping[str, Any]
RequestCharges = Sequence[ItemCharges]
UnitsByIndex = dict[str | None, float]


def settle_request(
    operation: str, request: Request, item_charges: RequestCharges, answer: Answer, tables: Tables
) -> list[ItemCharges]:
    """Return the final charges of a request that the engine executed, and cache the images it left.

    `item_charges` are those of the admitted items, `request` is what was forwarded for them.
    """
    return _SETTLE[operation](request, item_charges, answer, tables)


def settle_failure(
    operation: str, request: Request, item_charges: RequestCharges, error: Answer, tables: Tables
) -> list[ItemCharges]:
    """Return the final charges of a write whose condition failed, or of a cancelled transaction.

    The table is charged for the larger of the stored item (if the error carries it) and the new
    one. Indexes were not written.
    """
    if operation == "TransactWriteItems":
        return [_keep_table_charges(charges) for charges in item_charges]
    table = find_table(request["TableName"], tables)
    there = error.get("Item") or table.image_cache.get(table.identity(_key_or_item(request))) or {}
    wanted = request.get("Item") or {}
    return [
        table.charge_unchanged(_key_or_item(request), max(item_bytes(there), item_bytes(wanted)))
    ]


def _keep_table_charges(charges: ItemCharges) -> ItemCharges:
    return tuple(charge for charge in charges if charge[0].name is None)


def _key_or_item(request: Request) -> Item:
    named: Item = request.get("Item") or request["Key"]
    return named


def _put(
    request: Request, item_charges: RequestCharges, answer: Answer, tables: Tables
) -> list[ItemCharges]:
    table = find_table(request["TableName"], tables)
    item = request["Item"]
    identity = table.identity(item)
    known = _old_image(request, answer, table.image_cache.get(identity))
    table.image_cache.put(identity, item)
    if known is None:
        return scale_writes(item_charges, answer, tables)
    return [table.charge_write(known or None, item)]


def _delete(
    request: Request, item_charges: RequestCharges, answer: Answer, tables: Tables
) -> list[ItemCharges]:
    table = find_table(request["TableName"], tables)
    identity = table.identity(request["Key"])
    known = _old_image(request, answer, table.image_cache.get(identity))
    table.image_cache.put(identity, {})
    if known is None:
        return scale_writes(item_charges, answer, tables)
    return [table.charge_write(known, None) if known else table.charge_unchanged(request["Key"])]


def _update(
    request: Request, item_charges: RequestCharges, answer: Answer, tables: Tables
) -> list[ItemCharges]:
    table = find_table(request["TableName"], tables)
    identity = table.identity(request["Key"])
    old = _old_image(request, answer, table.image_cache.get(identity))
    if request.get("ReturnValues") != "ALL_NEW" or "Attributes" not in answer:
        table.image_cache.forget(identity)
        return scale_writes(item_charges, answer, tables)
    new = answer["Attributes"]
    table.image_cache.put(identity, new)
    if old is None:
        return scale_writes([table.charge_write(None, new)], answer, tables)
    return [table.charge_write(old or None, new)]


def _old_image(request: Request, answer: Answer, remembered: Item | None) -> Item | None:
    """Return the image before a write: empty if there was none, None if unknown."""
    if request.get("ReturnValues") == "ALL_OLD":
        shown: Item = answer.get("Attributes") or {}
        return shown
    return remembered


def _batch_write(
    request: Request, item_charges: RequestCharges, answer: Answer, tables: Tables
) -> list[ItemCharges]:
    at = 0
    undone = bool(answer.get("UnprocessedItems"))  # by the engine itself: forget all images
    for name, entries in request["RequestItems"].items():
        table = find_table(name, tables)
        for entry in entries:
            _, _, _, key, sort, _ = item_charges[at][0]  # the table's own charge comes first
            at += 1
            if undone:
                table.image_cache.forget((key, sort))
            else:
                image = entry["PutRequest"]["Item"] if "PutRequest" in entry else {}
                table.image_cache.put((key, sort), image)
    return scale_writes(item_charges, answer, tables)


def _transact_write(
    request: Request, item_charges: RequestCharges, answer: Answer, tables: Tables
) -> list[ItemCharges]:
    for entry in request["TransactItems"]:
        ((kind, wanted),) = entry.items()
        table = find_table(wanted["TableName"], tables)
        if kind == "Put":
            table.image_cache.put(table.identity(wanted["Item"]), wanted["Item"])
        elif kind == "Delete":
            table.image_cache.put(table.identity(wanted["Key"]), {})
        elif kind == "Update":
            table.image_cache.forget(table.identity(wanted["Key"]))
    return scale_writes(item_charges, answer, tables)


def _get(
    request: Request, item_charges: RequestCharges, answer: Answer, tables: Tables
) -> list[ItemCharges]:
    table = find_table(request["TableName"], tables)
    item = answer.get("Item")
    if item and _partial(request):
        return scale_reads(item_charges, answer)
    size = item_bytes(item) if item else 0
    return [table.charge_read(table.identity(request["Key"]), size, read_consistency(request))]


def _batch_get(
    request: Request, item_charges: RequestCharges, answer: Answer, tables: Tables
) -> list[ItemCharges]:
    final: list[ItemCharges] = []
    for name, wanted in request["RequestItems"].items():
        table = find_table(name, tables)
        if _partial(wanted):
            return scale_reads(item_charges, answer)
        found = {
            table.identity(item): item for item in (answer.get("Responses") or {}).get(name, ())
        }
        for key in wanted["Keys"]:
            where = table.identity(key)
            size = item_bytes(found[where]) if where in found else 0
            final.append(table.charge_read(where, size, read_consistency(wanted)))
    return final


def _transact_get(
    request: Request, item_charges: RequestCharges, answer: Answer, tables: Tables
) -> list[ItemCharges]:
    final: list[ItemCharges] = []
    for entry, response in zip(
        request["TransactItems"], answer.get("Responses") or (), strict=True
    ):
        wanted = entry["Get"]
        if _partial(wanted):
            return scale_reads(item_charges, answer)
        table = find_table(wanted["TableName"], tables)
        item = response.get("Item")
        where = table.identity(wanted["Key"])
        final.append(table.charge_read(where, item_bytes(item) if item else 0, TRANSACTIONAL))
    return final


def _query(
    request: Request, item_charges: RequestCharges, answer: Answer, tables: Tables
) -> list[ItemCharges]:
    table = find_table(request["TableName"], tables)
    index = find_index(request, table)
    if not _whole_page(request, answer, index):
        return scale_reads(item_charges, answer)
    size = sum(map(item_bytes, answer["Items"]))
    where = query_start(request, table, index)
    return [table.charge_read(where, size, read_consistency(request), index)]


def _scan(
    request: Request, item_charges: RequestCharges, answer: Answer, tables: Tables
) -> list[ItemCharges]:
    table = find_table(request["TableName"], tables)
    if not _whole_page(request, answer, find_index(request, table)):
        return scale_reads(item_charges, answer)
    ((target, partition, _, key, start, _),) = item_charges[0]
    size = sum(map(item_bytes, answer["Items"]))
    ((_, _, units, _, _, tokens),) = table.charge_read(
        (key or " ", None), size, read_consistency(request)
    )
    return [((target, partition, units, key, start, tokens),)]


def _partial(request: Request) -> bool:
    return bool(request.get("ProjectionExpression") or request.get("AttributesToGet"))


def _whole_page(request: Request, answer: Answer, index: Index | None) -> bool:
    """Return whether a page holds all that was read, so that its size can be measured."""
    fetches = index is not None and index.is_local and request.get("Select") == "ALL_ATTRIBUTES"
    hidden = answer.get("ScannedCount", 0) != answer.get("Count", 0) or "Items" not in answer
    return not (_partial(request) or fetches or hidden)


def parse_reported_units(answer: Mapping[str, Any]) -> dict[str, UnitsByIndex]:
    """Return the units that an answer reports, by table and index.

    The index None is the table itself, `ALL_TARGETS` a sum over table and indexes.
    """
    reports = answer.get("ConsumedCapacity") or []
    if isinstance(reports, Mapping):
        reports = [reports]
    return {report["TableName"]: _units_by_index(report) for report in reports}


def scale_reads(item_charges: RequestCharges, answer: Mapping[str, Any]) -> list[ItemCharges]:
    """Scale read charges to the reported units of each target.

    Without a report they are unchanged.
    """
    scale = _scale_factors(_sum_by_target(item_charges), parse_reported_units(answer))
    return [
        [
            (
                target,
                part,
                units * scale.get(target, 1.0),
                key,
                sort,
                tokens * scale.get(target, 1.0),
            )
            for target, part, units, key, sort, tokens in charges
        ]
        for charges in item_charges
    ]


def scale_writes(
    item_charges: RequestCharges, answer: Mapping[str, Any], tables: Mapping[str, Table]
) -> list[ItemCharges]:
    """Scale write charges to the reported units; the table's own charges are never lowered.

    An index that is reported without a charge had an unseen entry moved or removed. It is charged
    at the table's key: the sum is right, the partition is a guess.
    """
    reported = parse_reported_units(answer)
    charged = _sum_by_target(item_charges) if reported else {}
    scale = _scale_factors(charged, reported)
    unseen = _unseen(charged, reported)
    if not unseen and all(factor == 1.0 for factor in scale.values()):
        return list(item_charges)  # the common case, and cheap
    scaled: list[ItemCharges] = []
    for charges in item_charges:
        first = charges[0]
        name = first[0].resource.table
        missed = unseen.pop(name, {})
        scaled.append(
            [
                *(_scaled_write(charge, scale.get(charge[0], 1.0)) for charge in charges),
                *_guessed(first, tables[name], missed),
            ]
        )
    return scaled


def _scaled_write(charge: Charge, scale: float) -> Charge:
    target, partition, units, key, sort, growth = charge
    if target.name is None:
        scale = max(scale, 1.0)
    return (target, partition, units * scale, key, sort, growth)


def _unseen(
    charged: Mapping[IndexTarget, float], reported: Mapping[str, UnitsByIndex]
) -> dict[str, UnitsByIndex]:
    """Return the indexes that are reported without a charge, by table."""
    known = {(target.resource.table, target.name) for target in charged}
    missed: dict[str, UnitsByIndex] = {
        table: {
            name: units
            for name, units in units_by_index.items()
            if units and name not in (None, ALL_TARGETS) and (table, name) not in known
        }
        for table, units_by_index in reported.items()
    }
    return {table: units_by_index for table, units_by_index in missed.items() if units_by_index}


def _guessed(beside: Charge, table: Table, units_by_index: UnitsByIndex) -> Iterable[Charge]:
    _, home, _, key, sort, _ = beside
    for name, units in units_by_index.items():
        index = table.indexes[str(name)]
        partition = home if index.is_local else index.resource.partitions.find(key, sort)
        yield (index.target, partition, units, key, sort, 0.0)


def _sum_by_target(item_charges: RequestCharges) -> dict[IndexTarget, float]:
    charged: dict[IndexTarget, float] = {}
    for charges in item_charges:
        for target, _, units, *_ in charges:
            charged[target] = charged.get(target, 0.0) + units
    return charged


def _scale_factors(
    charged: Mapping[IndexTarget, float], reported: Mapping[str, UnitsByIndex]
) -> dict[IndexTarget, float]:
    scale: dict[IndexTarget, float] = {}
    for target, units in charged.items():
        units_by_index = reported.get(target.resource.table)
        if not units_by_index or not units:
            continue
        if ALL_TARGETS in units_by_index:
            table = target.resource.table
            total = sum(u for other, u in charged.items() if other.resource.table == table)
            scale[target] = units_by_index[ALL_TARGETS] / total
        else:
            scale[target] = units_by_index.get(target.name, 0.0) / units
    return scale


def _units_by_index(report: Mapping[str, Any]) -> UnitsByIndex:
    if "Table" not in report:
        return {ALL_TARGETS: report.get("CapacityUnits", 0.0)}
    units_by_index: UnitsByIndex = {None: report["Table"]["CapacityUnits"]}
    for group in ("GlobalSecondaryIndexes", "LocalSecondaryIndexes"):
        for name, part in (report.get(group) or {}).items():
            units_by_index[name] = part["CapacityUnits"]
    return units_by_index


_SETTLE: Final[
    dict[str, Callable[[Request, RequestCharges, Answer, Tables], list[ItemCharges]]]
] = {
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
