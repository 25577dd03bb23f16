"""Table settings as a CloudFormation template states them; emulated CloudFormation forgets most."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

__all__ = ["TABLE_TYPES", "TemplateSettings", "TemplateThroughput", "table_settings"]

_TABLE = "AWS::DynamoDB::Table"
_GLOBAL_TABLE = "AWS::DynamoDB::GlobalTable"
TABLE_TYPES = frozenset({_TABLE, _GLOBAL_TABLE})

Properties = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class TemplateThroughput:
    """What a table or an index may carry, in capacity units per second; None where not stated."""

    read: int | None = None  # provisioned
    write: int | None = None
    max_read: int | None = None  # on-demand maximum
    max_write: int | None = None
    warm_read: int | None = None
    warm_write: int | None = None
    insights: str | None = None  # Contributor Insights' mode, None where it is off


@dataclass(frozen=True, slots=True, kw_only=True)
class TemplateSettings:
    """The settings of a table that do not follow from its keys."""

    on_demand: bool
    table: TemplateThroughput
    indexes: Mapping[str, TemplateThroughput] = field(default_factory=dict)
    expiry_attribute: str | None = None
    recovery: bool = False
    deletion_protection: bool = False


def table_settings(resource: Mapping[str, Any], region: str) -> TemplateSettings | None:
    """Return the settings of a template's resource, None where it is no table.

    Values that are not literal (a reference, a function) count as not stated.
    """
    properties = resource.get("Properties") or {}
    if resource.get("Type") == _TABLE:
        return _settings(properties, replica=properties, throughput=_plain_throughput)
    if resource.get("Type") == _GLOBAL_TABLE:
        return _settings(
            properties, replica=_replica(properties, region), throughput=_global_throughput
        )
    return None


def _settings(properties: Properties, *, replica: Properties, throughput: Any) -> TemplateSettings:
    replicated = {index.get("IndexName"): index for index in _dicts(replica, _INDEXES)}
    return TemplateSettings(
        on_demand=properties.get("BillingMode") == "PAY_PER_REQUEST",
        table=throughput(properties, replica),
        indexes={
            str(index.get("IndexName")): throughput(
                index, replicated.get(index.get("IndexName"), {})
            )
            for index in _dicts(properties, _INDEXES)
        },
        expiry_attribute=_expiry(properties),
        recovery=_true(replica, "PointInTimeRecoverySpecification", "PointInTimeRecoveryEnabled"),
        deletion_protection=_true(replica, "DeletionProtectionEnabled"),
    )


_INDEXES = "GlobalSecondaryIndexes"


def _plain_throughput(stated: Properties, replica: Properties) -> TemplateThroughput:
    return TemplateThroughput(
        read=_number(stated, "ProvisionedThroughput", "ReadCapacityUnits"),
        write=_number(stated, "ProvisionedThroughput", "WriteCapacityUnits"),
        max_read=_number(stated, "OnDemandThroughput", "MaxReadRequestUnits"),
        max_write=_number(stated, "OnDemandThroughput", "MaxWriteRequestUnits"),
        warm_read=_number(stated, "WarmThroughput", "ReadUnitsPerSecond"),
        warm_write=_number(stated, "WarmThroughput", "WriteUnitsPerSecond"),
        insights=_insights(replica),
    )


def _global_throughput(stated: Properties, replica: Properties) -> TemplateThroughput:
    """Writes are stated for all replicas, reads by each."""
    return TemplateThroughput(
        read=_number(replica, "ReadProvisionedThroughputSettings", "ReadCapacityUnits")
        or _initial(
            replica, "ReadProvisionedThroughputSettings", "ReadCapacityAutoScalingSettings"
        ),
        write=_initial(
            stated, "WriteProvisionedThroughputSettings", "WriteCapacityAutoScalingSettings"
        ),
        max_read=_number(replica, "ReadOnDemandThroughputSettings", "MaxReadRequestUnits"),
        max_write=_number(stated, "WriteOnDemandThroughputSettings", "MaxWriteRequestUnits"),
        warm_read=_number(stated, "WarmThroughput", "ReadUnitsPerSecond"),
        warm_write=_number(stated, "WarmThroughput", "WriteUnitsPerSecond"),
        insights=_insights(replica),
    )


def _initial(properties: Properties, *path: str) -> int | None:
    """Return the capacity that auto scaling starts from."""
    return _number(properties, *path, "SeedCapacity") or _number(properties, *path, "MinCapacity")


def _replica(properties: Properties, region: str) -> Properties:
    replicas = _dicts(properties, "Replicas")
    here = (region, {"Ref": "AWS::Region"})
    return next((replica for replica in replicas if replica.get("Region") in here), {})


def _insights(properties: Properties) -> str | None:
    if not _true(properties, "ContributorInsightsSpecification", "Enabled"):
        return None
    mode = _at(properties, "ContributorInsightsSpecification", "Mode")
    return mode if isinstance(mode, str) else "ACCESSED_AND_THROTTLED_KEYS"


def _expiry(properties: Properties) -> str | None:
    if not _true(properties, "TimeToLiveSpecification", "Enabled"):
        return None
    name = _at(properties, "TimeToLiveSpecification", "AttributeName")
    return name if isinstance(name, str) else None


def _at(node: Any, *path: str) -> Any:
    for key in path:
        node = node.get(key) if isinstance(node, Mapping) else None
    return node


def _true(properties: Properties, *path: str) -> bool:
    return _at(properties, *path) in (True, "true")


def _number(properties: Properties, *path: str) -> int | None:
    value = _at(properties, *path)
    return int(value) if isinstance(value, int | str) and str(value).isdecimal() else None


def _dicts(properties: Properties, key: str) -> list[Properties]:
    found = properties.get(key)
    return (
        [entry for entry in found if isinstance(entry, Mapping)] if isinstance(found, list) else []
    )
