"""Compares what the API returns with what the file holds: every event once, in order, as it was sent."""

from collections.abc import AsyncIterable, Iterable
from itertools import islice

from local.demo.client import Client, ClientEvent
from local.demo.errors import DemoError
from local.demo.flights import Flights
from local.demo.load import Tell
from local.demo.workers import share

__all__ = ["MismatchError", "compare", "verify"]


class MismatchError(DemoError):
    """A series does not hold what it should."""

    def __init__(
        self, name: str, position: int, expected: ClientEvent | None, found: ClientEvent | None
    ) -> None:
        """Name the read, the first position that differs (from 0), and both events; None past an end."""
        super().__init__(
            f"{name}: event {position:,} (from 0) is not what the file says.\n"
            f"  expected: {expected or 'no further event'}\n"
            f"  found:    {found or 'no further event'}"
        )
        self.position = position
        self.expected = expected
        self.found = found


async def compare(
    name: str, expected: Iterable[ClientEvent], pages: AsyncIterable[list[ClientEvent]], same: Tell
) -> int:
    """Read pages to their end, check that they hold the expected events, and return how many.

    `same` is told of each page that was right. One page is in memory at a time.

    Raises:
        MismatchError: An event is missing, too many, changed or out of order.
    """
    wanted = iter(expected)
    position = 0
    async for page in pages:
        _compare_page(name, position, list(islice(wanted, len(page))), page)
        position += len(page)
        same(len(page))
    missing = next(wanted, None)
    if missing is not None:
        raise MismatchError(name, position, missing, None)
    return position


def _compare_page(
    name: str, position: int, expected: list[ClientEvent], found: list[ClientEvent]
) -> None:
    if expected == found:
        return
    for offset, event in enumerate(found):
        wanted = expected[offset] if offset < len(expected) else None
        if wanted != event:
            raise MismatchError(name, position + offset, wanted, event)


async def verify(client: Client, flights: Flights, *, at_once: int, same: Tell) -> int:
    """Compare every origin's whole sequence with the file; return how many flights were found right.

    Raises:
        MismatchError: As `compare`.
        ApiError: A read fails.
    """
    counts: list[int] = []

    async def one(origin: str) -> None:
        expected = (flight.event() for flight in flights.of(origin))
        counts.append(await compare(origin, expected, client.pages(origin), same))

    await share(flights.origins(), one, workers=at_once)
    return sum(counts)
