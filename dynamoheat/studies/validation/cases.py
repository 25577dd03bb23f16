"""All published cases in the order of their numbers, documented facts last.

A new case is added to the `CASES` of its module.
"""

from typing import Final

from dynamoheat.studies.validation import (
    capacity_units,
    earlier_designs,
    heat_splits,
    throughput_limits,
)
from dynamoheat.studies.validation.case import PublishedCase

__all__ = ["CASES"]

CASES: Final[tuple[PublishedCase, ...]] = tuple(
    sorted(
        (
            *throughput_limits.CASES,
            *heat_splits.CASES,
            *capacity_units.CASES,
            *earlier_designs.CASES,
        ),
        key=lambda case: case.number.zfill(3),
    )
)
