"""Published figures of DynamoDB's earlier designs, on `dynamoheat.studies.generations`."""

from functools import partial
from typing import Final

from dynamoheat.parameters import ModelParameters
from dynamoheat.studies.generations import (
    DesignAssumptions,
    ItemRequest,
    NewTable,
    StorageTable,
    equal_shares,
    initial_partitions,
)
from dynamoheat.studies.validation.case import ExpectedFigure, Figures, PublishedCase, Trial

__all__ = ["CASES"]

_GUIDE: Final = "DynamoDB developer guide (2012 to 2018)"
_PAPER: Final = "USENIX ATC 2022, section 4"
_IDLE: Final = int(ModelParameters().burst_seconds)


def _table(trial: Trial, opening: NewTable, *, adapts: bool = False) -> StorageTable:
    assumptions = DesignAssumptions(limits=trial.parameters)
    return StorageTable(opening, bursts=True, adapts=adapts, assumptions=assumptions)


def _provisioned(trial: Trial) -> Figures:
    table = _table(trial, NewTable(read=0, write=3_200))
    figures: list[float] = []
    for now, write in enumerate((3_200, 3_600, 6_000)):
        table.provision(0, write, float(now))
        granted = table.granted_rates(write=True)
        figures += [float(len(granted)), min(granted), max(granted)]
    return tuple(figures)


def _rule(trial: Trial, *, read: float, write: float) -> Figures:
    count = initial_partitions(read, write, limits=trial.parameters)
    shares = equal_shares(read, write, count)
    return float(count), shares.read, shares.write


def _divided(_: Trial) -> Figures:
    shares = [equal_shares(10_000, 5_000, count) for count in (10, 20, 5)]
    return tuple(rate for share in shares for rate in (share.read, share.write))


def _burst(trial: Trial) -> Figures:
    table = _table(trial, NewTable(read=150, write=0))
    for second in range(1_000):
        for n in range(100):
            if not table.get(ItemRequest("key", "", 2.0), _IDLE + second + (n + 1) / 100):
                return (float(second),)
    return (1_000.0,)


def _adapted(trial: Trial) -> Figures:
    """The guide's 400 units over four partitions that want 50, 50, 50 and 150."""
    table = _table(trial, NewTable(read=0, write=400, stored_bytes=31e9), adapts=True)
    parts = list(table.partitions)
    throttled = [0] * 40
    for second in range(40 * 60):
        for step in range(10):
            now = second + step / 10
            for part in (*parts, parts[-1], parts[-1]):
                throttled[second // 60] += not table.admit(part, 5.0, now, write=True)
        table.advance(second + 1.0)
    first, *_, last = (minute for minute, refused in enumerate(throttled) if refused)
    return float(last - first + 1), float(throttled[-1])


CASES: Final = (
    *(
        PublishedCase(
            number="DG",
            scenario=f"the rule for a new table of {read:,} RCU and {write:,} WCU",
            source=_GUIDE,
            run=partial(_rule, read=read, write=write),
            expected=(
                ExpectedFigure.exactly("partitions", count),
                ExpectedFigure.exactly("RCU each", read / count),
                ExpectedFigure.exactly("WCU each", write / count),
            ),
        )
        for read, write, count in ((1_500, 500, 1), (2_500, 1_000, 2), (3_000, 1_000, 2))
    ),
    PublishedCase(
        number="DG",
        scenario="10,000 RCU and 5,000 WCU divided equally over 10, 20 and 5 partitions",
        source=_GUIDE,
        run=_divided,
        expected=tuple(
            ExpectedFigure.exactly(f"{kind} each of {count}", rate)
            for count, *rates in ((10, 1_000, 500), (20, 500, 250), (5, 2_000, 1_000))
            for kind, rate in zip(("RCU", "WCU"), rates, strict=True)
        ),
    ),
    PublishedCase(
        number="DG",
        scenario="bursting: 150 RCU idle for 5 minutes, then 200 RCU/s",
        source=_GUIDE,
        run=_burst,
        expected=(ExpectedFigure.near("seconds without throttling", 900, 0.01),),
    ),
    PublishedCase(
        number="15",
        scenario="adaptive capacity of 2018: 400 WCU over 4 partitions, loads 50, 50, 50, 150",
        source=_GUIDE,
        run=_adapted,
        expected=(
            ExpectedFigure("minutes of throttling", "5 to 30", "as published", 5, 30),
            ExpectedFigure.exactly("throttled in the last minute", 0),
        ),
    ),
    PublishedCase(
        number="17",
        scenario="3,200 WCU, raised to 3,600, raised to 6,000",
        source=_PAPER,
        run=_provisioned,
        expected=tuple(
            ExpectedFigure.exactly(f"{what} of {write:,}", figure)
            for write, count, each in ((3_200, 4, 800), (3_600, 4, 900), (6_000, 8, 750))
            for what, figure in (
                ("partitions", count),
                ("least WCU a partition", each),
                ("greatest", each),
            )
        ),
    ),
)
