"""One workload in either mode, and what it came to."""

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from random import Random
from typing import Any, Final

from benchmarks.modes.workload import TABLE, Item, ModeStream, ModeWorkload
from dynamoheat import Heat, Resource, Split, ThrottleReason
from dynamoheat.aggregated import AggregatedHeat

__all__ = ["Figures", "by_events", "by_rates"]

_BATCHES: Final = 20  # a second and kind

Streams = list[tuple[ModeStream, Iterator[Item]]]


@dataclass(slots=True)
class Figures:
    """What a run came to, in items."""

    accepted: int
    throttled: Counter[ThrottleReason] = field(default_factory=Counter)
    splits: list[Split] = field(default_factory=list)

    @property
    def refused(self) -> int:
        """All that was throttled."""
        return self.throttled.total()


def by_rates(workload: ModeWorkload, *, seed: int, step: float = 1.0) -> Figures:
    """Run a workload in the aggregated mode."""
    heat = AggregatedHeat(workload.parameters, step=step, seed=seed)
    heat.create_table(workload.settings)
    streams = [(stream, stream.traffic(retried=workload.retried)) for stream in workload.streams]
    while heat.now < workload.seconds:
        middle = heat.now + step / 2
        heat.offer(
            {traffic: stream.rate(middle) * traffic.item_units for stream, traffic in streams}
        )
    return _figures(heat.resource, workload)


def by_events(workload: ModeWorkload, *, seed: int, chance: int = 0) -> Figures:
    """Run a workload in the event mode; `chance` draws the items, `seed` is the model's."""
    heat = Heat(workload.parameters, seed=seed)
    heat.create_table(workload.settings, 0.0)
    random = Random(chance)
    streams = {
        kind: [(each, each.items(random)) for each in workload.streams if each.reads is kind]
        for kind in (False, True)
    }
    waiting: dict[bool, list[Item]] = {False: [], True: []}
    window = heat.parameters.heat_window_seconds
    for second in range(workload.seconds):
        if second % window == 0:
            heat.advance(float(second))
        for kind in (False, True):
            sent = waiting[kind] + _wanted(streams[kind], second, random)
            refused: list[Item] = []
            for at, batch in _at_random_times(sent, second, random):
                refused += _send(heat, batch, at, reads=kind)
            waiting[kind] = refused if workload.retried else []
    heat.advance(float(workload.seconds))
    return _figures(heat.resource, workload)


def _figures(find: Callable[..., Resource], workload: ModeWorkload) -> Figures:
    indexes = (index.name for index in workload.settings.indexes)
    resources = [find(TABLE), *(find(TABLE, index) for index in indexes)]
    total = resources[0].meter.total
    figures = Figures(total.writes + total.reads)
    for resource in resources:
        figures.throttled.update(resource.meter.total.throttled)
        figures.splits.extend(resource.splits)
    return figures


def _wanted(streams: Streams, second: int, random: Random) -> list[Item]:
    """Return a second's new items, a fraction of one with that chance."""
    return [
        next(items)
        for stream, items in streams
        for _ in range(int(stream.rate(second + 0.5) + random.uniform(0, 1)))
    ]


def _at_random_times(
    items: list[Item], second: int, random: Random
) -> Iterator[tuple[float, list[Item]]]:
    """Yield a second's items in random order at random moments."""
    random.shuffle(items)
    batches: list[list[Item]] = [[] for _ in range(_BATCHES)]
    for item in items:
        batches[int(random.uniform(0, _BATCHES))].append(item)
    for number, batch in enumerate(batches):
        if batch:
            yield second + (number + 0.5) / _BATCHES, batch


def _send(heat: Heat, items: list[Item], now: float, *, reads: bool) -> list[Item]:
    """Send a batch and return what was throttled."""
    asked: Any = {"Keys": items} if reads else [{"PutRequest": {"Item": item}} for item in items]
    operation = "BatchGetItem" if reads else "BatchWriteItem"
    verdicts = heat.admit(operation, {"RequestItems": {TABLE: asked}}, now).verdicts
    return [item for item, verdict in zip(items, verdicts, strict=True) if verdict]
