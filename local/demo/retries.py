"""When a client tries again: what the server asks for, else full jitter, until its patience ends."""

import asyncio
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

__all__ = ["Pauses", "Retries"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Retries:
    """How long to try, in seconds, and the clock, sleep and randomness for it."""

    patience: float = 60.0
    first: float = 0.1
    longest: float = 5.0
    clock: Callable[[], float] = field(default_factory=lambda: asyncio.get_running_loop().time)
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    random: Callable[[], float] = random.random  # noqa: TID251  the default of an argument

    def start(self) -> "Pauses":
        """Begin a call that may be tried more than once."""
        return Pauses(self)


class Pauses:
    """The pauses between the attempts of one call."""

    def __init__(self, retries: Retries) -> None:
        """Start the clock of the call's patience."""
        self._retries = retries
        self._deadline = retries.clock() + retries.patience
        self._attempts = 0

    async def pause(self, asked: float | None) -> bool:
        """Wait before the next attempt; False, at once, where patience would end first.

        `asked` is what the server asked for. Other clients were asked for the same, so a random part
        is added lest all come back together.
        """
        retries = self._retries
        backoff = min(retries.longest, retries.first * 2**self._attempts)
        delay = (asked or 0.0) + retries.random() * backoff
        self._attempts += 1
        if retries.clock() + delay >= self._deadline:
            return False
        await retries.sleep(delay)
        return True
