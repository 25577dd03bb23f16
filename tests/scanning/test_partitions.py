from datetime import UTC, datetime, timedelta
from itertools import islice

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spillway.keys import TimeBucket
from spillway.layouts.model import Epoch, Layout
from spillway.scanning.partitions import partitions_of
from spillway.scanning.query import ReadQuery
from spillway.timestamps import format_time
from tests.support.fakes import NOON
from tests.support.layouts import epoch, layout_of
from tests.support.stores import DAY, HOUR
from tests.support.strategies import buckets, orders, ranges
from tests.support.work import counting_calls

MICRO = timedelta(microseconds=1)
SECOND = timedelta(seconds=1)


def _keys(layout: Layout, start: datetime, end: datetime, **query: str) -> list[str]:
    read = ReadQuery.checked(
        "ORD",
        start,
        end,
        order=query.get("order", "asc"),
        sharding_key=query.get("sharding_key"),
        source=query.get("source", "table"),
        consistent=False,
    )
    partitions = list(partitions_of(layout, read, read.source))
    bounds = [partition.bound for partition in partitions]
    assert bounds == sorted(bounds, reverse=read.descending)
    assert all(read.start <= bound <= read.end for bound in bounds)
    return [partition.key for partition in partitions]


def _labels(bucket: str, start: datetime, end: datetime, order: str = "asc") -> list[str]:
    layout = layout_of(epoch(bucket=bucket))
    keys = _keys(layout, start, end, source="index", order=order)
    return [key.removeprefix("ORD#").removesuffix("#0") for key in keys]


def test_a_range_opens_the_shards_of_the_epochs_it_meets() -> None:
    layout = layout_of(
        epoch(1, shards=4, close=NOON - 2 * HOUR),
        epoch(2, shards=16, low=NOON - 2 * HOUR, close=NOON),
        epoch(3, shards=2, low=NOON - HOUR),
    )
    assert len(_keys(layout, NOON - 9 * HOUR, NOON - 8 * HOUR)) == 4
    assert len(_keys(layout, NOON - 9 * HOUR, NOON)) == 16
    assert len(_keys(layout, NOON - HOUR, NOON)) == 16
    assert _keys(layout, NOON + MICRO, NOON + HOUR) == ["ORD#0", "ORD#1"]


def test_a_sharding_key_opens_its_shard_under_each_epoch() -> None:
    grown = layout_of(
        epoch(1, shards=4, close=NOON), epoch(2, shards=16, low=NOON - HOUR), series="ORD"
    )
    inside = _keys(grown, NOON - HOUR, NOON, sharding_key="LGA")
    assert 1 <= len(inside) <= 2
    assert len(_keys(grown, NOON - 9 * HOUR, NOON - 8 * HOUR, sharding_key="LGA")) == 1
    random = layout_of(epoch(shards=5, mode="random"))
    assert len(_keys(random, NOON - HOUR, NOON, sharding_key="LGA")) == 5


@pytest.mark.parametrize(
    ("bucket", "start", "end", "labels"),
    [
        ("hour", NOON, NOON + MICRO, ["2026-06-01T12"]),
        ("hour", NOON - MICRO, NOON, ["2026-06-01T11"]),
        ("hour", NOON - MICRO, NOON + MICRO, ["2026-06-01T11", "2026-06-01T12"]),
        ("hour", NOON - HOUR, NOON, ["2026-06-01T11"]),
        ("hour", NOON - HOUR - MICRO, NOON, ["2026-06-01T10", "2026-06-01T11"]),
        (
            "hour",
            NOON - HOUR - SECOND,
            NOON + MICRO,
            ["2026-06-01T10", "2026-06-01T11", "2026-06-01T12"],
        ),
        ("day", NOON - 13 * HOUR, NOON, ["2026-05-31", "2026-06-01"]),
        ("day", NOON - 12 * HOUR, NOON + 12 * HOUR, ["2026-06-01"]),
        ("minute", NOON - SECOND, NOON + SECOND, ["2026-06-01T11:59", "2026-06-01T12:00"]),
    ],
)
@pytest.mark.parametrize("order", ["asc", "desc"])
def test_the_index_is_read_by_every_bucket_that_the_range_meets_and_no_other(
    bucket: str, start: datetime, end: datetime, labels: list[str], order: str
) -> None:
    expected = labels if order == "asc" else labels[::-1]
    assert _labels(bucket, start, end, order) == expected


