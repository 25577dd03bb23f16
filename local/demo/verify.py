"""Compare what the API returns with the file: every event once, in order, unchanged."""

from collections.abc import AsyncIterable, Iterable
from itertools import islice

from local.demo.client import Client, ClientEvent
from local.demo.errors import DemoError
from local.demo.flights import Flights
from local.demo.load import ReportProgress, run_concurrently

__all__ = ["MismatchError", "compare", "verify"]


class MismatchError(DemoError):
    """A series differs from the file."""

    def __init__(
        self, name: str, position: int, expected: ClientEvent | None, found: ClientEvent | None
    ) -> None:
        """Take the read's name, the first position that differs, and both events there.

        Positions count from 0. An event is None past an end.
        """
        super().__init__(
            f"{name}: event {position:,} (from 0) differs from the file.\n"
            f"  expected: {expected or 'no further event'}\n"
            f"  found:    {found or 'no further event'}"
        )
        self.position = position
        self.expected = expected
        self.found = found


async def compare(
    name: str,
    expected: Iterable[ClientEvent],
    pages: AsyncIterable[list[ClientEvent]],
    on_equal: ReportProgress,
) -> int:
    """Read all pages, check that they hold the expected events, and return how many.

    `on_equal` receives the size of each page that was equal. One page is in memory at a time.

    Raises:
        MismatchError: An event is missing, superfluous, changed or out of order.
    """
    remaining = iter(expected)
    position = 0
    async for page in pages:
        _compare_page(name, position, list(islice(remaining, len(page))), page)
        position += len(page)
        on_equal(len(page))
    missing = next(remaining, None)
    if missing is not None:
        raise MismatchError(name, position, missing, None)
    return position


def _compare_page(
    name: str, position: int, expected: list[ClientEvent], page: list[ClientEvent]
) -> None:
    if expected == page:
        return
    for offset, found in enumerate(page):
        event = expected[offset] if offset < len(expected) else None
        if event != found:
            raise MismatchError(name, position + offset, event, found)


async def verify(
    client: Client, flights: Flights, *, concurrency: int, on_equal: ReportProgress
) -> int:
    """Compare every origin's whole series with the file, and return how many flights are equal.

    Raises:
        MismatchError: As `compare`.
        ApiError: A read fails.
    """
    counts: list[int] = []

    async def verify_origin(origin: str) -> None:
        expected = (flight.event() for flight in flights.of(origin))
        counts.append(await compare(origin, expected, client.pages(origin), on_equal))

    await run_concurrently(flights.origins(), verify_origin, workers=concurrency)
    return sum(counts)
