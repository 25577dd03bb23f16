"""What requests and items cost: the guide's examples, through the model's own admission and settlement."""

from typing import Any, Final

from dynamoheat.items import Item, item_bytes, number_bytes
from dynamoheat.model import Heat
from dynamoheat.settings import IndexSettings, Key, ProvisionedThroughput, TableSettings
from dynamoheat.studies.validation.case import Case, Expected, Figures
from dynamoheat.studies.validation.loads import item
from dynamoheat.studies.validation.trial import TABLE, Trial, table

__all__ = ["CASES"]

_KB: Final = 1024
_INDEX: Final = "by-kind"
_NUMBERS: Final = {
    "1": 2, "100": 2, "120": 3, "12345": 4, "0.012": 3, "-1": 3, "-123": 4, "3.14159": 5,
    "16785408": 5,
}  # fmt: skip
_GUIDE: Final = "DynamoDB developer guide, "


def _sized(size: float, name: str = "") -> Item:
    """Return an item of exactly so many bytes."""
    small = {**item(f"p{name}"), "pad": {"S": ""}}
    return {**small, "pad": {"S": "x" * (int(size) - item_bytes(small))}}


def _key(made: Item) -> Item:
    return {name: made[name] for name in ("pk", "sk")}


def _settled(heat: Heat, operation: str, request: dict[str, Any], answer: dict[str, Any]) -> float:
    admission = heat.admit(operation, request, 0.0)
    heat.settle(admission, answer, 0.0)
    return admission.units


def _query(heat: Heat, sizes: list[float], **more: Any) -> float:
    items = [_sized(size, str(n)) for n, size in enumerate(sizes)]
    request = {
        "TableName": TABLE,
        "KeyConditionExpression": f"{'kind' if 'IndexName' in more else 'pk'} = :p",
        "ExpressionAttributeValues": {":p": {"S": "one"}},
        **more,
    }
    answer = {"Items": items, "Count": len(items), "ScannedCount": len(items)}
    return _settled(heat, "Query", request, answer)


def _requests(trial: Trial) -> Figures:
    on_demand = table()
    by_kind = IndexSettings(name=_INDEX, key=Key("kind", "sk"), throughput=ProvisionedThroughput())
    heat = trial.model(TableSettings(name=TABLE, key=on_demand.key, indexes=(by_kind,)))
    items = [_sized(1.5 * _KB, "a"), _sized(6.5 * _KB, "b")]
    keys = {"Keys": [_key(one) for one in items], "ConsistentRead": True}
    writes = [_sized(0.5 * _KB, "a"), _sized(3.5 * _KB, "b")]
    puts = {TABLE: [{"PutRequest": {"Item": one}} for one in writes]}
    return (
        _settled(
            heat, "BatchGetItem", {"RequestItems": {TABLE: keys}}, {"Responses": {TABLE: items}}
        ),
        _query(heat, [40.8 * _KB / 10] * 10, ConsistentRead=True),
        _query(heat, [64] * 1_500, ConsistentRead=True),
        _settled(heat, "BatchWriteItem", {"RequestItems": puts}, {}),
        _query(heat, [2_000] * 8, IndexName=_INDEX),
    )


def _sizes(_: Trial) -> Figures:
    shirt = {"shirt-color": {"S": "R"}, "shirt-size": {"S": "M"}}
    return (*(float(number_bytes(text)) for text in _NUMBERS), float(item_bytes(shirt)))


def _conditional_updates(trial: Trial) -> Figures:
    return tuple(
        _updated(trial, there=there, passes=passes)
        for there in (True, False)
        for passes in (True, False)
    )


def _updated(trial: Trial, *, there: bool, passes: bool) -> float:
    heat = trial.model(table())
    one = item("p")
    if there:
        heat.remember(TABLE, {**one, "n": {"N": "0"}})
    request = {"TableName": TABLE, "Key": one, "UpdateExpression": "SET n = :n"}
    for n in range(1_000):
        now = n * 0.01
        admission = heat.admit("UpdateItem", request | {"ReturnValues": "ALL_NEW"}, now)
        if passes:
            heat.settle(admission, {"Attributes": {**one, "n": {"N": str(n)}}}, now)
        else:
            heat.fail(admission, {}, now)
    return heat.resource(TABLE).meter.total.consumed_write


CASES: Final = (
    Case(
        number="14",
        given="1,000 conditional updates",
        source=_GUIDE + "ConditionExpression and consumed capacity",
        run=_conditional_updates,
        expected=(
            Expected.exactly("write units, item there, passing", 1_000),
            Expected.exactly("write units, item there, failing", 1_000),
            Expected.exactly("write units, item absent, passing", 1_000),
            Expected.exactly("write units, item absent, failing", 1_000),
        ),
    ),
    Case(
        number="16",
        given="requests of the guide",
        source=_GUIDE + "read-write-operations; GSI",
        run=_requests,
        expected=(
            Expected.exactly("BatchGetItem of 1.5 and 6.5 KB", 3),
            Expected.exactly("Query of 10 items, 40.8 KB", 11),
            Expected.exactly("Query of 1,500 items of 64 B", 24),
            Expected.exactly("BatchWriteItem of 0.5 and 3.5 KB", 5),
            Expected.exactly("index Query of 8 items of 2,000 B, eventual", 2),
        ),
    ),
    Case(
        number="16",
        given="sizes of the guide, in bytes",
        source=_GUIDE + "CapacityUnitCalculations",
        run=_sizes,
        expected=(
            *(Expected.exactly(text, size) for text, size in _NUMBERS.items()),
            Expected.exactly("shirt-color:R, shirt-size:M", 23),
        ),
    ),
)
