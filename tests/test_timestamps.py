from datetime import UTC, datetime, timedelta, timezone

import pytest

from spillway.keys import TIME_WIDTH
from spillway.timestamps import format_epoch, format_time, parse_time, to_datetime, to_epoch


@pytest.mark.parametrize(
    ("text", "stored"),
    [
        ("2001-01-01T00:01:00Z", "2001-01-01T00:01:00.000000Z"),
        ("2001-01-01t00:01:00z", "2001-01-01T00:01:00.000000Z"),
        ("2001-01-01 00:01:00+00:00", "2001-01-01T00:01:00.000000Z"),
        ("2001-01-01T00:01:00.5Z", "2001-01-01T00:01:00.500000Z"),
        ("2001-01-01T00:01:00.000001Z", "2001-01-01T00:01:00.000001Z"),
        ("2001-01-01T00:01:00+05:30", "2000-12-31T18:31:00.000000Z"),
        ("2001-01-01T00:01:00-00:00", "2001-01-01T00:01:00.000000Z"),
        ("0001-01-01T00:00:00Z", "0001-01-01T00:00:00.000000Z"),
        ("9999-12-31T23:59:59.999999Z", "9999-12-31T23:59:59.999999Z"),
    ],
)
def test_rfc_3339_times_are_stored_in_utc_with_microseconds(text: str, stored: str) -> None:
    assert format_time(parse_time(text)) == stored
    assert len(stored) == TIME_WIDTH


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("2001-01-01T00:01:00", "with zone"),
        ("2001-01-01", "RFC 3339"),
        ("yesterday", "RFC 3339"),
        ("", "RFC 3339"),
        ("978307260", "RFC 3339"),
        ("10000-01-01T00:00:00Z", "RFC 3339"),
        ("2001-01-01T00:01Z", "RFC 3339"),
        ("2001-01-01T00:01:00Z ", "RFC 3339"),
        ("\uff12001-01-01T00:01:00Z", "RFC 3339"),
        ("0000-01-01T00:00:00Z", "is not a date and time"),
        ("2001-02-29T00:00:00Z", "is not a date and time"),
        ("2001-01-01T24:01:00Z", "is not a date and time"),
        ("2001-01-01T00:00:60Z", "is not a date and time"),
        ("2001-01-01T00:00:00+24:00", "is not a date and time"),
        ("0001-01-01T00:00:00+00:01", "years 1 to 9999"),
        ("9999-12-31T23:59:59-00:01", "years 1 to 9999"),
        ("2001-01-01T00:01:00.0000001Z", "microseconds"),
    ],
)
def test_what_is_wrong_with_a_time_is_said(text: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        parse_time(text)


def test_aware_times_of_any_zone_are_stored_in_utc() -> None:
    tokyo = timezone(timedelta(hours=9))
    assert format_time(datetime(2001, 1, 1, 9, tzinfo=tokyo)) == "2001-01-01T00:00:00.000000Z"


def test_naive_times_are_refused() -> None:
    with pytest.raises(ValueError, match="time zone"):
        format_time(datetime(2001, 1, 1))  # noqa: DTZ001


def test_epoch_seconds_and_stored_times_are_the_same_instants() -> None:
    assert format_epoch(978_307_260.25) == "2001-01-01T00:01:00.250000Z"
    assert to_epoch("2001-01-01T00:01:00.250000Z") == 978_307_260.25
    assert to_epoch(format_epoch(-1.5)) == -1.5


@pytest.mark.parametrize(
    ("seconds", "held"),
    [
        (1e18, "9999-12-31T23:59:59.999999Z"),
        (float("inf"), "9999-12-31T23:59:59.999999Z"),
        (-1e18, "0001-01-01T00:00:00.000000Z"),
        (float("-inf"), "0001-01-01T00:00:00.000000Z"),
    ],
)
def test_epoch_seconds_beyond_the_calendar_are_held_at_its_ends(seconds: float, held: str) -> None:
    assert format_epoch(seconds) == held


def test_stored_times_come_back_aware() -> None:
    assert to_datetime("2001-01-01T00:01:00.000001Z") == datetime(
        2001, 1, 1, 0, 1, 0, 1, tzinfo=UTC
    )
