"""A steady pace: turns that are never closer together than an interval."""

import math
from collections.abc import Awaitable, Callable

__all__ = ["Pace"]


class Pace:
    """Gives turns to whoever asks, in order. Turns that were missed are not made up for."""

    def __init__(
        self,
        interval: float,
        clock: Callable[[], float],
        sleep: Callable[[float], Awaitable[None]],
    ) -> None:
        """Take the seconds between turns, and the clock and sleep for them."""
        self._interval = interval
        self._clock = clock
        self._sleep = sleep
        self._next = -math.inf

    async def turn(self) -> None:
        """Wait for the next turn."""
        now = self._clock()
        at = max(now, self._next)
        self._next = at + self._interval
        await self._sleep(at - now)
