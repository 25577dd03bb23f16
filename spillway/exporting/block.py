"""A block of shards, walked through in turns: each turn a page of every shard that needs one, in order of time."""

from collections.abc import Callable
from operator import itemgetter

from spillway.exporting.lane import Lane
from spillway.reading.stream import Record

__all__ = ["Block"]

_sort_key = itemgetter(0)


class Block:
    """Some shards, from the same point on.

    What all of them have been fetched past, the *frontier*, is given out; what lies behind it waits for the next turn, at
    most a page a shard. A shard that holds nothing before some time is first asked when the frontier comes to it.

    Attributes:
        upto: everything up to this sort key has been given out; None where nothing is left.
    """

    def __init__(self, lanes: list[Lane]) -> None:
        self._lanes = lanes
        self.upto = self._frontier()

    @property
    def live(self) -> int:
        """Shards of which more is to come and has been asked for."""
        return sum(lane.opened and not lane.exhausted for lane in self._lanes)

    def due(self) -> list[Lane]:
        """Return the shards that must be fetched before anything more can be given out."""
        upto = self.upto
        return [
            lane for lane in self._lanes if lane.is_dry and (upto is None or lane.reached <= upto)
        ]

    def turn(self, fetch: Callable[[list[Lane]], None]) -> list[Record]:
        """Fetch what is due, and return what lies up to the new frontier, in order; copies of an event are adjacent."""
        fetch(self.due())
        self.upto = self._frontier()
        run: list[Record] = []
        for lane in self._lanes:
            run += lane.take(self.upto)
        run.sort(key=_sort_key)  # merges the runs
        self._lanes = [lane for lane in self._lanes if lane.buffer or not lane.exhausted]
        return run

    def _frontier(self) -> str | None:
        return min((lane.reached for lane in self._lanes if not lane.exhausted), default=None)
