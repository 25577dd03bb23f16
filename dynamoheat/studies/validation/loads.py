"""Traffic in virtual time, in published units: open loads at a rate, and clients that wait for answers."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final

from dynamoheat.items import Item
from dynamoheat.model import Heat
from dynamoheat.reasons import Throttle
from dynamoheat.studies.validation.trial import TABLE, Trial

__all__ = ["Clients", "LoadFlow", "clients", "gets", "item", "offered", "put", "puts", "queries"]

Send = Callable[[int, float], float]  # how many, at which time; returns the units that got through

_STEPS: Final = 20  # a second of the model's
_BATCH: Final = 25


@dataclass(frozen=True, slots=True)
class LoadFlow:
    """What went through in a slot of time, and what was refused, in units (or attempts) a second."""

    accepted: float
    refused: float


def item(partition_key: str, sort_key: str = "s") -> Item:
    """Return an item of one unit."""
    return {"pk": {"S": partition_key}, "sk": {"S": sort_key}}


def puts(heat: Heat, items: Iterator[Item]) -> Send:
    """Return a sender of writes, each its own item."""

    def send(count: int, now: float) -> float:
        return float(put(heat, [next(items) for _ in range(count)], now).count(None))

    return send


def gets(heat: Heat, keys: Iterator[Item], *, consistent: bool) -> Send:
    """Return a sender of reads in batches of 25."""

    def send(count: int, now: float) -> float:
        units = 0.0
        for done in range(0, count, _BATCH):
            wanted = [next(keys) for _ in range(min(_BATCH, count - done))]
            request = {"RequestItems": {TABLE: {"Keys": wanted, "ConsistentRead": consistent}}}
            units += heat.admit("BatchGetItem", request, now).units
        return units

    return send


def queries(heat: Heat, requests: Iterator[dict[str, Any]]) -> Send:
    """Return a sender of queries."""

    def send(count: int, now: float) -> float:
        return sum(heat.admit("Query", next(requests), now).units for _ in range(count))

    return send


def offered(  # noqa: PLR0913  # one load's whole description
    trial: Trial,
    send: Send,
    rate: Callable[[float], float] | float,
    seconds: float,
    *,
    start: float = 0.0,
    slot: float = 1.0,
) -> list[float]:
    """Offer requests at a rate (a second, or a function of the time since `start`).

    Returns the units that got through, a second, slot by slot. Nothing is sent twice.
    """
    slots = []
    credit = 0.0
    steps = max(1, round(_STEPS * slot / trial.time))
    length = slot / steps
    for first in range(round(seconds / slot)):
        units = 0.0
        for step in range(steps):
            since = first * slot + (step + 1) * length
            wanted = rate(since) if callable(rate) else rate
            credit += wanted * trial.limits * length / trial.time
            count = int(credit + 1e-9)
            credit -= count
            if count:
                units += send(count, (start + since) / trial.time)
        slots.append(units * trial.time / trial.limits / slot)
    return slots


@dataclass(frozen=True, slots=True, kw_only=True)
class Clients:
    """Threads that each write an item, wait for the answer, and try a throttled one again."""

    threads: int
    latency: float
    max_per_second: float = 0.0  # what their machine manages; 0: no bound


def clients(  # noqa: PLR0913  # one load's whole description
    trial: Trial,
    heat: Heat,
    items: Iterator[Item],
    who: Clients,
    seconds: float,
    *,
    start: float = 0.0,
    slot: float = 60.0,
) -> list[LoadFlow]:
    """Let clients write for a while and return what they got through, slot by slot.

    Threads and rates are scaled with the limits, never their latency.
    """
    pool = _Pool(heat, items, who, trial.limits, start / trial.time)
    return [
        pool.until((start + end * slot) / trial.time) for end in range(1, round(seconds / slot) + 1)
    ]


class _Pool:
    """The items that clients are at: all are sent at once, a latency apart; refused ones stay."""

    def __init__(
        self, heat: Heat, new: Iterator[Item], who: Clients, limits: float, start: float
    ) -> None:
        threads = max(1, round(who.threads * limits))
        self._heat = heat
        self._new = new
        self._limits = limits
        self._step = who.latency * threads / (who.threads * limits)  # makes up for the rounding
        self._allowed = who.max_per_second * limits * self._step or float(threads)
        self._items = [next(new) for _ in range(threads)]
        self._credit = 0.0
        self._now = start

    def until(self, end: float) -> LoadFlow:
        """Go on until a time of the model's and return the rates meanwhile."""
        began = self._now
        accepted = refused = 0
        while self._now < end:
            self._now += self._step
            passed, stayed = self._round()
            accepted += passed
            refused += stayed
        scale = (self._now - began) * self._limits
        return LoadFlow(accepted / scale, refused / scale)

    def _round(self) -> tuple[int, int]:
        self._credit = min(self._credit + self._allowed, float(len(self._items)))
        count = int(self._credit)
        if not count:
            return 0, 0
        self._credit -= count
        sent, rest = self._items[:count], self._items[count:]
        verdicts = put(self._heat, sent, self._now)
        again = [one for one, no in zip(sent, verdicts, strict=True) if no is not None]
        self._items = rest + again + [next(self._new) for _ in range(count - len(again))]
        return count - len(again), len(again)


def put(heat: Heat, items: list[Item], now: float) -> list[Throttle | None]:
    """Write items at once and return a verdict each; None: it got through."""
    request = {"RequestItems": {TABLE: [{"PutRequest": {"Item": one}} for one in items]}}
    return heat.admit("BatchWriteItem", request, now).verdicts
