"""Settlement"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

from dynamoheat.consumption import Charge, IndexTarget, ItemCharges
from dynamoheat.requests import Tables, find_index, find_table, query_start
from dynamoheat.sizes import EVENTUAL, STRONG, TRANSACTIONAL, Item, item_bytes
from dynamoheat.tables import Index, Table

__all__ = [
    "ALL_TARGETS",
    "parse_reported_units",
    "scale_reads",
    "scale_writes",
    "settle_failure",
    "settle_request",
]

ALL_TARGETS: Final = "*"  # an arm's name where only the sum over all arms is reported


Request = Mapping[str, Any]


Answer = Mapping[str, Any]


Works = Sequence[ItemCharges]


Arms = dict[str | None, float]


def settle_request(
    operation: str, request: Request, works: Works, answer: Answer, tables: Tables
) -> list[ItemCharges]:
    """Return the final charges of a request that the engine did, and remember the images it left.

    `works` are the charges of the items that were admitted, `request` what was sent for them.
    """
    return _SETTLE[operation](request, works, answer, tables)


def settle_failure(
    operation: str, request: Request, works: Works, error: Answer, tables: Tables
) -> list[ItemCharges]:
    """Return the final charges of a write whose condition failed (or a cancelled transaction).

    The table's units stay, at the larger of the item there (where the error carries it) and the item
    wanted; indexes were not written.
    """
    if operation == "TransactWriteItems":
        return [_table_arm(work) for work in works]
    table = find_table(request["TableName"], tables)
    there = error.get("Item") or table.image_cache.get(table.identity(_named(request))) or {}
    wanted = request.get("Item") or {}
    return [table.charge_unchanged(_named(request), max(item_bytes(there), item_bytes(wanted)))]


def _table_arm(work: ItemCharges) -> ItemCharges:
    return tuple(charge for charge in work if charge[0].name is None)


def _named(request: Request) -> Item:
    named: Item = request.get("Item") or request["Key"]
    return named


def _put(request: Request, works: Works, answer: Answer, tables: Tables) -> list[ItemCharges]:
    table = find_table(request["TableName"], tables)
    item = request["Item"]
    identity = table.identity(item)
    known = _old_image(request, answer, table.image_cache.get(identity))
    table.image_cache.put(identity, item)
    if known is None:
        return scale_writes(works, answer, tables)
    return [table.charge_write(known or None, item)]


def _delete(request: Request, works: Works, answer: Answer, tables: Tables) -> list[ItemCharges]:
    table = find_table(request["TableName"], tables)
    identity = table.identity(request["Key"])
    known = _old_image(request, answer, table.image_cache.get(identity))
    table.image_cache.put(identity, {})
    if known is None:
        return scale_writes(works, answer, tables)
    return [table.charge_write(known, None) if known else table.charge_unchanged(request["Key"])]


def _update(request: Request, works: Works, answer: Answer, tables: Tables) -> list[ItemCharges]:
    table = find_table(request["TableName"], tables)
    identity = table.identity(request["Key"])
    old = _old_image(request, answer, table.image_cache.get(identity))
    if request.get("ReturnValues") != "ALL_NEW" or "Attributes" not in answer:
        table.image_cache.forget(identity)
        return scale_writes(works, answer, tables)
    new = answer["Attributes"]
    table.image_cache.put(identity, new)
    if old is None:
        return scale_writes([table.charge_write(None, new)], answer, tables)
    return [table.charge_write(old or None, new)]


def _old_image(request: Request, answer: Answer, remembered: Item | None) -> Item | None:
    """Return the image before a write: empty where there was none, None where nobody knows."""
    if request.get("ReturnValues") == "ALL_OLD":
        shown: Item = answer.get("Attributes") or {}
        return shown
    return remembered


def _batch_write(
    request: Request, works: Works, answer: Answer, tables: Tables
) -> list[ItemCharges]:
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
                table.image_cache.forget((key, sort))
            else:
                image = entry["PutRequest"]["Item"] if "PutRequest" in entry else {}
                table.image_cache.put((key, sort), image)
    return scale_writes(works, answer, tables)


def _transact_write(
    request: Request, works: Works, answer: Answer, tables: Tables
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
    return scale_writes(works, answer, tables)


def _get(request: Request, works: Works, answer: Answer, tables: Tables) -> list[ItemCharges]:
    table = find_table(request["TableName"], tables)
    item = answer.get("Item")
    if item and _partial(request):
        return scale_reads(works, answer)
    size = item_bytes(item) if item else 0
    return [table.charge_read(table.identity(request["Key"]), size, _consistency(request))]


def _batch_get(request: Request, works: Works, answer: Answer, tables: Tables) -> list[ItemCharges]:
    final: list[ItemCharges] = []
    for name, wanted in request["RequestItems"].items():
        table = find_table(name, tables)
        if _partial(wanted):
            return scale_reads(works, answer)
        found = {
            table.identity(item): item for item in (answer.get("Responses") or {}).get(name, ())
        }
        for key in wanted["Keys"]:
            where = table.identity(key)
            size = item_bytes(found[where]) if where in found else 0
            final.append(table.charge_read(where, size, _consistency(wanted)))
    return final


def _transact_get(
    request: Request, works: Works, answer: Answer, tables: Tables
) -> list[ItemCharges]:
    final: list[ItemCharges] = []
    for entry, response in zip(
        request["TransactItems"], answer.get("Responses") or (), strict=True
    ):
        wanted = entry["Get"]
        if _partial(wanted):
            return scale_reads(works, answer)
        table = find_table(wanted["TableName"], tables)
        item = response.get("Item")
        where = table.identity(wanted["Key"])
        final.append(table.charge_read(where, item_bytes(item) if item else 0, TRANSACTIONAL))
    return final


def _query(request: Request, works: Works, answer: Answer, tables: Tables) -> list[ItemCharges]:
    table = find_table(request["TableName"], tables)
    index = find_index(request, table)
    if not _whole_page(request, answer, index):
        return scale_reads(works, answer)
    size = sum(map(item_bytes, answer["Items"]))
    where = query_start(request, table, index)
    return [table.charge_read(where, size, _consistency(request), index)]


def _scan(request: Request, works: Works, answer: Answer, tables: Tables) -> list[ItemCharges]:
    table = find_table(request["TableName"], tables)
    if not _whole_page(request, answer, find_index(request, table)):
        return scale_reads(works, answer)
    ((arm, partition, _, key, start, _),) = works[0]
    size = sum(map(item_bytes, answer["Items"]))
    ((_, _, units, _, _, tokens),) = table.charge_read((key or " ", None), size, _consistency(request))
    return [((arm, partition, units, key, start, tokens),)]


def _partial(request: Request) -> bool:
    return bool(request.get("ProjectionExpression") or request.get("AttributesToGet"))


def _whole_page(request: Request, answer: Answer, index: Index | None) -> bool:
    """Say whether a page shows all that was read, so that its size can be measured."""
    fetches = index is not None and index.is_local and request.get("Select") == "ALL_ATTRIBUTES"
    hidden = answer.get("ScannedCount", 0) != answer.get("Count", 0) or "Items" not in answer
    return not (_partial(request) or fetches or hidden)


def _consistency(request: Request) -> float:
    return STRONG if request.get("ConsistentRead") else EVENTUAL


def parse_reported_units(answer: Mapping[str, Any]) -> dict[str, Arms]:
    """Return what an engine's answer reports: by table, by index (None: the table itself, or `ALL_TARGETS`)."""
    reports = answer.get("ConsumedCapacity") or []
    if isinstance(reports, Mapping):
        reports = [reports]
    return {report["TableName"]: _units_by_index(report) for report in reports}


