"""Any events, intervals, fills and pages: the rows are those that each interval alone would give."""

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spillway import InvalidInputError, ThrottledError
from spillway.aggregating.aggregate import AggregateRow, aggregate
from spillway.aggregating.functions import PERCENTILES, AggregateFunction, Fill
from spillway.scanning.streams import StoredEvent
from tests.aggregating.world import World, ask, expected_rows, record, shown

BASE = datetime(2024, 2, 28, 22, tzinfo=UTC)
HOUR = timedelta(hours=1)
EXACT = tuple(each for each in AggregateFunction if each not in PERCENTILES)

integers = st.integers(-1_000, 1_000)
numbers = integers | st.floats(-1e6, 1e6) | st.integers(-(2**70), 2**70)
others = st.sampled_from([None, True, False, "7", [1], {"v": 1}, {}, "", 10**400])
payloads = st.one_of(
    numbers.map(lambda value: {"v": value, "w": 1}),
    numbers.map(lambda value: {"w": 1, "v": value}),
    others.map(lambda value: {"v": value}),
    st.just({"w": 5}),
)
times = st.builds(
    lambda hours, micros: BASE + timedelta(hours=hours, microseconds=micros),
    st.integers(0, 9),
    st.integers(0, 2) | st.integers(0, 3_599_999_999),
)
intervals = st.sampled_from(
    [
        timedelta(minutes=7),
        timedelta(minutes=20),
        HOUR,
        3 * HOUR,
        timedelta(days=1),
        timedelta(weeks=1),
        timedelta(hours=2, microseconds=1),
        None,
    ]
)
fills = st.sampled_from([each.value for each in Fill])


@st.composite
def worlds(draw: st.DrawFn) -> World:
    chosen = draw(st.lists(st.tuples(times, st.integers(0, 2)), max_size=25, unique=True))
    records = [record(time, str(number), draw(payloads)) for time, number in chosen]
    return World(records, size=draw(st.integers(1, 9)), ahead=draw(st.booleans()))


@st.composite
def ranges(draw: st.DrawFn) -> tuple[datetime, datetime]:
    one, other = draw(times), draw(times)
    return min(one, other), max(one, other) + timedelta(microseconds=1)


def _equal(found: list[AggregateRow], expected: list[AggregateRow]) -> None:
    assert [(row.start, row.skipped) for row in found] == [
        (row.start, row.skipped) for row in expected
    ]
    for row, wanted in zip(found, expected, strict=True):
        assert list(row.values) == list(wanted.values)
        rounded = {*PERCENTILES} if wanted["count"] else {*row.values}  # or on a line
        for name, value in wanted.values.items():
            if name in rounded and value is not None:
                assert row[name] == pytest.approx(value, rel=1e-12, abs=1e-9), name
            else:
                assert repr(row[name]) == repr(value), name


@given(worlds(), ranges(), intervals, fills)
def test_rows_are_what_each_interval_alone_comes_to(
    world: World, span: tuple[datetime, datetime], interval: timedelta | None, fill: str
) -> None:
    query = ask(*span, interval, functions=tuple(AggregateFunction), fill=fill)
    (page,) = world.pages(query)
    assert page.complete
    assert page.percentiles == "exact"
    _equal(list(page.rows), expected_rows(world.records, query))


@given(worlds(), ranges(), intervals, fills, st.integers(1, 7), st.integers(1, 9))
def test_pages_of_any_size_hold_the_rows_of_one_page(  # noqa: PLR0917
    world: World,
    span: tuple[datetime, datetime],
    interval: timedelta | None,
    fill: str,
    limit: int,
    size: int,
) -> None:
    query = ask(*span, interval or HOUR, fill=fill)
    whole = shown(World(world.records).rows(query))
    assert shown(World(world.records, size).rows(query, limit=limit)) == whole


