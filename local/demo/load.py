"""Loads batches of events, a few requests at once."""

from collections.abc import Callable, Iterable, Sequence

from local.demo.client import Client, Event
from local.demo.errors import DemoError
from local.demo.workers import share

__all__ = ["Tell", "load"]

Tell = Callable[[int], None]
"""Is told how many more events are done."""


async def load(
    client: Client, batches: Iterable[Sequence[Event]], *, at_once: int, stored: Tell
) -> None:
    """Write all batches, `at_once` requests at a time; only these are in memory.

    Raises:
        DemoError: An event was refused, or not stored for longer than the client's patience.
        ApiError: The API does not take a request.
    """

    async def write(batch: Sequence[Event]) -> None:
        refused = await client.write(batch)
        if refused:
            first = refused[0]
            raise DemoError(
                f"{len(refused):,} of {len(batch):,} events of a request were not stored, the first:"
                f" {first.event} because {first.code}: {first.message}"
            )
        stored(len(batch))

    await share(batches, write, workers=at_once)
