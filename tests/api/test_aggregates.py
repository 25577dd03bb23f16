"""GET /v1/aggregates: rows as JSON, and input that can't be used."""

import json
from datetime import timedelta
from typing import Any

import pytest

from lambdas.api.parameters import parse_duration
from spillway import Settings
from spillway.timestamps import format_time
from tests.api.conftest import Api
from tests.support.fakes import NOON
from tests.support.faults import throttled_call
from tests.support.gateway import Answer, body_as_lambda_sends_it
from tests.support.requests import event_json
from tests.support.stores import HOUR, event_at, events_every

MINUTE = timedelta(minutes=1)


def _ask(api: Api, **change: Any) -> Answer:
    """Ask for ORD's last three hours."""
    query = {
        "series": "ORD",
        "start": format_time(NOON - 3 * HOUR),
        "end": format_time(NOON),
        **change,
    }
    given = {name: text for name, text in query.items() if text is not None}
    return api.get("/v1/aggregates", given)


def test_rows_hold_what_was_asked_for_in_that_order(api: Api) -> None:
    api.memory.store.write(
        [
            event_at(NOON - 3 * HOUR, "1", delay=5),
            event_at(NOON - 3 * HOUR + MINUTE, "2", delay=2.5),
            event_at(NOON - HOUR, "3", delay="late"),
        ]
    )
    answer = _ask(api, interval="1h", field="delay", functions="p50,count,sum,max", fill="null")
    assert answer.status == 200
    assert answer.body == {
        "rows": [
            {
                "start": "2026-06-01T09:00:00.000000Z",
                "p50": 3.75,
                "count": 2,
                "sum": 7.5,
                "max": 5,
                "skipped": 0,
            },
            {
                "start": "2026-06-01T10:00:00.000000Z",
                "p50": None,
                "count": 0,
                "sum": None,
                "max": None,
                "skipped": 0,
            },
            {
                "start": "2026-06-01T11:00:00.000000Z",
                "p50": None,
                "count": 0,
                "sum": None,
                "max": None,
                "skipped": 1,
            },
        ],
        "cursor": None,
        "complete": True,
        "percentiles": "exact",
        "percentile_error": 0,
    }
    assert list(answer.body["rows"][0]) == ["start", "p50", "count", "sum", "max", "skipped"]


def test_without_a_field_events_are_counted_in_one_row(api: Api) -> None:
    api.memory.store.write(events_every(10 * MINUTE, 30))
    assert _ask(api).body["rows"] == [
        {"start": "2026-06-01T09:00:00.000000Z", "count": 18, "skipped": 0}
    ]
    (row,) = _ask(api, field="n").body["rows"]
    assert (row["count"], row["avg"]) == (18, 20.5)


@pytest.mark.parametrize("limit", [1, 7, 1_000])
def test_a_cursor_goes_on_with_the_next_rows(api: Api, limit: int) -> None:
    api.on(Settings(shards=4))
    api.memory.another().write(events_every(MINUTE, 170))
    asked = {"interval": "PT7M", "field": "n", "functions": "count,first,p90", "fill": "previous"}
    whole = _ask(api, **asked).body["rows"]
    rows, cursor = [], None
    for _ in range(30):
        answer = _ask(api, limit=limit, cursor=cursor, **asked).body
        rows += answer["rows"]
        cursor = answer["cursor"]
        if cursor is None:
            break
    assert len(whole) == 26
    assert rows == whole


def test_an_answer_that_reaches_its_budget_says_so_and_goes_on(api: Api) -> None:
    events = [event_at(NOON - n * MINUTE, str(n), n=n, text="x" * 3_000) for n in range(1, 180)]
    api.memory.store.write(events)
    _ask(api)  # shows how large they are
    answer = _ask(api, interval="1h", max_rcu="80").body
    assert (answer["complete"], answer["reason"]) == (False, "read_units")
    assert answer["missing"][0]["partition"].startswith("ORD#")
    rows = answer["rows"]
    while answer["cursor"] is not None:
        answer = _ask(api, interval="1h", max_rcu="80", cursor=answer["cursor"]).body
        rows += answer["rows"]
    assert [row["count"] for row in rows] == [59, 60, 60]
    refused = _ask(api, interval="1h", max_rcu="20")
    assert (refused.status, refused.error[0]) == (400, "interval_too_long")


def test_numbers_of_more_than_64_bits_are_answered_exactly(api: Api) -> None:
    api.memory.store.write([event_at(NOON - MINUTE, "1", v=2**90 + 1)])
    answer = _ask(api, field="v", functions="sum,last")
    assert f'"sum":{2**90 + 1},"last":{2**90 + 1}' in answer.raw["body"]


def test_the_max_rows_and_functions_fit_into_an_answer(api: Api) -> None:
    times = [NOON - HOUR + n * timedelta(seconds=1) for n in range(1_000)]
    events = [event_at(time, str(n), v=-(10**308)) for n, time in enumerate(times)]
    api.memory.store.write(events)
    every = "count,sum,min,max,avg,first,last,p50,p90,p99"
    answer = _ask(api, interval="1s", field="v", functions=every)
    assert len(answer.body["rows"]) == 1_000
    assert body_as_lambda_sends_it(answer) < 4_000_000


def test_an_unknown_series_has_no_rows(api: Api) -> None:
    answer = _ask(api, series="nowhere", interval="1h")
    assert (answer.status, answer.body) == (200, {"rows": [], "cursor": None, "complete": True})


