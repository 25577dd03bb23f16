"""What a table is to the engine: keys, indexes, capacity; how it is made, and made another."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from local.templates import TemplateSettings, TemplateThroughput

__all__ = ["Definition", "definition", "described", "index_changes", "plain_index"]

Description = Mapping[str, Any]

_DEFAULT_UNITS = 5


@dataclass(frozen=True, slots=True)
class Definition:
    """A table as CreateTable's request states it."""

    name: str
    keys: tuple[tuple[str, str], ...]  # attribute, HASH or RANGE
    request: Mapping[str, Any]


def definition(description: Description, settings: TemplateSettings | None = None) -> Definition:
    """Return the definition in a DescribeTable answer, with a template's capacity where there is one."""
    on_demand = settings.on_demand if settings else _billed_on_demand(description)
    table = settings.table if settings else TemplateThroughput()
    indexes = settings.indexes if settings else {}
    request = {
        "TableName": description["TableName"],
        "KeySchema": description["KeySchema"],
        "AttributeDefinitions": description["AttributeDefinitions"],
        "BillingMode": "PAY_PER_REQUEST" if on_demand else "PROVISIONED",
    } | _provisioned(description, table, on_demand=on_demand)
    for kind in ("GlobalSecondaryIndexes", "LocalSecondaryIndexes"):
        if found := description.get(kind):
            request[kind] = [
                plain_index(index)
                | (
                    _provisioned(
                        index,
                        indexes.get(index["IndexName"], TemplateThroughput()),
                        on_demand=on_demand,
                    )
                    if kind == "GlobalSecondaryIndexes"
                    else {}
                )
                for index in found
            ]
    return Definition(description["TableName"], _keys(description), request)


def described(description: Description, settings: TemplateSettings | None) -> dict[str, Any]:
    """Return a DescribeTable answer with the capacity and throughput that a template states.

    Without what changes by itself, so that equal tables have equal ones.
    """
    request = definition(description, settings).request
    table = settings.table if settings else TemplateThroughput()
    indexes = settings.indexes if settings else {}
    reported = {index["IndexName"]: index for index in description.get(_GLOBAL, ())}
    whole = {**request, **_stated(description, table)}
    whole |= {key: description[key] for key in ("TableArn", "TableId") if key in description}
    if _GLOBAL in request:
        whole[_GLOBAL] = [
            {
                **index,
                **_stated(
                    reported[index["IndexName"]],
                    indexes.get(index["IndexName"], TemplateThroughput()),
                ),
            }
            for index in request[_GLOBAL]
        ]
    return whole


def _stated(description: Description, stated: TemplateThroughput) -> dict[str, Any]:
    maximum = {
        "MaxReadRequestUnits": stated.max_read,
        "MaxWriteRequestUnits": stated.max_write,
    }
    warm = {"ReadUnitsPerSecond": stated.warm_read, "WriteUnitsPerSecond": stated.warm_write}
    return {
        name: {**(description.get(name) or {}), **{k: v for k, v in figures.items() if v}}
        for name, figures in (("OnDemandThroughput", maximum), ("WarmThroughput", warm))
    }


def plain_index(index: Description) -> dict[str, Any]:
    """Return what makes an index what it is: name, keys, projection."""
    projection = index.get("Projection") or {"ProjectionType": "ALL"}
    return {
        "IndexName": index["IndexName"],
        "KeySchema": index["KeySchema"],
        "Projection": {key: value for key, value in projection.items() if value},
    }


def index_changes(wanted: Definition, present: Description) -> Iterator[dict[str, Any]]:
    """Yield the UpdateTable requests, one action each, that give a table the indexes wanted."""
    target = {index["IndexName"]: index for index in wanted.request.get(_GLOBAL, ())}
    found = {index["IndexName"]: index for index in present.get(_GLOBAL, ())}
    for name, index in found.items():
        if name not in target or plain_index(target[name]) != plain_index(index):
            yield _update(wanted, {"Delete": {"IndexName": name}})
    for name, index in target.items():
        if name not in found or plain_index(found[name]) != plain_index(index):
            yield _update(wanted, {"Create": index})


_GLOBAL = "GlobalSecondaryIndexes"


def _update(wanted: Definition, action: dict[str, Any]) -> dict[str, Any]:
    return {
        "TableName": wanted.name,
        "AttributeDefinitions": wanted.request["AttributeDefinitions"],
        "GlobalSecondaryIndexUpdates": [action],
    }


def _billed_on_demand(description: Description) -> bool:
    summary = description.get("BillingModeSummary") or {}
    return summary.get("BillingMode") == "PAY_PER_REQUEST"


def _provisioned(
    description: Description, stated: TemplateThroughput, *, on_demand: bool
) -> dict[str, dict[str, int]]:
    if on_demand:
        return {}
    reported = description.get("ProvisionedThroughput") or {}
    read = stated.read or int(reported.get("ReadCapacityUnits") or 0) or _DEFAULT_UNITS
    write = stated.write or int(reported.get("WriteCapacityUnits") or 0) or _DEFAULT_UNITS
    return {"ProvisionedThroughput": {"ReadCapacityUnits": read, "WriteCapacityUnits": write}}


def _keys(description: Description) -> tuple[tuple[str, str], ...]:
    return tuple((key["AttributeName"], key["KeyType"]) for key in description["KeySchema"])
