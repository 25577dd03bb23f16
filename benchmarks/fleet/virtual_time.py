"""Virtual time: greenlets that sleep, woken in the order of their times."""

import heapq
import itertools
from collections.abc import Callable

from greenlet import getcurrent, greenlet

__all__ = ["VirtualTime"]


class VirtualTime:
    """A clock that jumps from one event to the next. Everything runs in one thread."""

    def __init__(self, start: float) -> None:
        self.now = start
        self._queue: list[tuple[float, int, greenlet]] = []
        self._numbers = itertools.count()
        self._hub = getcurrent()

    def at(self, time: float, work: Callable[[], object]) -> None:
        """Begin work at a time."""
        self._push(time, greenlet(work, parent=self._hub))

    def sleep(self, seconds: float) -> None:
        """Let the running work wait; call only from work begun by `at`."""
        self._push(self.now + seconds, getcurrent())
        self._hub.switch()

    def run_until(self, end: float) -> None:
        """Run everything that happens before `end`."""
        while self._queue and self._queue[0][0] < end:
            self.now, _, waiting = heapq.heappop(self._queue)
            waiting.switch()
        self.now = end

    def _push(self, time: float, waiting: greenlet) -> None:
        heapq.heappush(self._queue, (time, next(self._numbers), waiting))
