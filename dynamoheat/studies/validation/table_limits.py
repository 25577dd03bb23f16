"""What a table takes: provisioned rates with burst and adaptive capacity, on-demand limits."""

from collections import deque
from collections.abc import Iterator
from itertools import count, cycle
from random import Random
from typing import Final
from uuid import UUID

from dynamoheat.items import Item
from dynamoheat.model import Heat
from dynamoheat.studies.validation.case import Case, Expected, Figures
from dynamoheat.studies.validation.loads import gets, item, offered, put, puts
from dynamoheat.studies.validation.trial import TABLE, Trial, table

__all__ = ["CASES"]

_BLOG: Final = "AWS Database Blog, Scaling DynamoDB, part 1 (2023)"
_BURNING_MONK: Final = "theburningmonk.com, on spikes and on-demand tables (2019)"
_GUIDE: Final = "DynamoDB developer guide, burst and adaptive capacity"


def _shuffled_load(trial: Trial) -> Figures:
    heat = trial.model(table(write=10_000, read=10))
    items = [item(f"key{n % 240}", str(n)) for n in range(round(250_000 * trial.limits))]
    trial.random().shuffle(items)
    by_second = _loaded(heat, deque(items), round(550 * trial.limits))
    return float(len(by_second)), max(by_second) / trial.limits


def _loaded(heat: Heat, waiting: deque[Item], at_once: int) -> list[int]:
    """Write all items, refused ones again, and return how many got through in each second."""
    by_second: list[int] = []
    while waiting and len(by_second) < 600:
        done = 0
        for step in range(20):
            now = len(by_second) + (step + 1) / 20
            sent = [waiting.popleft() for _ in range(min(len(waiting), at_once))]
            verdicts = put(heat, sent, now) if sent else []
            waiting.extend(one for one, no in zip(sent, verdicts, strict=True) if no)
            done += verdicts.count(None)
        by_second.append(done)
    return by_second


def _serial_writer(trial: Trial) -> Figures:
    heat = trial.model(table(write=100, read=100))
    send = puts(heat, (item(f"k{n}") for n in count()))
    offered(trial, send, 117, 17, start=60)  # the table has been there for a minute
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
    send = puts(heat, _uuids(trial.random()))
    passed = offered(trial, send, lambda now: peak * min(now / 60, 1), 80)
    total = heat.resource(TABLE).meter.total
    refused = total.refused_write / (total.refused_write + total.consumed_write)
    return refused * 100, sum(passed[-15:]) / 15


def _switched(trial: Trial) -> Figures:
    heat = trial.model(table(write=40_000, read=10))
    heat.update_table(trial.settings(table()), 0.5)
    passed = offered(trial, puts(heat, _uuids(trial.random())), 40_000, 10, start=1.0)
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
    passed = offered(trial, puts(heat, (item(next(pattern), str(n)) for n in count())), 300, 600)
    return (300.0 * len(passed) - sum(passed),)


def _burst(trial: Trial) -> Figures:
    heat = trial.model(table(write=10, read=150))
    keys = (item(f"k{n}") for n in count())
    passed = offered(trial, gets(heat, keys, consistent=True), 200, 1_000, start=300.0)
    clean = next((at for at, units in enumerate(passed) if units < 199.5), len(passed))
    return float(clean), sum(passed[-60:]) / 60


CASES: Final = (
    Case(
        number="4",
        given="provisioned 10,000 WCU, items shuffled over 240 keys",
        source=_BLOG,
        run=_shuffled_load,
        expected=(
            Expected("seconds to load", "less than a minute", "less", 0, 59.5),
            Expected("greatest writes/s", "more than 6,000", "more", 6_000),
        ),
    ),
    Case(
        number="7",
        given="100 WCU, one serial writer at 117/s for 17 s",
        source="aws-samples/amazon-dynamodb-labs, exercise on capacity",
        run=_serial_writer,
        expected=(Expected.exactly("throttled", 0),),
    ),
    Case(
        number="11",
        given="new on-demand table, uuid keys, ramp in one minute to 3,000, and to 5,000 … 9,000",
        source=_BURNING_MONK,
        run=_ramps,
        expected=(
            Expected("% refused up to 3,000", "clean", "3", 0, 3),
            Expected.near("least writes/s of 5,000 … 9,000", 4_000, 0.03),
            Expected.near("greatest writes/s of them", 4_000, 0.03),
        ),
        limits=0.25,
    ),
    Case(
        number="11",
        given="first provisioned at 40,000 WCU, then switched to on demand, 40,000 writes/s at once",
        source=_BURNING_MONK,
        run=_switched,
        expected=(Expected.near("writes/s", 40_000, 0.03),),
    ),
    Case(
        number="15",
        given="400 WCU over 4 partitions, loads of 50, 50, 50 and 150 for ten minutes",
        source=_GUIDE,
        run=_uneven,
        expected=(Expected.exactly("throttled", 0),),
    ),
    Case(
        number="DG",
        given="150 RCU, idle for 5 min, then 200 reads/s",
        source=_GUIDE,
        run=_burst,
        expected=(
            Expected.near("seconds without throttling", 900, 0.01),
            Expected.near("reads/s from then on", 150, 0.02),
        ),
    ),
)
