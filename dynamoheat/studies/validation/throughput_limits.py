"""Published measurements of throughput limits: new tables, single partitions, whole tables."""

from collections import deque
from collections.abc import Iterator
from functools import partial
from itertools import count, cycle
from random import Random
from typing import Any, Final
from uuid import UUID

from dynamoheat.model import Heat
from dynamoheat.sizes import Item
from dynamoheat.studies.validation.case import (
    TABLE,
    ExpectedFigure,
    Figures,
    PublishedCase,
    Trial,
    table,
)
from dynamoheat.studies.validation.loads import (
    get_sender,
    item,
    offer_load,
    put_sender,
    query_sender,
    write_items,
)

__all__ = ["CASES", "address_queries"]

_QUERY_MINUTES: Final = 18  # long enough for the first split


def _ascending(trial: Trial) -> Figures:
    heat = trial.model(table())
    items = (item("one", f"{n:09}") for n in count())
    passed = offer_load(trial, put_sender(heat, items), 1_400, 3_600)
    settled = passed[2:]
    return sum(settled) / len(settled), float(len(heat.resource(TABLE).splits))


def address_queries(random: Random) -> Iterator[dict[str, Any]]:
    """The last address range that begins at or before a random address."""
    while True:
        yield {
            "TableName": TABLE,
            "KeyConditionExpression": "pk = :p AND sk <= :s",
            "ExpressionAttributeValues": {
                ":p": {"S": "one"},
                ":s": {"S": f"{random.random():.9f}"},
            },
            "ScanIndexForward": False,
            "Limit": 1,
        }


def _saturated_by_queries(trial: Trial) -> Figures:
    heat = trial.model(table())
    send = query_sender(heat, address_queries(trial.random()))
    units = offer_load(trial, send, 12_000, _QUERY_MINUTES * 60)
    splits = heat.resource(TABLE).splits
    first = splits[0].at * trial.time_scale / 60 if splits else float(_QUERY_MINUTES)
    steady = sum(units[2:600]) / 598
    return steady * 2, steady, first


_PARTITION_CASES: Final = (
    PublishedCase(
        number="1",
        scenario="new on-demand table, one partition key, ascending sort keys, saturating, an hour",
        source="AWS Database Blog, Scaling DynamoDB, part 1 (2023)",
        run=_ascending,
        expected=(
            ExpectedFigure.near("writes/s", 1_000, 0.02),
            ExpectedFigure.exactly("splits", 0),
        ),
        limit_scale=0.05,
        quick_limits=0.01,
    ),
    PublishedCase(
        number="5",
        scenario="on demand, one key, eventually consistent queries, saturating, ten minutes",
        source="AWS Database Blog, Scaling DynamoDB, part 2 (2023)",
        run=_saturated_by_queries,
        expected=(
            ExpectedFigure.near("reads/s", 9_000, 0.03),
            ExpectedFigure.near("read units/s", 4_500, 0.03),
            ExpectedFigure("minute of the first split", "none within 10", "none", 10),
        ),
        seeds=10,
        limit_scale=0.02,
        quick_limits=0.01,
    ),
)

_BLOG: Final = "AWS Database Blog, Scaling DynamoDB, part 1 (2023)"
_BURNING_MONK: Final = "theburningmonk.com, on spikes and on-demand tables (2019)"
_GUIDE: Final = "DynamoDB developer guide, burst and adaptive capacity"


def _shuffled_load(trial: Trial) -> Figures:
    heat = trial.model(table(write=10_000, read=10))
    items = [item(f"key{n % 240}", str(n)) for n in range(round(250_000 * trial.limit_scale))]
    trial.random().shuffle(items)
    by_second = _loaded(heat, deque(items), round(550 * trial.limit_scale))
    return float(len(by_second)), max(by_second) / trial.limit_scale


def _loaded(heat: Heat, waiting: deque[Item], at_once: int) -> list[int]:
    """Write all items, refused ones again, and return how many got through in each second."""
    by_second: list[int] = []
    while waiting and len(by_second) < 600:
        done = 0
        for step in range(20):
            now = len(by_second) + (step + 1) / 20
            sent = [waiting.popleft() for _ in range(min(len(waiting), at_once))]
            verdicts = write_items(heat, sent, now) if sent else []
            waiting.extend(one for one, no in zip(sent, verdicts, strict=True) if no)
            done += verdicts.count(None)
        by_second.append(done)
    return by_second


def _serial_writer(trial: Trial) -> Figures:
    heat = trial.model(table(write=100, read=100))
    send = put_sender(heat, (item(f"k{n}") for n in count()))
    offer_load(trial, send, 117, 17, start=60)  # the table has been there for a minute
    return (heat.resource(TABLE).meter.total.refused_write,)


def _uuids(random: Random) -> Iterator[Item]:
    while True:
        yield item(str(UUID(int=random.getrandbits(128))))


def _ramps(trial: Trial) -> Figures:
    refused, _ = _ramp(trial, 3_000)
    capped = [_ramp(trial, peak)[1] for peak in (5_000, 6_000, 7_000, 8_000, 9_000)]
    return refused, min(capped), max(capped)