def scale_reads(works: Works, answer: Mapping[str, Any]) -> list[ItemCharges]:
    """Return read charges scaled so that each arm sums to what is reported; as they are without a report."""
    scale = _scale_factors(_sum_by_target(works), parse_reported_units(answer))
    return [
        [
            (arm, part, units * scale.get(arm, 1.0), key, sort, tokens * scale.get(arm, 1.0))
            for arm, part, units, key, sort, tokens in work
        ]
        for work in works
    ]


def scale_writes(
    works: Works, answer: Mapping[str, Any], tables: Mapping[str, Table]
) -> list[ItemCharges]:
    """Return write charges scaled likewise, the table's own never down: the image they come from is there.

    An index that is reported without a charge (an entry that nobody saw was moved or removed) is charged
    where the table's key would lie in it: the sum is right, the place is anyone's guess.
    """
    reported = parse_reported_units(answer)
    charged = _sum_by_target(works) if reported else {}
    scale = _scale_factors(charged, reported)
    unseen = _unseen(charged, reported)
    if not unseen and all(factor == 1.0 for factor in scale.values()):
        return list(works)  # the rule, and cheap
    scaled: list[ItemCharges] = []
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
            if units and name not in (None, ALL_TARGETS) and (table, name) not in known
        }
        for table, arms in reported.items()
    }
    return {table: arms for table, arms in missed.items() if arms}


def _guessed(beside: Charge, table: Table, arms: Arms) -> Iterable[Charge]:
    _, home, _, key, sort, _ = beside
    for name, units in arms.items():
        index = table.indexes[str(name)]
        partition = home if index.is_local else index.resource.partitions.find(key, sort)
        yield (index.target, partition, units, key, sort, 0.0)


def _sum_by_target(works: Works) -> dict[IndexTarget, float]:
    charged: dict[IndexTarget, float] = {}
    for work in works:
        for arm, _, units, *_ in work:
            charged[arm] = charged.get(arm, 0.0) + units
    return charged


def _scale_factors(
    charged: Mapping[IndexTarget, float], reported: Mapping[str, Arms]
) -> dict[IndexTarget, float]:
    scale: dict[IndexTarget, float] = {}
    for arm, units in charged.items():
        arms = reported.get(arm.resource.table)
        if not arms or not units:
            continue
        if ALL_TARGETS in arms:
            table = arm.resource.table
            total = sum(u for other, u in charged.items() if other.resource.table == table)
            scale[arm] = arms[ALL_TARGETS] / total
        else:
            scale[arm] = arms.get(arm.name, 0.0) / units
    return scale


def _units_by_index(report: Mapping[str, Any]) -> Arms:
    if "Table" not in report:
        return {ALL_TARGETS: report.get("CapacityUnits", 0.0)}
    arms: Arms = {None: report["Table"]["CapacityUnits"]}
    for group in ("GlobalSecondaryIndexes", "LocalSecondaryIndexes"):
        for name, part in (report.get(group) or {}).items():
            arms[name] = part["CapacityUnits"]
    return arms


_SETTLE: Final[dict[str, Callable[[Request, Works, Answer, Tables], list[ItemCharges]]]] = {
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
