"""Tables, items and loads in virtual time for the tests of the model."""

from collections.abc import Callable, Iterator
from typing import Any

from dynamoheat import Heat, IndexSettings, Key, ModelParameters, TableSettings, ThroughputSettings

TABLE = "events"
INDEX = "by-kind"

Item = dict[str, Any]


def settings(
    *,
    write: float | None = None,
    read: float | None = None,
    index: ThroughputSettings | None = None,
    local: bool = False,
    **throughput: float,
) -> TableSettings:
    """A table, provisioned where `write` is given, with a global index where `index` is."""
    indexes = []
    if index is not None:
        indexes.append(IndexSettings(name=INDEX, key=Key("kind", "sk"), throughput=index))
    if local:
        indexes.append(IndexSettings(name="by-size", key=Key("pk", "size"), local=True))
    return TableSettings(
        name=TABLE,
        key=Key("pk", "sk"),
        provisioned=write is not None,
        throughput=ThroughputSettings(
            provisioned_write=write,
            provisioned_read=read if read is not None else write,
            **throughput,
        ),
        indexes=tuple(indexes),
    )


def model(
    described: TableSettings, parameters: ModelParameters | None = None, *, seed: int = 0
) -> Heat:
    """A model with one table, created at time 0."""
    heat = Heat(parameters, seed=seed)
    heat.create_table(described, 0.0)
    return heat


def item(pk: str, sk: str = "s", kind: str | None = None, pad: int = 0) -> Item:
    """An item of one unit (or of `pad` bytes more)."""
    made: Item = {"pk": {"S": pk}, "sk": {"S": sk}}
    if kind is not None:
        made["kind"] = {"S": kind}
    if pad:
        made["pad"] = {"S": "x" * pad}
    return made


def batch(*items: Item) -> dict[str, Any]:
    """A BatchWriteItem of puts."""
    return {"RequestItems": {TABLE: [{"PutRequest": {"Item": one}} for one in items]}}


def put(one: Item) -> dict[str, Any]:
    """A PutItem."""
    return {"TableName": TABLE, "Item": one}


def get(pk: str, sk: str = "s", *, consistent: bool = True) -> dict[str, Any]:
    """A GetItem."""
    return {"TableName": TABLE, "Key": item(pk, sk), "ConsistentRead": consistent}


def load(
    heat: Heat,
    items: Iterator[Item],
    rate: Callable[[float], float] | float,
    seconds: int,
    *,
    start: float = 0.0,
    steps: int = 20,
) -> list[float]:
    """Offer puts at a rate (units a second, or a function of time); return what passed."""
    passed = []
    for second in range(seconds):
        done = 0
        for step in range(steps):
            now = start + second + (step + 1) / steps
            wanted = rate(now - start) if callable(rate) else rate
            count = round(wanted / steps)
            admission = heat.admit(
                "BatchWriteItem", batch(*(next(items) for _ in range(count))), now
            )
            done += len(admission.admitted_charges)
        passed.append(float(done))
    return passed
