"""The model's state as JSON: what `GET /heat` answers."""

from collections.abc import Iterable, Mapping
from typing import Any

from dynamoheat.buckets import TokenBucket
from dynamoheat.partitions import Partition, Position
from dynamoheat.rates import Rates
from dynamoheat.resources import Resource, Split
from dynamoheat.tables import Table

__all__ = ["snapshot"]


def snapshot(tables: Mapping[str, Table], now: float) -> dict[str, Any]:
    """Return everything that is worth seeing of some tables, as plain values."""
    return {
        "now": now,
        "tables": {
            name: {
                **_resource(table.resource, now),
                "indexes": {
                    str(resource.index): _resource(resource, now)
                    for resource in table.index_resources()
                },
            }
            for name, table in tables.items()
        },
    }


def _resource(resource: Resource, now: float) -> dict[str, Any]:
    total = resource.meter.total
    return {
        "mode": "PROVISIONED" if resource.provisioned else "PAY_PER_REQUEST",
        "consumed": {"write": total.consumed_write, "read": total.consumed_read},
        "throttled": {str(reason): count for reason, count in total.throttled.items()},
        "warm": {"write": resource.writes.warm, "read": resource.reads.warm},
        "limits": {"write": _limits(resource.writes, now), "read": _limits(resource.reads, now)},
        "waiting": resource.behind(now),
        "partitions": [_partition(resource, partition, now) for partition in resource.partitions],
        "splits": [_split(split) for split in resource.splits],
    }


def _limits(rates: Rates, now: float) -> list[dict[str, Any]]:
    return [
        {
            "limit": str(limit.cause),
            "rate": limit.bucket.rate,
            "tokens": round(limit.bucket.fill(now), 3),
        }
        for limit in rates.limits
    ]


def _partition(resource: Resource, partition: Partition, now: float) -> dict[str, Any]:
    writes, reads = resource.per_second(partition, now)
    written = partition.consumed_write + partition.write_units
    return {
        "number": partition.number,
        "from": _position(partition.low),
        "to": _position(resource.partitions.high(partition)),
        "bytes": round(partition.bytes),
        "write": _side(partition.write, written, writes, now),
        "read": _side(partition.read, partition.consumed_read, reads, now),
        "throttled": partition.throttled,
        "hot_since": partition.hot_since,
        "split_at": partition.split_at,
        "unsplittable": partition.unsplittable,
    }


def _side(bucket: TokenBucket, consumed: float, per_second: float, now: float) -> dict[str, float]:
    return {
        "limit": bucket.rate,
        "tokens": round(bucket.fill(now), 3),
        "consumed": consumed,
        "per_second": round(per_second, 3),
    }


def _split(split: Split) -> dict[str, Any]:
    return {
        "at": split.at,
        "why": split.why,
        "parent": split.parent,
        "children": list(split.children),
        "cut": _position(split.cut),
    }


def _position(position: Position) -> list[str]:
    return [f"{position[0]:016x}", *_texts(position[1:])]


def _texts(parts: Iterable[Any]) -> Iterable[str]:
    return (part.hex() if isinstance(part, bytes) else str(part) for part in parts)