@given(worlds(), ranges(), intervals, st.sampled_from(["none", "null", "zero"]), st.integers(1, 7), st.integers(1, 4))  # fmt: skip
def test_scans_that_stop_anywhere_behind_a_row_come_to_the_same_rows(  # noqa: PLR0917
    world: World,
    span: tuple[datetime, datetime],
    interval: timedelta | None,
    fill: str,
    limit: int,
    more: int,
) -> None:
    query = ask(*span, interval or HOUR, fill=fill)
    whole = World(world.records).rows(query)
    longest = max((_events(row) for row in whole), default=0)
    halting = World(world.records, world.size, longest + more, world.ahead)
    pages = list(halting.pages(query, limit=limit))
    assert shown([row for page in pages for row in page.rows]) == shown(whole)
    for page in pages:
        assert page.complete == (page.cursor is None or len(page.rows) == limit)
        assert (page.reason == "deadline") == (not page.complete)


def _events(row: AggregateRow) -> int:
    count = row["count"]
    assert isinstance(count, int)
    return count + row.skipped


@given(worlds(), ranges(), intervals, fills, st.integers(1, 7), st.integers(1, 9))
def test_rows_that_a_scan_stops_within_are_right_or_refused(  # noqa: PLR0917
    world: World,
    span: tuple[datetime, datetime],
    interval: Any,
    fill: str,
    limit: int,
    most: int,
) -> None:
    query = ask(*span, interval, fill=fill)
    whole = World(world.records).rows(query)
    found: list[AggregateRow] = []
    refused = ""
    try:
        for page in World(world.records, world.size, most, world.ahead).pages(query, limit=limit):
            found += page.rows
    except InvalidInputError as error:
        refused = f"{error.code} {error.where}"
    assert refused in {"", "interval_too_long interval"}
    assert shown(found) == shown(whole[: len(found)] if refused else whole)


@given(worlds(), ranges(), intervals, fills)
def test_events_are_counted_without_a_field(
    world: World, span: tuple[datetime, datetime], interval: timedelta | None, fill: str
) -> None:
    query = ask(*span, interval, path=None, functions=["count"], fill=fill)
    found = world.rows(query)
    assert found == expected_rows(world.records, query)
    inside = [r for r in world.records if query.read.start <= r.sort_key < query.read.end]
    assert sum(row["count"] or 0 for row in found) == len(inside)


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False) | st.integers(-(2**1023), 2**1023), min_size=1, max_size=40), st.integers(1, 9))  # fmt: skip
def test_sums_are_exact_whatever_the_values_and_however_they_come(
    values: list[float], size: int
) -> None:
    records = [record(BASE, f"{n:03}", {"v": value}) for n, value in enumerate(values)]
    query = ask(BASE, BASE + HOUR, functions=["sum", "avg", "min", "max", "first", "last"])
    assert World(records, size).rows(query) == expected_rows(records, query)


def _many(values: list[int | float]) -> list[StoredEvent]:
    return [record(BASE, f"{n:06}", {"v": value}) for n, value in enumerate(values)]


@given(
    st.lists(
        st.floats(-1e300, 1e300).filter(lambda value: value == 0 or abs(value) > 1e-300) | integers,
        min_size=21,
        max_size=60,
    ),
    st.integers(1, 9),
)
def test_beyond_the_exact_size_percentiles_are_within_the_error_that_is_told(
    values: list[float], size: int
) -> None:
    query = ask(BASE, BASE + HOUR, functions=["p50", "p90", "p99"])
    (page,) = World(_many(values), size).pages(query, max_exact=20)
    assert (page.percentiles, page.rows[0].approximate) == ("ddsketch", True)
    ordered = sorted(map(float, values))
    for function, fraction in PERCENTILES.items():
        exact = ordered[int(fraction * (len(ordered) - 1))]
        found = page.rows[0][function.value]
        assert found == pytest.approx(exact, rel=page.percentile_error * 1.000_001)
        assert found is not None
        assert ordered[0] <= found <= ordered[-1]
    other = World(_many(values[::-1]), 61).rows(query, max_exact=20)
    assert shown(other) == shown(page.rows)


