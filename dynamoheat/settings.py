"""What the model must know of a table: keys, indexes, billing mode, limits. Plain values, no behaviour."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

__all__ = ["IndexSettings", "Key", "ProvisionedThroughput", "TableSettings"]


@dataclass(frozen=True, slots=True)
class Key:
    """Names of the key attributes. Index keys of several attributes are not modelled."""

    partition: str
    sort: str | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """The attributes' names."""
        return (self.partition,) if self.sort is None else (self.partition, self.sort)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProvisionedThroughput:
    """Units a second of a table or a global index; None where nothing is set."""

    provisioned_write: float | None = None
    provisioned_read: float | None = None
    maximum_write: float | None = None
    maximum_read: float | None = None
    warm_write: float | None = None
    warm_read: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexSettings:
    """A secondary index."""

    name: str
    key: Key
    local: bool = False
    projected: frozenset[str] | None = None  # non-key attributes; None projects all
    throughput: ProvisionedThroughput = field(default_factory=ProvisionedThroughput)


@dataclass(frozen=True, slots=True, kw_only=True)
class TableSettings:
    """A table. `stored_bytes` is what it holds already, for the number of its first partitions."""

    name: str
    key: Key
    provisioned: bool = False
    throughput: ProvisionedThroughput = field(default_factory=ProvisionedThroughput)
    indexes: tuple[IndexSettings, ...] = ()
    stored_bytes: int = 0

    @classmethod
    def from_description(cls, described: Mapping[str, Any]) -> "TableSettings":
        """Read what CreateTable takes, DescribeTable answers (its `Table`) or `AWS::DynamoDB::Table` holds.

        KeyError where the name or the keys are missing.
        """
        provisioned = _is_provisioned(described)
        return cls(
            name=described["TableName"],
            key=_key(described["KeySchema"]),
            provisioned=provisioned,
            throughput=_throughput(described, provisioned=provisioned),
            indexes=(
                *_indexes(described, "GlobalSecondaryIndexes", provisioned=provisioned),
                *_indexes(described, "LocalSecondaryIndexes", provisioned=provisioned),
            ),
            stored_bytes=int(described.get("TableSizeBytes") or 0),
        )


def _is_provisioned(described: Mapping[str, Any]) -> bool:
    summary = described.get("BillingModeSummary") or {}
    mode = described.get("BillingMode") or summary.get("BillingMode") or "PROVISIONED"
    return bool(mode == "PROVISIONED")


def _key(schema: Sequence[Mapping[str, str]]) -> Key:
    names = {part["KeyType"]: part["AttributeName"] for part in schema}
    return Key(names["HASH"], names.get("RANGE"))


def _throughput(described: Mapping[str, Any], *, provisioned: bool) -> ProvisionedThroughput:
    rates = (described.get("ProvisionedThroughput") or {}) if provisioned else {}
    maximum = {} if provisioned else (described.get("OnDemandThroughput") or {})
    warm = described.get("WarmThroughput") or {}
    return ProvisionedThroughput(
        provisioned_write=_figure(rates.get("WriteCapacityUnits")),
        provisioned_read=_figure(rates.get("ReadCapacityUnits")),
        maximum_write=_figure(maximum.get("MaxWriteRequestUnits")),
        maximum_read=_figure(maximum.get("MaxReadRequestUnits")),
        warm_write=_figure(warm.get("WriteUnitsPerSecond")),
        warm_read=_figure(warm.get("ReadUnitsPerSecond")),
    )


def _figure(value: float | str | None) -> float | None:
    return None if value is None or float(value) <= 0 else float(value)  # -1 lifts a maximum


def _indexes(
    described: Mapping[str, Any], kind: str, *, provisioned: bool
) -> tuple[IndexSettings, ...]:
    return tuple(
        IndexSettings(
            name=index["IndexName"],
            key=_key(index["KeySchema"]),
            local=kind == "LocalSecondaryIndexes",
            projected=_projected(index.get("Projection") or {}),
            throughput=_throughput(index, provisioned=provisioned),
        )
        for index in described.get(kind) or ()
    )


def _projected(projection: Mapping[str, Any]) -> frozenset[str] | None:
    if projection.get("ProjectionType", "ALL") == "ALL":
        return None
    return frozenset(projection.get("NonKeyAttributes") or ())
