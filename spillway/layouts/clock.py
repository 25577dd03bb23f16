"""What DynamoDB's clock says of this process's: the `Date` header of its responses, to a second."""

from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from typing import Any, Final, NamedTuple

from spillway.dynamodb.port import RefusedError

__all__ = ["ClockReading", "ClockSkewError", "check_clock", "read_clocks"]

_RESOLUTION: Final = 1.0  # seconds: the header leaves out fractions


class ClockSkewError(RefusedError):
    """This process's clock is too far off for changes of layouts and for writes; nothing was sent.

    Attributes:
        offset: seconds by which the clock is at least ahead of DynamoDB's, negative where behind.
    """

    def __init__(self, series: str, offset: float, clock_error: float) -> None:
        side = "ahead of" if offset > 0 else "behind"
        super().__init__(
            "ClockSkew",
            f"the clock of this process is at least {abs(offset):,.1f} s {side} DynamoDB's, and may"
            f" be off by {clock_error:g} s (Settings.clock_error), so {series!r} was left alone;"
            " synchronise the clock (NTP) and try again",
        )
        self.offset = offset


class ClockReading(NamedTuple):
    """What one response says of the clocks, in epoch seconds.

    Attributes:
        sent_at: this process's clock before the request was sent.
        offset: seconds by which that clock is at least ahead, negative where behind; 0 where it may
            be right.
        server_time: DynamoDB's clock had not passed this when it answered; None where the endpoint
            does not tell.
    """

    sent_at: float
    offset: float = 0.0
    server_time: float | None = None


def read_clocks(response: Mapping[str, Any], sent_at: float, received_at: float) -> ClockReading:
    """Compare this process's clock, before a request and after its response, with its date.

    The date lies between the two, so only what no delay explains counts as an offset. A response
    without a readable `ResponseMetadata.HTTPHeaders.date` says nothing.
    """
    date = response.get("ResponseMetadata", {}).get("HTTPHeaders", {}).get("date")
    try:
        second = parsedate_to_datetime(date).timestamp()
    except (TypeError, ValueError):  # there is none, or it is no date
        return ClockReading(sent_at)
    server_time = second + _RESOLUTION
    if sent_at > server_time:
        return ClockReading(sent_at, sent_at - server_time, server_time)
    return ClockReading(sent_at, min(received_at - second, 0.0), server_time)


def check_clock(series: str, offset: float, clock_error: float) -> None:
    """Raise ClockSkewError where the clock is certainly off by more than `clock_error` seconds."""
    if abs(offset) > clock_error:
        raise ClockSkewError(series, offset, clock_error)
