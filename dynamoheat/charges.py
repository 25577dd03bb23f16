"""What a write or a read would consume, and where: the currency between the parts of the model.

A `Charge` is a plain tuple (25 items make 50 of them in a few microseconds):
`(arm, partition, units, partition key, sort key, extra)`. `arm` says whose figure it is in a
ConsumedCapacity: the table's, a global or a local index's. `extra` is, for a write, the bytes by which the
partition grows; for a read, the tokens it takes (eventually consistent reads take fewer than units).
A scan has no key: its partition key is `SCAN` and its sort key the hash where the page starts.
A `Work` is all charges of one item, admitted or refused together.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from dynamoheat.partitions import Partition
from dynamoheat.resources import Resource

__all__ = [
    "SCAN",
    "Charge",
    "IndexTarget",
    "Sums",
    "Work",
    "by_partition",
    "difference",
    "units_of",
]


@dataclass(frozen=True, slots=True, eq=False)
class IndexTarget:
    """A table, a global index (`resource` its own) or a local index (`resource` its table's)."""

    resource: Resource
    name: str | None  # None: the table
    local: bool = False


SCAN: Final = ""  # no partition key is empty

Charge = tuple[IndexTarget, Partition, float, str, Any, float]
Work = Sequence[Charge]
Sums = dict[Partition, list[float]]  # units, extra, charges


def by_partition(charges: Iterable[Charge]) -> Sums:
    """Sum charges by partition."""
    sums: Sums = {}
    for _, partition, units, _, _, extra in charges:
        entry = sums.get(partition)
        if entry is None:
            sums[partition] = [units, extra, 1]
        else:
            entry[0] += units
            entry[1] += extra
            entry[2] += 1
    return sums


def units_of(work: Work) -> float:
    """Return the units of an item over all arms."""
    return sum(charge[2] for charge in work)


def difference(old: Iterable[Work], new: Iterable[Work]) -> list[Charge]:
    """Return the charges that turn `old` into `new`: net units are right, the old ones negative.

    Partitions that were split since are replaced by today's.
    """
    charges = [
        (arm, part, -units, key, sort, -extra)
        for work in old
        for arm, part, units, key, sort, extra in work
    ]
    charges.extend(charge for work in new for charge in work)
    return [
        (arm, _today(arm, part, key, sort), units, key, sort, extra)
        for arm, part, units, key, sort, extra in charges
    ]


def _today(arm: IndexTarget, partition: Partition, key: str, sort: Any) -> Partition:
    if not partition.retired:
        return partition
    partitions = arm.resource.partitions
    return partitions.at((sort,)) if key == SCAN else partitions.find(key, sort)
