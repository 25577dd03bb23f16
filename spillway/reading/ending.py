"""What a read says that ends before its range does."""

from typing import Final

from spillway.backoff import DeadlinePassedError
from spillway.errors import InvalidInputError
from spillway.reading.leg import Ended, Leg
from spillway.reading.page import MAX_MISSING, Missing
from spillway.reading.requests import SourceThrottledError
from spillway.reading.stream import Stream

__all__ = ["missing_from", "raise_for", "reason_of"]

_NOT_SENT: Final = DeadlinePassedError().code


def missing_from(leg: Leg) -> tuple[tuple[Missing, ...], int]:
    """Return up to `MAX_MISSING` partitions that a leg left off, errors first, and how many it did.

    These are the partitions that failed, else the open ones that are not read to their end. Where
    there is none, it is the first of those that were not begun.
    """
    left = leg.failed or [each for each in leg.merge.streams if not each.exhausted]
    closed = leg.merge.closed
    if not left and closed is not None:
        return (Missing(closed.key, closed.bound, None),), 1
    left.sort(key=lambda each: _code(each) is None)
    return tuple(_missing(each) for each in left[:MAX_MISSING]), len(left)


def _missing(stream: Stream) -> Missing:
    return Missing(stream.partition.key, stream.reached, _code(stream))


def _code(stream: Stream) -> str | None:
    """Return the code of the error that a stream ended with, None where nothing was sent."""
    code = None if stream.failure is None else stream.failure.code
    return None if code == _NOT_SENT else code


def reason_of(leg: Leg) -> str:
    """Return why a leg ended before its range: `read_units`, the code of a storage error, or `deadline`."""
    if leg.ended is Ended.UNITS:
        return "read_units"
    codes = (_code(each) for each in leg.failed)
    return next((code for code in codes if code is not None), "deadline")


def raise_for(leg: Leg) -> None:
    """Raise what kept a read from making any progress."""
    for failure in (stream.failure for stream in leg.failed):
        if isinstance(failure, SourceThrottledError):
            raise failure.throttle
        if failure is not None:
            raise failure
    if leg.ended is Ended.UNITS:
        reason = f"must be {leg.least_units:g} at least: one round of requests to all partitions"
        raise InvalidInputError("invalid_query", "max_rcu", reason)