def test_percentiles_are_exact_up_to_the_size_and_told_apart_beyond() -> None:
    query = ask(BASE, BASE + 2 * HOUR, HOUR, functions=["p50"])
    records = _many(list(range(20))) + [record(BASE + HOUR, f"{n:06}", {"v": n}) for n in range(21)]
    (page,) = World(records).pages(query, max_exact=20)
    assert [(row.approximate, row["p50"]) for row in page.rows] == [(False, 9.5), (True, pytest.approx(10, rel=0.005))]  # fmt: skip
    assert (page.percentiles, page.percentile_error) == ("ddsketch", 0.005)
    first, second = World(records).pages(query, limit=1, max_exact=20)
    assert [first.percentiles, second.percentiles] == ["exact", "ddsketch"]
    (without,) = World(records).pages(ask(BASE, BASE + HOUR, functions=["avg"]))
    assert (without.percentiles, without.percentile_error) == (None, 0)


def test_a_line_over_hours_of_text_keeps_what_they_skip_wherever_scans_stop() -> None:
    values = [1, "x", "x", "x", 5]
    records = [record(BASE + 2 * n * HOUR, "1", {"v": value}) for n, value in enumerate(values)]
    query = ask(BASE, BASE + 9 * HOUR, HOUR, functions=["avg"], fill="linear")
    whole = World(records).rows(query)
    assert [row["avg"] for row in whole] == [1, 1.5, 2, 2.5, 3, 3.5, 4, 4.5, 5]
    assert [row.skipped for row in whole] == [0, 0, 1, 0, 1, 0, 1, 0, 0]
    for ahead in (True, False):
        assert World(records, 1, 5, ahead).rows(query, limit=3) == whole
        with pytest.raises(InvalidInputError, match="fill=linear needs the end of its gap"):
            World(records, 1, 4, ahead).rows(query, limit=3)


def test_percentiles_stay_within_the_extremes() -> None:
    query = ask(BASE, BASE + HOUR, functions=["p50", "p99"])
    (row,) = World(_many([7.3] * 30)).rows(query, max_exact=20)
    assert dict(row.values) == {"p50": 7.3, "p99": 7.3}


@pytest.mark.parametrize("values", [[-0.0, 0.0], [0.0, -0.0], [-0.0, -0.0], [0.0, 0.0]])
@pytest.mark.parametrize("max_exact", [1, 100])
def test_a_zero_has_no_sign_in_extremes_and_percentiles(
    values: list[float], max_exact: int
) -> None:
    query = ask(BASE, BASE + HOUR, functions=["min", "max", "sum", "avg", "p50", "p99"])
    (row,) = World(_many(list(values))).rows(query, max_exact=max_exact)
    assert [repr(value) for value in row.values.values()] == ["0.0"] * 6
    (kept,) = World(_many(list(values))).rows(ask(BASE, BASE + HOUR, functions=["first", "last"]))
    assert repr(list(kept.values.values())) == repr(values)


def test_the_largest_doubles_have_percentiles_too() -> None:
    values = [1.7976931348623157e308, -1.7976931348623157e308] * 20
    query = ask(BASE, BASE + HOUR, functions=["p50", "p99", "avg"])
    (exact,) = World(_many(values)).rows(query)
    assert dict(exact.values) == {"p50": 0.0, "p99": values[0], "avg": 0.0}
    (rough,) = World(_many(values)).rows(query, max_exact=20)
    assert rough["p99"] == pytest.approx(1.7e308, rel=0.006)


