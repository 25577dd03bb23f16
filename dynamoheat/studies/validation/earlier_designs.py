"""What was published of DynamoDB's earlier designs, on `dynamoheat.studies.generations`."""

from functools import partial
from typing import Final

from dynamoheat.studies.generations import (
    Ask,
    Assumptions,
    Opening,
    StorageTable,
    equal_shares,
    initial_partitions,
)
from dynamoheat.studies.validation.case import Case, Expected, Figures
from dynamoheat.studies.validation.trial import Trial

__all__ = ["CASES"]

_GUIDE: Final = "DynamoDB developer guide (2012 to 2018)"
_PAPER: Final = "USENIX ATC 2022, section 4"
_IDLE: Final = 300


def _table(trial: Trial, opening: Opening, *, adapts: bool = False) -> StorageTable:
    assumed = Assumptions(limits=trial.parameters)
    return StorageTable(opening, bursts=True, adapts=adapts, assumed=assumed)


def _provisioned(trial: Trial) -> Figures:
    table = _table(trial, Opening(read=0, write=3_200))
    figures: list[float] = []
    for now, write in enumerate((3_200, 3_600, 6_000)):
        table.provision(0, write, float(now))
        granted = table.granted(write=True)
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
    table = _table(trial, Opening(read=150, write=0))
    for second in range(1_000):
        for n in range(100):
            if not table.get(Ask("key", "", 2.0), _IDLE + second + (n + 1) / 100):
                return (float(second),)
    return (1_000.0,)


def _adapted(trial: Trial) -> Figures:
    """The guide's 400 units over four partitions that want 50, 50, 50 and 150."""
    table = _table(trial, Opening(read=0, write=400, stored_bytes=31e9), adapts=True)
    parts = list(table.partitions)
    throttled = [0] * 40
    for second in range(40 * 60):
        for step in range(10):
            now = second + step / 10
            for part in (*parts, parts[-1], parts[-1]):
                throttled[second // 60] += not table.take(part, 5.0, now, write=True)
        table.advance(second + 1.0)
    first, *_, last = (minute for minute, refused in enumerate(throttled) if refused)
    return float(last - first + 1), float(throttled[-1])


CASES: Final = (
    *(
        Case(
            number="DG",
            given=f"the rule for a new table of {read:,} RCU and {write:,} WCU",
            source=_GUIDE,
            run=partial(_rule, read=read, write=write),
            expected=(
                Expected.exactly("partitions", count),
                Expected.exactly("RCU each", read / count),
                Expected.exactly("WCU each", write / count),
            ),
        )
        for read, write, count in ((1_500, 500, 1), (2_500, 1_000, 2), (3_000, 1_000, 2))
    ),
    Case(
        number="DG",
        given="10,000 RCU and 5,000 WCU divided equally over 10, 20 and 5 partitions",
        source=_GUIDE,
        run=_divided,
        expected=tuple(
            Expected.exactly(f"{kind} each of {count}", rate)
            for count, *rates in ((10, 1_000, 500), (20, 500, 250), (5, 2_000, 1_000))
            for kind, rate in zip(("RCU", "WCU"), rates, strict=True)
        ),
    ),
    Case(
        number="DG",
        given="bursting: 150 RCU idle for 5 minutes, then 200 RCU/s",
        source=_GUIDE,
        run=_burst,
        expected=(Expected.near("seconds without throttling", 900, 0.01),),
    ),
    Case(
        number="15",
        given="adaptive capacity of 2018: 400 WCU over 4 partitions, loads 50, 50, 50, 150",
        source=_GUIDE,
        run=_adapted,
        expected=(
            Expected("minutes of throttling", "5 to 30", "as published", 5, 30),
            Expected.exactly("throttled in the last minute", 0),
        ),
    ),
    Case(
        number="17",
        given="3,200 WCU, raised to 3,600, raised to 6,000",
        source=_PAPER,
        run=_provisioned,
        expected=tuple(
            Expected.exactly(f"{what} of {write:,}", figure)
            for write, count, each in ((3_200, 4, 800), (3_600, 4, 900), (6_000, 8, 750))
            for what, figure in (
                ("partitions", count),
                ("least WCU a partition", each),
                ("greatest", each),
            )
        ),
    ),
)