@pytest.mark.parametrize("order", ["asc", "desc"])
@pytest.mark.parametrize(
    ("start", "end", "labels"),
    [
        (
            datetime(1, 1, 1, tzinfo=UTC),
            datetime(1, 1, 1, 1, 30, tzinfo=UTC),
            ["0001-01-01T00", "0001-01-01T01"],
        ),
        (
            datetime(9999, 12, 31, 22, 30, tzinfo=UTC),
            datetime.max.replace(tzinfo=UTC),
            ["9999-12-31T22", "9999-12-31T23"],
        ),
    ],
)
def test_the_ends_of_the_calendar_have_buckets_too(
    start: datetime, end: datetime, labels: list[str], order: str
) -> None:
    assert sorted(_labels("hour", start, end, order)) == labels


def test_leap_days_and_month_ends_are_not_skipped() -> None:
    start, end = datetime(2024, 2, 28, 23, tzinfo=UTC), datetime(2024, 3, 1, 1, tzinfo=UTC)
    assert _labels("day", start, end) == ["2024-02-28", "2024-02-29", "2024-03-01"]


def test_a_bucket_has_the_max_index_shards_of_its_epochs() -> None:
    layout = layout_of(
        epoch(1, index_shards=1, close=NOON),
        epoch(2, index_shards=4, low=NOON - timedelta(minutes=30)),
    )
    keys = _keys(layout, NOON - 2 * HOUR, NOON + HOUR, source="index")
    per_bucket = [
        sum(key.startswith(f"ORD#2026-06-01T{hour}") for key in keys) for hour in (10, 11, 12)
    ]
    assert per_bucket == [1, 4, 4]


@pytest.mark.parametrize("order", ["asc", "desc"])
def test_epochs_of_different_bucket_sizes_are_read_side_by_side_in_the_order_of_time(
    order: str,
) -> None:
    layout = layout_of(
        epoch(1, bucket="day", close=NOON - HOUR), epoch(2, bucket="hour", low=NOON - HOUR)
    )
    keys = _keys(layout, NOON - 2 * HOUR, NOON + HOUR, source="index", order=order)
    assert sorted(keys) == ["ORD#2026-06-01#0", "ORD#2026-06-01T11#0", "ORD#2026-06-01T12#0"]


def test_a_range_before_the_index_has_epochs_opens_nothing() -> None:
    layout = layout_of(epoch(low=NOON))
    assert _keys(layout, NOON - 2 * HOUR, NOON, source="index") == []
    assert _keys(layout, NOON - 2 * HOUR, NOON) == []


FIRST, LAST = NOON - 2 * HOUR, NOON + HOUR
WIDTHS = {TimeBucket.DAY: 10, TimeBucket.HOUR: 13, TimeBucket.MINUTE: 16}


@st.composite
def epochs(draw: st.DrawFn) -> Epoch:
    low, close = draw(ranges(FIRST, LAST))
    return epoch(
        index_shards=draw(st.sampled_from([1, 2, 4])),
        bucket=draw(buckets),
        low=draw(st.sampled_from([None, low])),
        close=draw(st.sampled_from([None, close])),
    )


@given(st.lists(epochs(), min_size=1, max_size=4), ranges(FIRST, LAST), orders)
def test_the_index_opens_each_bucket_that_epochs_of_its_size_meet_and_no_other(
    epochs: list[Epoch], span: tuple[datetime, datetime], order: str
) -> None:
    start, end = span
    minutes = (FIRST + n * timedelta(minutes=1) for n in range(3 * 60))
    moments = [format_time(each) for each in (start, *minutes) if start <= each < end]
    expected = set()
    for size, width in WIDTHS.items():
        for label in {moment[:width] for moment in moments}:
            counts = [
                each.index_shards
                for each in epochs
                if each.bucket is size
                and each.meets(format_time(start), format_time(end))
                and each.low[:width] <= label <= each.close[:width]
            ]
            expected |= {f"ORD#{label}#{n}" for n in range(max(counts, default=0))}
    found = _keys(layout_of(*epochs), start, end, source="index", order=order)
    assert len(found) == len(set(found))
    assert set(found) == expected


@pytest.mark.parametrize("order", ["asc", "desc"])
def test_times_without_an_epoch_of_a_bucket_size_take_no_work(order: str) -> None:
    layout = layout_of(
        epoch(1, bucket="minute", close=NOON - 20_000 * DAY),
        epoch(2, bucket="day", low=NOON - 20_000 * DAY, close=NOON),
        epoch(3, bucket="minute", low=NOON - HOUR, close=NOON - HOUR + SECOND),
        epoch(4, bucket="day", low=NOON),
    )
    query = ReadQuery.checked(
        "ORD",
        NOON - 20_001 * DAY,
        NOON + 9 * 365 * DAY,
        order=order,
        sharding_key=None,
        source="index",
        consistent=False,
    )
    with counting_calls() as calls:
        first = list(islice(partitions_of(layout, query, query.source), 10))
    assert len(first) == 10
    assert calls() < 2_000
