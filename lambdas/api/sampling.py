"""Which series a request is about, told in one word: what the log can be counted by."""

from collections.abc import Callable, Sequence

from spillway import Event

__all__ = ["sampled_series"]


def sampled_series(events: Sequence[Event], random: Callable[[], float]) -> str | None:
    """Return the series of one event by chance, None where there is no event.

    Counting all of a request's events for that series gives each series its own events on average, at the cost of
    one word a request however many series it writes. `random` gives floats of [0, 1).
    """
    return events[int(random() * len(events))].series if events else None
