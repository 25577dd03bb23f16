"""How splits for heat raise what hot keys take, over tens of minutes."""

from collections.abc import Iterable, Iterator
from random import Random
from typing import Final, TypeVar
from uuid import UUID

from dynamoheat.items import Item
from dynamoheat.partitions import HASHES, position
from dynamoheat.studies.validation.case import Case, Expected, Figures
from dynamoheat.studies.validation.loads import (
    Clients,
    LoadFlow,
    clients,
    gets,
    item,
    offered,
    puts,
)
from dynamoheat.studies.validation.trial import TABLE, Trial, table

__all__ = ["CASES"]

T = TypeVar("T")

_LETTERS: Final = "0123456789abcdefghijklmnopqrstuvwxyz"
_POPULATING: Final = 600.0
_RESTING: Final = 600.0  # until the reads start: nobody says, but a split under way has ended
_READING: Final = 1_200.0
_MINUTE: Final = 60.0
_HOUR: Final = 3_600.0
_PARTS: Final = 32  # of a key, each written as often
_KEYS_A_PARTITION: Final = (
    3,
    3,
    2,
    2,
)  # as "first capped at 3000+" implies: 3 keys on one partition
_LESS: Final = Clients(threads=128, latency=0.0063)  # at most 20,300 a second
_MORE: Final = Clients(threads=256, latency=0.0063, max_per_second=23_000)


def _spread_in_one_key(random: Random) -> Iterator[Item]:
    while True:
        yield item("one", f"{random.choice(_LETTERS)}#{UUID(int=random.getrandbits(128))}")


def _read_after_populating(trial: Trial) -> Figures:
    heat = trial.model(table())
    random = trial.random()
    populated = random.uniform(0, _MINUTE)  # how the clock falls is chance
    offered(
        trial, puts(heat, _spread_in_one_key(random)), 900, _POPULATING, start=populated, slot=10
    )
    reading = populated + _POPULATING + _RESTING
    heat.advance(reading / trial.time)
    send = gets(heat, _spread_in_one_key(random), consistent=True)
    units = offered(trial, send, 9_900, _READING, start=reading, slot=30)
    plateau = sum(units[2:8]) / 6
    risen = next((at for at, rate in enumerate(units) if rate >= 0.95 * 9_000), len(units))
    return plateau, risen / 2, sum(units[-4:]) / 4


def _placed(random: Random) -> list[str]:
    """Return ten keys of which a new table's four partitions hold three, three, two and two."""
    places = random.sample(_KEYS_A_PARTITION, len(_KEYS_A_PARTITION))
    keys: list[str] = []
    while sum(places):
        key = f"key{random.random()}"
        quarter = position(key)[0] * len(places) // HASHES
        if places[quarter]:
            places[quarter] -= 1
            keys.append(key)
    return keys


def _dealt(random: Random, choices: Iterable[T]) -> Iterator[T]:
    """Yield choices at random, but each as often as the others.

    At the published rate chance evens out within a minute; scaled down it would not.
    """
    deck = list(choices)
    while True:
        random.shuffle(deck)
        yield from tuple(deck)


def _spread_over(random: Random, keys: list[str]) -> Iterator[Item]:
    """Yield items of keys at random, with sort keys at random from 31 bits."""
    parts = {key: _dealt(random, range(_PARTS)) for key in keys}
    for key in _dealt(random, keys):
        sort_key = (next(parts[key]) + random.random()) / _PARTS
        yield {"pk": {"S": key}, "sk": {"N": str(int(sort_key * (1 << 31)))}}


def _ten_keys(trial: Trial) -> Figures:
    heat = trial.model(table())
    random = trial.random()
    items = _spread_over(random, _placed(random))
    first = clients(trial, heat, items, _LESS, 65 * _MINUTE)
    partitions = float(len(heat.resource(TABLE).partitions))
    second = clients(trial, heat, items, _MORE, _HOUR, start=65 * _MINUTE)
    refused = sum(flow.refused for flow in second[-30:]) / 23_000 / 30
    return (
        _mean(first[1:9]),
        _minutes_near(first, 6_000),
        _minutes_near(first, 12_000),
        _mean(first[-5:]),
        partitions,
        _mean(second[-30:]),
        refused * 100,
    )


def _mean(flows: list[LoadFlow]) -> float:
    return sum(flow.accepted for flow in flows) / len(flows)


def _minutes_near(flows: list[LoadFlow], rate: float) -> float:
    return float(sum(abs(flow.accepted - rate) <= 0.2 * rate for flow in flows))


CASES: Final = (
    Case(
        number="8",
        given="on demand, one key, random sort keys; 900 writes/s for 10 min, then 9,900 strong reads/s",
        source="andrestone/dynamodb-load-test (2020); the author saw the rise after about 8 min",
        run=_read_after_populating,
        expected=(
            Expected.near("read units/s at first", 6_000, 0.05),
            Expected("minutes until 9,000 less 5 %", "4 to 16", "4 to 16", 4, 16),
            Expected(
                "read units/s after 18 min", "9,000 to 9,900", "±5 %", 0.95 * 9_000, 1.05 * 9_900
            ),
        ),
        seeds=20,
        limits=0.02,
        quick=0.01,
    ),
    Case(
        number="10",
        given="new on-demand table, 10 keys, random sort keys, 128 threads that write for about an hour,"
        " then 256",
        source="qyjohn/AWS_Tutorials, ForcePartitionSplit (2020)",
        run=_ten_keys,
        expected=(
            Expected.near("writes/s, minutes 1 to 9", 3_000, 0.2, "3000+"),
            Expected("minutes within 20 % of 6,000", "a plateau", "5 or more", 5),
            Expected("minutes within 20 % of 12,000", "a plateau", "5 or more", 5),
            Expected.near("writes/s after an hour", 20_000, 0.2, "20000+"),
            Expected.noted("partitions after an hour", "56"),
            Expected.near("writes/s with 256 threads", 23_000, 0.2),
            Expected("% throttled of those", "clean", "0.1 %", 0, 0.1),
        ),
        seeds=10,
        limits=0.1,
        time=20,
    ),
)