def test_one_row_is_in_memory_at_a_time() -> None:
    """A page of one row takes from the scan what it needs to see that row's end."""
    records = [record(BASE + n * HOUR, "1", {"v": n}) for n in range(100)]
    taken: list[StoredEvent] = []

    class Watched(World):
        def scan(self, query: Any, wanted: int | None) -> Any:
            scan = super().scan(query, wanted)
            batches = scan.batches

            def noted() -> Any:
                for batch in batches():
                    taken.extend(batch)
                    yield batch

            scan.batches = noted  # type: ignore[method-assign]
            return scan

    page = aggregate(
        ask(BASE, BASE + 100 * HOUR, HOUR), Watched(records, 1).scan, limit=2, cursor=None
    )
    assert len(page.rows) == 2
    assert len(taken) == 3


@pytest.mark.parametrize("functions", [["count"], ["sum"], ["p50"]])
def test_a_row_that_one_scan_cannot_finish_is_refused(functions: list[str]) -> None:
    records = _many(list(range(100)))
    query = ask(BASE, BASE + HOUR, functions=functions)
    with pytest.raises(InvalidInputError, match="read to its end within one page") as raised:
        World(records, 2, most=99).rows(query)
    assert (raised.value.code, raised.value.where) == ("interval_too_long", "interval")


def test_a_row_that_a_storage_error_cuts_off_is_that_error() -> None:
    error = ThrottledError("ThrottlingException", "slow down")

    def scan(query: Any, wanted: Any) -> Any:
        cut = World(_many(list(range(9))), 2, most=3).scan(query, wanted)
        cut.failure = error
        return cut

    with pytest.raises(ThrottledError) as raised:
        aggregate(ask(BASE, BASE + HOUR), scan, limit=2, cursor=None)
    assert raised.value is error


def test_rows_are_filled_from_those_of_an_earlier_page_as_the_events_are_now() -> None:
    records = [record(BASE, "1", {"v": 1}), record(BASE + 5 * HOUR, "2", {"v": 6})]
    query = ask(BASE, BASE + 6 * HOUR, HOUR, functions=["avg"], fill="linear")
    first = aggregate(query, World(records).scan, limit=2, cursor=None)
    assert [row["avg"] for row in first.rows] == [1, 2]
    late = [*records, record(BASE + HOUR, "3", {"v": 10})]
    second = aggregate(query, World(late).scan, limit=9, cursor=first.cursor)
    assert [row["avg"] for row in second.rows] == [9, 8, 7, 6]
    without = aggregate(query, World(records[1:]).scan, limit=9, cursor=first.cursor)
    assert [row["avg"] for row in without.rows] == [None, None, None, 6]


CHANGES: list[dict[str, Any]] = [
    {"start": BASE + HOUR},
    {"end": BASE + 8 * HOUR},
    {"interval": 2 * HOUR},
    {"path": "w"},
    {"path": None, "functions": ["count"]},
    {"functions": ["avg", "count"]},
    {"fill": "zero"},
]


@pytest.mark.parametrize("change", CHANGES, ids=str)
def test_a_cursor_of_another_question_is_refused(change: dict[str, Any]) -> None:
    asked: dict[str, Any] = {
        "start": BASE,
        "end": BASE + 9 * HOUR,
        "interval": HOUR,
        "functions": ["count", "avg"],
        "fill": "previous",
    }
    world = World([record(BASE + n * HOUR, "1", {"v": n}) for n in range(9)])
    cursor = next(world.pages(ask(**asked), limit=2)).cursor
    assert aggregate(ask(**asked), world.scan, limit=2, cursor=cursor).rows
    with pytest.raises(InvalidInputError, match="another query"):
        aggregate(ask(**{**asked, **change}), world.scan, limit=2, cursor=cursor)


@pytest.mark.parametrize("cursor", ["", "x", "é", "AAAA", json.dumps({"row": 1})])
def test_a_damaged_cursor_is_refused(cursor: str) -> None:
    with pytest.raises(InvalidInputError, match="cursor: is damaged"):
        aggregate(ask(BASE, BASE + HOUR), World([]).scan, limit=2, cursor=cursor)
