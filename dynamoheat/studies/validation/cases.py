"""Every published case, in the order of their numbers, documented facts last. A new one is added to its module's `CASES`."""

from typing import Final

from dynamoheat.studies.validation import (
    capacity_units,
    earlier_designs,
    first_partitions,
    heat_splits,
    partition_limits,
    table_limits,
)
from dynamoheat.studies.validation.case import Case

__all__ = ["CASES"]

CASES: Final[tuple[Case, ...]] = tuple(
    sorted(
        (
            *first_partitions.CASES,
            *partition_limits.CASES,
            *table_limits.CASES,
            *heat_splits.CASES,
            *capacity_units.CASES,
            *earlier_designs.CASES,
        ),
        key=lambda case: case.number.zfill(3),
    )
)