def _ramp(trial: Trial, peak: float) -> tuple[float, float]:
    """Return the share that was refused, in %, and what got through a second at the top."""
    heat = trial.model(table())
    send = put_sender(heat, _uuids(trial.random()))
    passed = offer_load(trial, send, lambda now: peak * min(now / 60, 1), 80)
    total = heat.resource(TABLE).meter.total
    refused = total.refused_write / (total.refused_write + total.consumed_write)
    return refused * 100, sum(passed[-15:]) / 15


def _switched(trial: Trial) -> Figures:
    heat = trial.model(table(write=40_000, read=10))
    heat.update_table(trial.settings(table()), 0.5)
    passed = offer_load(trial, put_sender(heat, _uuids(trial.random())), 40_000, 10, start=1.0)
    return (sum(passed) / len(passed),)


def _uneven(trial: Trial) -> Figures:
    heat = trial.model(table(write=4_000, read=1))  # five partitions, of which four get traffic
    heat.update_table(trial.settings(table(write=400, read=1)), 0.0)
    partitions = heat.resource(TABLE).partitions
    keys: dict[int, str] = {}
    for n in range(999):
        keys.setdefault(partitions.find(f"k{n}").number, f"k{n}")
    one, two, three, hot = list(keys.values())[:4]
    pattern = cycle([one, two, three, hot, hot, hot])  # 50, 50, 50, 150
    passed = offer_load(
        trial, put_sender(heat, (item(next(pattern), str(n)) for n in count())), 300, 600
    )
    return (300.0 * len(passed) - sum(passed),)


def _burst(trial: Trial) -> Figures:
    heat = trial.model(table(write=10, read=150))
    keys = (item(f"k{n}") for n in count())
    passed = offer_load(trial, get_sender(heat, keys, consistent=True), 200, 1_000, start=300.0)
    clean = next((at for at, units in enumerate(passed) if units < 199.5), len(passed))
    return float(clean), sum(passed[-60:]) / 60


_TABLE_CASES: Final = (
    PublishedCase(
        number="4",
        scenario="provisioned 10,000 WCU, items shuffled over 240 keys",
        source=_BLOG,
        run=_shuffled_load,
        expected=(
            ExpectedFigure("seconds to load", "less than a minute", "less", 0, 59.5),
            ExpectedFigure("greatest writes/s", "more than 6,000", "more", 6_000),
        ),
    ),
    PublishedCase(
        number="7",
        scenario="100 WCU, one serial writer at 117/s for 17 s",
        source="aws-samples/amazon-dynamodb-labs, exercise on capacity",
        run=_serial_writer,
        expected=(ExpectedFigure.exactly("throttled", 0),),
    ),
    PublishedCase(
        number="11",
        scenario="new on-demand table, uuid keys, ramp in one minute to 3,000, and to"
        " 5,000 … 9,000",
        source=_BURNING_MONK,
        run=_ramps,
        expected=(
            ExpectedFigure("% refused up to 3,000", "clean", "3", 0, 3),
            ExpectedFigure.near("least writes/s of 5,000 … 9,000", 4_000, 0.03),
            ExpectedFigure.near("greatest writes/s of them", 4_000, 0.03),
        ),
        limit_scale=0.25,
    ),
    PublishedCase(
        number="11",
        scenario="first provisioned at 40,000 WCU, then switched to on demand, 40,000 writes/s at"
        " once",
        source=_BURNING_MONK,
        run=_switched,
        expected=(ExpectedFigure.near("writes/s", 40_000, 0.03),),
    ),
    PublishedCase(
        number="15",
        scenario="400 WCU over 4 partitions, loads of 50, 50, 50 and 150 for ten minutes",
        source=_GUIDE,
        run=_uneven,
        expected=(ExpectedFigure.exactly("throttled", 0),),
    ),
    PublishedCase(
        number="DG",
        scenario="150 RCU, idle for 5 min, then 200 reads/s",
        source=_GUIDE,
        run=_burst,
        expected=(
            ExpectedFigure.near("seconds without throttling", 900, 0.01),
            ExpectedFigure.near("reads/s from then on", 150, 0.02),
        ),
    ),
)

_DOCUMENTED: Final = (((1_500, 500), 1), ((2_500, 1_000), 2), ((3_000, 1_000), 2))


def _created(trial: Trial, *, read: float, write: float) -> Figures:
    heat = trial.model(table(write=write, read=read))
    count = len(heat.resource(TABLE).partitions)
    return float(count), read / count, write / count


_NEW_TABLE_CASES: Final = tuple(
    PublishedCase(
        number="DG",
        scenario=f"a new table of {read:,} RCU and {write:,} WCU",
        source="DynamoDB developer guide (2012 to 2017), partitions and throughput",
        run=partial(_created, read=read, write=write),
        expected=(
            ExpectedFigure.exactly("partitions", count),
            ExpectedFigure.exactly("RCU each, divided equally", read / count),
            ExpectedFigure.exactly("WCU each", write / count),
        ),
    )
    for (read, write), count in _DOCUMENTED
)

CASES: Final = (*_NEW_TABLE_CASES, *_PARTITION_CASES, *_TABLE_CASES)