def test_throttled_reads_are_429_with_retry_after(api: Api) -> None:
    answer = _ask(api.on(wrap=lambda _: throttled_call))
    assert (answer.status, answer.error[0]) == (429, "throttled")
    assert answer.headers["Retry-After"] == "1"


def test_no_payload_is_logged(api: Api) -> None:
    api.post([event_json(payload={"v": "correct horse"})])
    _ask(api, field="v", functions="avg")
    assert "horse" not in api.log.getvalue()


WRONG: list[tuple[dict[str, Any], str, str]] = [
    ({"series": None}, "invalid_query", "series: is missing"),
    ({"start": "today"}, "invalid_query", "start: must be an RFC 3339 time"),
    ({"end": "2026-06-01T09:00:00Z"}, "invalid_query", "start: must be before `end`"),
    ({"interval": ""}, "invalid_query", "interval: must be a whole number above 0 and one of ms,"),
    ({"interval": "0m"}, "invalid_query", "interval: must be a whole number above 0"),
    ({"interval": "-5m"}, "invalid_query", "interval: must be a whole number above 0"),
    ({"interval": "1.5h"}, "invalid_query", "interval: must be a whole number above 0"),
    ({"interval": "1 h"}, "invalid_query", "interval: must be a whole number above 0"),
    ({"interval": "5"}, "invalid_query", "interval: must be a whole number above 0"),
    ({"interval": "1M"}, "invalid_query", "interval: must be a whole number above 0"),
    ({"interval": "P1M"}, "invalid_query", "interval: must be a whole number above 0"),
    ({"interval": "P1Y"}, "invalid_query", "interval: must be a whole number above 0"),
    ({"interval": "P"}, "invalid_query", "interval: must be a whole number above 0"),
    ({"interval": "PT"}, "invalid_query", "interval: must be a whole number above 0"),
    ({"interval": "999999999w"}, "invalid_query", "interval: must be a whole number above 0"),
    ({"interval": "٣m"}, "invalid_query", "interval: must be a whole number above 0"),
    ({"field": ""}, "invalid_query", "field: must be 1 to 1,024 bytes"),
    ({"field": "a..b"}, "invalid_query", "field: must be keys parted by dots"),
    ({"functions": "avg"}, "invalid_query", "field: is missing"),
    ({"functions": ""}, "invalid_query", "functions: must be some of count, sum"),
    ({"functions": "count;avg"}, "invalid_query", "functions: must be some of count, sum"),
    ({"functions": "count,p95"}, "invalid_query", "functions: must be some of count, sum"),
    ({"fill": "next"}, "invalid_query", "fill: must be one of none, null"),
    ({"limit": 0}, "invalid_query", "limit: must be a whole number of 1 to 1,000"),
    ({"limit": 1_001}, "invalid_query", "limit: must be a whole number of 1 to 1,000"),
    ({"order": "asc"}, "invalid_query", "order: is unknown; known are series, start, end, int"),
    ({"source": "cache"}, "invalid_query", "source: must be one of auto"),
    ({"consistent": "1"}, "invalid_query", "consistent: must be true or false"),
    ({"max_rcu": "0"}, "invalid_query", "max_rcu: "),
    ({"sharding_key": ""}, "invalid_query", "sharding_key: must be 1 to 512 bytes"),
    ({"cursor": "garbage"}, "invalid_cursor", "cursor: is damaged"),
]  # fmt: skip


@pytest.mark.parametrize(("change", "code", "said"), WRONG)
def test_each_wrong_parameter_is_named(
    api: Api, change: dict[str, Any], code: str, said: str
) -> None:
    answer = _ask(api, **change)
    assert (answer.status, answer.error[0]) == (400, code)
    assert answer.error[1].startswith(said)


def test_a_cursor_of_a_read_is_none_of_an_aggregate(api: Api) -> None:
    api.memory.store.write(events_every(MINUTE, 100))
    cursor = api.page(limit=5).body["cursor"]
    assert _ask(api, interval="5m", cursor=cursor).error[0] == "invalid_cursor"
    rows = _ask(api, interval="5m", limit=2).body["cursor"]
    assert api.page(cursor=rows).error[0] == "invalid_cursor"
    assert _ask(api, interval="10m", cursor=rows).error[0] == "invalid_cursor"


@pytest.mark.parametrize(
    ("text", "length"),
    [
        ("250ms", timedelta(milliseconds=250)),
        ("30s", timedelta(seconds=30)),
        ("5m", timedelta(minutes=5)),
        ("1h", HOUR),
        ("1d", timedelta(days=1)),
        ("2w", timedelta(weeks=2)),
        ("PT30S", timedelta(seconds=30)),
        ("PT1H30M", timedelta(minutes=90)),
        ("P1D", timedelta(days=1)),
        ("P1DT12H", timedelta(hours=36)),
        ("P2W", timedelta(weeks=2)),
    ],
)
def test_intervals_are_written_short_or_by_iso_8601(text: str, length: timedelta) -> None:
    assert parse_duration(text) == length


def test_the_described_answer_is_the_one_given(api: Api) -> None:
    api.memory.store.write(events_every(MINUTE, 100))
    document = api.get("/v1/openapi.json").body
    schemas = document["components"]["schemas"]
    every = "count,sum,min,max,avg,first,last,p50,p90,p99"
    answer = json.loads(_ask(api, field="n", functions=every).raw["body"])
    described = set(schemas["AggregatesAnswer"]["properties"])
    assert set(answer) == described - {"reason", "missing", "missing_count"}
    assert set(answer["rows"][0]) == set(schemas["AggregateRowOutput"]["properties"]) - {
        "approximate"
    }
