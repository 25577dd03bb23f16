"""A table's description, in CreateTable's or DescribeTable's shape, and what UpdateTable makes of it."""

from collections.abc import Iterable, Mapping
from typing import Any, Final

__all__ = ["GLOBAL", "Description", "described_mode", "updated", "without_unsupported"]

Description = Mapping[str, Any]

GLOBAL: Final = "GlobalSecondaryIndexes"

_THROUGHPUTS: Final = ("ProvisionedThroughput", "OnDemandThroughput", "WarmThroughput")
_UNSUPPORTED: Final = ("OnDemandThroughput", "WarmThroughput")  # by engines, some or all


def described_mode(description: Description) -> dict[str, Any]:
    """Return a description that states its billing mode.

    Some engines state none and report no capacity either: what has none is on demand.
    """
    summary = description.get("BillingModeSummary") or {}
    mode = description.get("BillingMode") or summary.get("BillingMode")
    if mode is None:
        reported = description.get("ProvisionedThroughput") or {}
        mode = "PROVISIONED" if any(_units(reported)) else "PAY_PER_REQUEST"
    return {**description, "BillingMode": mode}


def updated(description: Description, request: Description) -> dict[str, Any]:
    """Return what an UpdateTable request makes of a table's description."""
    changed = _with_throughput(description, request)
    if "BillingMode" in request:
        changed["BillingMode"] = request["BillingMode"]
    indexes = {index["IndexName"]: dict(index) for index in description.get(GLOBAL) or ()}
    for entry in request.get("GlobalSecondaryIndexUpdates") or ():
        ((action, index),) = entry.items()
        name = index["IndexName"]
        if action == "Create":
            indexes[name] = dict(index)
        elif action == "Delete":
            indexes.pop(name, None)
        elif name in indexes:
            indexes[name] = _with_throughput(indexes[name], index)
    return {**changed, GLOBAL: list(indexes.values())}


def without_unsupported(request: Description) -> dict[str, Any]:
    """Return a CreateTable or UpdateTable request without what engines lack and the model does."""
    kept = _supported(request)
    if GLOBAL in kept:
        kept[GLOBAL] = [_supported(index) for index in kept[GLOBAL]]
    actions = [
        {action: supported}
        for entry in kept.pop("GlobalSecondaryIndexUpdates", None) or ()
        for action, index in entry.items()
        if (supported := _supported(index)).keys() != {"IndexName"} or action == "Delete"
    ]
    return {**kept, "GlobalSecondaryIndexUpdates": actions} if actions else kept


def _supported(stated: Description) -> dict[str, Any]:
    return {name: value for name, value in stated.items() if name not in _UNSUPPORTED}


def _with_throughput(description: Description, stated: Description) -> dict[str, Any]:
    merged = {
        name: {**(description.get(name) or {}), **stated[name]}
        for name in _THROUGHPUTS
        if stated.get(name)
    }
    return {**description, **merged}


def _units(throughput: Description) -> Iterable[Any]:
    return (throughput.get(f"{kind}CapacityUnits") for kind in ("Read", "Write"))
