import pytest

from spillway.dynamodb.port import ThrottledError
from spillway.scaling.usage import WINDOW, UsageReader, UsageSample, add_request
from tests.support.atomic_table import AtomicTables
from tests.support.faults import throttled_call

START = 1_780_315_200


def _tables(windows: int) -> AtomicTables:
    """Return a usage table with two samples in each of some windows of two series."""
    tables = AtomicTables()
    for n in range(windows):
        for series in ("ORD", "another"):
            for second, units in ((0, 5.5), (9, 2.0)):
                sample = UsageSample(units, 1, 3, 0.25)
                now = START + n * WINDOW + second
                tables("UpdateItem", add_request("usage", series, now, sample))
    return tables


def test_windows_come_back_in_order_over_all_pages_with_their_sums() -> None:
    tables = _tables(17)
    found = UsageReader(tables, "usage").windows("ORD", START, START + 1_000)
    assert [each.start for each in found] == [START + n * WINDOW for n in range(17)]
    assert {each.usage for each in found} == {UsageSample(7.5, 2, 6, 0.5)}
    assert tables.counts["Query"] == 4, "pages of five"


@pytest.mark.parametrize(
    ("since", "until", "windows"),
    [
        (0, 170, 17), (0, 161, 17), (0, 160, 16), (0.5, 160, 15), (10, 20, 1), (10, 10.1, 1),
        (10.1, 20, 0), (10, 10, 0), (20, 10, 0), (10.2, 10.8, 0),
    ],
)  # fmt: skip
def test_only_windows_that_began_in_the_range_come_back(
    since: float, until: float, windows: int
) -> None:
    recorded = UsageReader(_tables(17), "usage")
    assert len(recorded.windows("ORD", START + since, START + until)) == windows


def test_a_series_without_usage_has_no_windows() -> None:
    assert UsageReader(_tables(1), "usage").windows("unknown", 0, 2 * START) == []


def test_a_throttled_read_is_raised() -> None:
    with pytest.raises(ThrottledError):
        UsageReader(throttled_call, "usage").windows("ORD", 0, 100)
