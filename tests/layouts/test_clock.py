"""What a response's date tells of the clock of the process that asked."""

from typing import Any

import pytest

from spillway.layouts.clock import ClockReading, read_clocks

NOON = 1_780_315_200.0  # 2026-06-01T12:00:00Z
RESPONSE = {"ResponseMetadata": {"HTTPHeaders": {"date": "Mon, 01 Jun 2026 12:00:00 GMT"}}}


@pytest.mark.parametrize(
    ("sent", "received", "offset"),
    [
        (0.2, 0.3, 0),
        (0.99, 1.01, 0),
        (1.5, 1.6, 0.5),  # ahead: sent when the second named was over by half of one
        (-0.1, 0.0, 0),
        (-0.4, -0.25, -0.25),  # behind: received before that second began
        (3_601, 3_602, 3_600),
        (-3_602, -3_600, -3_600),
        (-30, 30, 0),  # a slow reply explains all of it
    ],
)
def test_only_what_no_delay_explains_is_an_offset(
    sent: float, received: float, offset: float
) -> None:
    clocks = read_clocks(RESPONSE, NOON + sent, NOON + received)
    assert (clocks.sent_at, clocks.server_time) == (NOON + sent, NOON + 1)
    assert clocks.offset == pytest.approx(offset)


@pytest.mark.parametrize(
    "response",
    [
        {},
        {"ResponseMetadata": {}},
        {"ResponseMetadata": {"HTTPHeaders": {"x-amzn-requestid": "1"}}},
        {"ResponseMetadata": {"HTTPHeaders": {"date": "yesterday"}}},
    ],
)
def test_a_response_without_a_date_says_nothing(response: dict[str, Any]) -> None:
    assert read_clocks(response, NOON, NOON + 1) == ClockReading(NOON)
