"""A workload that both modes of the heat model can run: its items one by one, and its rates."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import accumulate
from random import Random
from typing import Any, Final

from dynamoheat import IndexSettings, Key, ModelParameters, ProvisionedThroughput, TableSettings
from dynamoheat.aggregated import Entries, Keys, Reads, Sorts, Traffic, Writes
from dynamoheat.units import EVENTUAL

__all__ = ["INDEX", "TABLE", "Item", "ModeStream", "ModeWorkload", "table"]

TABLE: Final = "events"
INDEX: Final = "by-kind"

Item = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class ModeStream:
    """Items a second: shares by key, or a new key each time where there are none.

    Writes of one unit an item, or eventually consistent reads of half a unit.
    """

    rate: Callable[[float], float]
    keys: Mapping[str, float] | None = None
    sorts: Sorts = Sorts.SPREAD
    kinds: Mapping[str, float] | None = None  # keys in the index; none: no entry
    reads: bool = False

    def traffic(self, *, retried: bool) -> Traffic:
        """Return what the aggregated mode is offered."""
        keys = Keys.everywhere() if self.keys is None else Keys.of(self.keys, self.sorts)
        if self.reads:
            return Reads(TABLE, keys, consistency=EVENTUAL, retried=retried)
        indexes = {} if self.kinds is None else {INDEX: Entries(Keys.of(self.kinds))}
        return Writes(TABLE, keys, indexes, retried=retried)

    def items(self, random: Random) -> Iterator[Item]:
        """Yield what the event mode is offered, each drawn by itself."""
        keys, kinds = _drawn(self.keys, random), _drawn(self.kinds, random)
        number = 0
        while True:
            number += 1
            item = {"pk": {"S": next(keys)}, "sk": {"S": self._sort_key(number, random)}}
            if self.kinds is not None:
                item["kind"] = {"S": next(kinds)}
            yield item

    def _sort_key(self, number: int, random: Random) -> str:
        if self.sorts is Sorts.ONE:
            return "one"
        return f"{number:012}" if self.sorts is Sorts.GROWING else f"{random.uniform(0, 1):.12f}"


@dataclass(frozen=True, kw_only=True)
class ModeWorkload:
    """A table and what is asked of it."""

    name: str
    streams: tuple[ModeStream, ...]
    settings: TableSettings
    parameters: ModelParameters
    seconds: int
    retried: bool = False


def table(
    *, indexed: bool = False, write: float | None = None, **throughput: float
) -> TableSettings:
    """Return a table, with a global index or without, provisioned where `write` is given."""
    return TableSettings(
        name=TABLE,
        key=Key("pk", "sk"),
        provisioned=write is not None,
        throughput=ProvisionedThroughput(
            provisioned_write=write, provisioned_read=write and 1.0, **throughput
        ),
        indexes=(IndexSettings(name=INDEX, key=Key("kind", "sk")),) if indexed else (),
    )


def _drawn(shares: Mapping[str, float] | None, random: Random) -> Iterator[str]:
    if shares is None:
        while True:
            yield f"{random.getrandbits(64):x}"
    names, weights = list(shares), list(accumulate(shares.values()))
    while True:
        yield from random.choices(names, cum_weights=weights, k=1_000)
