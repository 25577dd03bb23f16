"""How many partitions a provisioned table starts with, and what an equal division would give each."""

from functools import partial
from typing import Final

from dynamoheat.studies.validation.case import Case, Expected, Figures
from dynamoheat.studies.validation.trial import TABLE, Trial, table

__all__ = ["CASES"]

_DOCUMENTED: Final = (((1_500, 500), 1), ((2_500, 1_000), 2), ((3_000, 1_000), 2))


def _created(trial: Trial, *, read: float, write: float) -> Figures:
    heat = trial.model(table(write=write, read=read))
    count = len(heat.resource(TABLE).partitions)
    return float(count), read / count, write / count


CASES: Final = tuple(
    Case(
        number="DG",
        given=f"a new table of {read:,} RCU and {write:,} WCU",
        source="DynamoDB developer guide (2012 to 2017), partitions and throughput",
        run=partial(_created, read=read, write=write),
        expected=(
            Expected.exactly("partitions", count),
            Expected.exactly("RCU each, divided equally", read / count),
            Expected.exactly("WCU each", write / count),
        ),
    )
    for (read, write), count in _DOCUMENTED
)
