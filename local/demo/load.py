"""Loads batches of events, a few requests at once."""

from collections.abc import Awaitable, Callable, Iterable, Sequence

from local.demo.client import Client, ClientEvent
from local.demo.errors import DemoError
from local.demo.workers import share

__all__ = ["Tell", "load"]

Tell = Callable[[int], None]
"""Is told how many more events are done."""


async def _no_wait() -> None:
    """Let the next request go at once."""


async def load(
    client: Client,
    batches: Iterable[Sequence[ClientEvent]],
    *,
    at_once: int,
    stored: Tell,
    turn: Callable[[], Awaitable[None]] = _no_wait,
) -> None:
    """Write all batches, `at_once` requests at a time; only these are in memory. Each waits for its turn.

    Raises:
        DemoError: An event was refused, or not stored for longer than the client's patience.
        ApiError: The API does not take a request.
    """

    async def write(batch: Sequence[ClientEvent]) -> None:
        await turn()
        refused = await client.write(batch)
        if refused:
            first = refused[0]
            raise DemoError(
                f"{len(refused):,} of {len(batch):,} events of a request were not stored, the first:"
                f" {first.event} because {first.code}: {first.message}"
            )
        stored(len(batch))

    await share(batches, write, workers=at_once)
