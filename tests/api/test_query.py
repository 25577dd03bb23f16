import json
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from inspect import Parameter, signature
from typing import Any

import msgspec
import pytest
from msgspec import Struct

from lambdas.api import answers
from lambdas.api.answers import event_text
from lambdas.api.parameters import (
    AggregateParameters,
    EventParameters,
    ExportParameters,
    PageParameters,
)
from spillway import Event, EventStore, OutcomeUnknownError, Settings, ThrottledError
from spillway.dynamodb.port import Call, RefusedError
from spillway.scanning.streams import StoredEvent
from spillway.timestamps import format_time
from tests.api.conftest import Api
from tests.support.fakes import NOON
from tests.support.faults import Fault, FaultyCall, throttled_call
from tests.support.gateway import Answer, body_as_lambda_sends_it
from tests.support.requests import event_json
from tests.support.stores import DAY, HOUR, events_every

LAMBDA_LIMIT = 6 * 1024 * 1024
MINUTE = timedelta(minutes=1)


def _pages(api: Api, **query: Any) -> Iterator[Answer]:
    cursor = None
    seen: set[str | None] = set()
    while cursor not in seen:
        seen.add(cursor)
        page = api.page(cursor=cursor, **query)
        assert page.status == 200
        yield page
        cursor = page.body["cursor"]
        if cursor is None:
            return
    raise AssertionError(f"the cursor {cursor} came back")


def _ids(api: Api, **query: Any) -> list[str]:
    return [event["id"] for page in _pages(api, **query) for event in page.body["events"]]


def test_events_come_back_as_they_were_written(api: Api) -> None:
    api.post(
        [
            event_json(
                time="2026-06-01T14:00:00.5+02:00", sharding_key="LGA#1", payload={"é": [1, None]}
            )
        ]
    )
    assert api.page().body == {
        "events": [
            {
                "series": "ORD",
                "time": "2026-06-01T12:00:00.500000Z",
                "id": "1",
                "sharding_key": "LGA#1",
                "payload": {"é": [1, None]},
            }
        ],
        "cursor": None,
        "complete": True,
    }


@pytest.mark.parametrize("order", ["asc", "desc"])
@pytest.mark.parametrize("read", ["auto", "table", "index"])
@pytest.mark.parametrize("limit", [1, 7, 1_000])
def test_paging_yields_every_event_once_in_order(
    api: Api, order: str, read: str, limit: int
) -> None:
    api.on(Settings(shards=4, index_shards=2))
    api.memory.another().write(events_every(7 * MINUTE, 40))
    expected = [f"{n:07d}" for n in range(40)]
    found = _ids(
        api,
        order=order,
        source=read,
        consistent="false",
        limit=limit,
        start=format_time(NOON - 5 * HOUR),
        end=format_time(NOON),
    )
    assert found == (expected if order == "asc" else expected[::-1])


@pytest.mark.parametrize("order", ["asc", "desc"])
@pytest.mark.parametrize(
    ("start", "end"),
    [
        (NOON - 40 * MINUTE, NOON - 20 * MINUTE),
        (NOON - 59 * MINUTE - timedelta(microseconds=1), NOON - timedelta(microseconds=1)),
        (NOON - HOUR, NOON),
    ],
)
def test_an_eventual_read_whose_index_throttles_answers_its_range_and_nothing_else(
    api: Api, order: str, start: datetime, end: datetime
) -> None:
    def throttling(call: Call) -> Call:
        def through(operation: str, request: Any, /) -> dict[str, Any]:
            if "IndexName" in request:
                raise ThrottledError("ThrottlingException", "hot")
            return call(operation, request)

        return through

    api.on(Settings(shards=64, index_shards=1))
    written = events_every(MINUTE, 200)
    api.memory.another().write(written)
    api.on(wrap=throttling)
    span = {"start": format_time(start), "end": format_time(end), "consistent": "false"}
    inside = [event.id for event in written if start <= event.time < end]
    expected = inside if order == "asc" else inside[::-1]
    pages = list(_pages(api, order=order, limit=15, **span))
    assert [each["id"] for page in pages for each in page.body["events"]] == expected
    assert all(page.body["complete"] for page in pages)
    counted = api.get("/v1/aggregates", {"series": "ORD", **span}).body["rows"]
    assert [row["count"] for row in counted] == [len(inside)]
    exported = api.get("/v1/export", {"series": "ORD", **span}).body
    assert sorted(each["id"] for each in exported) == inside


def test_a_page_holds_100_events_unless_asked_otherwise(api: Api) -> None:
    api.memory.store.write(events_every(MINUTE, 150))
    assert [len(page.body["events"]) for page in _pages(api)] == [100, 50]


def test_a_sharding_key_is_read_alone(api: Api) -> None:
    api.post([event_json(str(n), sharding_key=f"k{n % 3}") for n in range(9)])
    assert _ids(api, sharding_key="k1", limit=2) == ["1", "4", "7"]


def test_series_and_ids_of_any_characters_are_read_by_an_escaped_query_string(api: Api) -> None:
    series, event_id, sharding_key = "a#1/é +&=%", 'q"\\😀', "#\n\t"
    api.post([event_json(event_id, series=series, sharding_key=sharding_key)])
    page = api.page(series=series, sharding_key=sharding_key)
    (event,) = page.body["events"]
    assert (event["series"], event["id"], event["sharding_key"]) == (series, event_id, sharding_key)
    identity = {
        "series": series,
        "time": event["time"],
        "id": event_id,
        "sharding_key": sharding_key,
    }
    assert api.get("/v1/events/one", identity).body == event


def test_one_event_is_read_by_its_identity_or_is_404(api: Api) -> None:
    api.post([event_json("a"), event_json("b", sharding_key="k")])
    identity = {"series": "ORD", "time": format_time(NOON), "id": "a"}
    for consistent in ({}, {"consistent": "true"}, {"consistent": "false"}):
        answer = api.get("/v1/events/one", {**identity, **consistent})
        assert (answer.status, answer.body["payload"]) == (200, {"delay": 33})
        assert "sharding_key" not in answer.body
    missing = api.get("/v1/events/one", {**identity, "id": "b"})
    assert (missing.status, missing.error[0]) == (404, "unknown_event")
    found = api.get("/v1/events/one", {**identity, "id": "b", "sharding_key": "k"})
    assert found.body["sharding_key"] == "k"


def test_reads_are_consistent_unless_asked_otherwise(api: Api) -> None:
    api.post([event_json()])
    span = {"start": format_time(NOON - DAY), "end": format_time(NOON)}
    for path in ("/v1/events", "/v1/aggregates", "/v1/export"):
        api.memory.table.forget_calls()
        api.get(path, {"series": "ORD", **span})
        assert all(request["ConsistentRead"] for _, request in api.memory.table.requests)
        api.memory.table.forget_calls()
        api.get(path, {"series": "ORD", **span, "consistent": "false"})
        assert not any(r.get("ConsistentRead") for r in api.memory.table.requests_of("Query"))


def test_the_library_and_http_have_the_same_defaults() -> None:
    methods: dict[type[Struct], Callable[..., object]] = {
        PageParameters: EventStore.read,
        AggregateParameters: EventStore.aggregate,
        ExportParameters: EventStore.export,
        EventParameters: EventStore.read_one,
    }
    for kind, method in methods.items():
        defaults = {
            name: parameter.default
            for name, parameter in signature(method).parameters.items()
            if parameter.kind is Parameter.KEYWORD_ONLY
        }
        described = {field.name: field.default for field in msgspec.structs.fields(kind)}
        common = defaults.keys() & described.keys()
        assert "consistent" in common
        assert {name: described[name] for name in common} == {n: defaults[n] for n in common}


def test_throttled_reads_are_429_with_retry_after(api: Api) -> None:
    answer = api.on(wrap=lambda _: throttled_call).page()
    assert (answer.status, answer.error[0]) == (429, "throttled")
    assert answer.headers["Retry-After"] == "1"


@pytest.mark.parametrize("fault", [Fault.UNREACHABLE, Fault.LOST_REPLY])
def test_reads_of_storage_out_of_reach_are_503_with_retry_after(api: Api, fault: Fault) -> None:
    answer = api.on(wrap=lambda call: FaultyCall(call, [fault] * 1_000)).page()
    assert (answer.status, answer.error[0]) == (503, "storage_unavailable")
    assert answer.headers["Retry-After"] == "2"


@pytest.mark.parametrize(
    "error",
    [RefusedError("AccessDeniedException", "arn:…"), OutcomeUnknownError("HTTP500", "trace")],
)
def test_what_storage_says_is_logged_and_not_answered(api: Api, error: Exception) -> None:
    def fail(*_: Any) -> dict[str, Any]:
        raise error

    answer = api.on(wrap=lambda _: fail).page()
    assert answer.status == 503
    assert str(error).partition(": ")[2] not in str(answer.raw)
    assert str(error).partition(": ")[2] in json.loads(api.log.getvalue().splitlines()[0])["reason"]


NASTY = {
    "quotes": '"' * 1_000,
    "backslashes": "\\" * 1_000,
    "control characters": "\0\x1f\n" * 400,
    "emoji": "😀" * 1_000,
    "accents": "é" * 1_000,
    "ideographs": "日本" * 1_000,
    "line separators": "\u2028" * 1_000,
    "plain": "x" * 3_000,
    "numbers": list(range(500)),
    "mixture": '"\\\0é😀日' * 200,
}


@pytest.mark.parametrize("kind", NASTY)
def test_no_page_comes_near_lambdas_limit_and_its_cursor_goes_on(api: Api, kind: str) -> None:
    value = NASTY[kind]
    events = [
        Event(series="ORD", time=NOON - n * MINUTE, id=f"{n:04}", payload={"v": [value] * 8})
        for n in range(700)
    ]
    for start in range(0, 700, 100):
        api.memory.store.write(events[start : start + 100])
    pages = list(_pages(api, limit=1_000))
    sizes = [body_as_lambda_sends_it(page) for page in pages]
    assert max(sizes) < 4_200_000 < LAMBDA_LIMIT
    assert len(pages) > 1
    assert min(sizes[:-1]) > 3_500_000
    found = [event["id"] for page in pages for event in page.body["events"]]
    assert found == [f"{n:04}" for n in range(699, -1, -1)]
    assert pages[0].body["events"][0]["payload"] == {"v": [value] * 8}


@pytest.mark.parametrize("path", ["/v1/events", "/v1/export"])
def test_each_event_of_an_answer_is_rendered_once(
    api: Api, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    rendered: list[str] = []

    def count(series: str, record: StoredEvent) -> str:
        rendered.append(record.sort_key)
        return event_text(series, record)

    api.memory.store.write(events_every(MINUTE, 30))
    monkeypatch.setattr(answers, "event_text", count)
    span = {"start": format_time(NOON - DAY), "end": format_time(NOON)}
    answer = api.get(path, {"series": "ORD", **span})
    assert len(answer.body if path == "/v1/export" else answer.body["events"]) == 30
    assert len(rendered) == 30


def test_the_largest_event_fits_into_an_answer(api: Api) -> None:
    payload = {"v": '"' * 200_000}
    assert api.memory.store.write(
        [Event(series="ORD", time=NOON, id="1", payload=payload)]
    ).accepted
    page = api.page()
    assert page.body["events"][0]["payload"] == payload
    assert body_as_lambda_sends_it(page) < LAMBDA_LIMIT
    one = api.get("/v1/events/one", {"series": "ORD", "time": format_time(NOON), "id": "1"})
    assert body_as_lambda_sends_it(one) < LAMBDA_LIMIT


def test_health_is_answered_without_storage(api: Api) -> None:
    answer = api.on(wrap=lambda _: throttled_call).get("/v1/healthz")
    assert (answer.status, answer.body) == (200, {"status": "ok"})


def _one_shard_throttles(call: Call) -> Call:
    """Answer one shard's first page, a short one, and throttle whatever follows it."""

    def throttling(operation: str, request: Any, /) -> dict[str, Any]:
        if operation == "Query" and request["ExpressionAttributeValues"][":p"]["S"] == "ORD#1":
            if "ExclusiveStartKey" in request:
                raise ThrottledError("ThrottlingException", "hot")
            request = {**request, "Limit": 50}
        return call(operation, request)

    return throttling


def test_a_page_whose_shard_throttles_says_what_is_missing_and_its_cursor_completes_it(
    api: Api,
) -> None:
    api.on(Settings(shards=2))
    written = events_every(MINUTE, 400)
    api.memory.another().write(written)
    query = {"start": format_time(NOON - DAY), "end": format_time(NOON), "limit": 300}
    api.on(wrap=_one_shard_throttles)
    page = api.page(source="table", **query)
    assert page.status == 200
    assert page.body["complete"] is False
    assert page.body["reason"] == "ThrottlingException"
    (missing,) = page.body["missing"]
    assert (missing["partition"], missing["error"]) == ("ORD#1", "ThrottlingException")
    assert page.body["missing_count"] == 1
    found = [event["id"] for event in page.body["events"]]
    assert 0 < len(found) < 300
    assert page.body["events"][-1]["time"] <= missing["reached"]
    api.on(wrap=lambda call: call)
    rest = api.page(source="table", cursor=page.body["cursor"], **query)
    assert rest.body["complete"] is True
    found += [event["id"] for event in rest.body["events"]]
    assert found == [event.id for event in written[: len(found)]]


def test_a_page_explains_its_plan_and_what_it_cost(api: Api) -> None:
    api.on(Settings(shards=4))
    api.memory.another().write(events_every(MINUTE, 400))
    query = {"start": format_time(NOON - DAY), "end": format_time(NOON)}
    explained = api.page(explain="true", **query).body["explain"]
    assert explained["source"] in explained["estimates"]
    assert explained["returned"] == 100
    assert explained["items"] >= 100
    assert explained["read_units"] >= 0.5 * explained["requests"] > 0
    assert "explain" not in api.page(**query).body


@pytest.mark.parametrize("value", ["0", "-1", "x", "1e3", "nan", ""])
def test_a_budget_that_is_no_number_is_refused(api: Api, value: str) -> None:
    answer = api.page(max_rcu=value)
    assert answer.status == 400
    assert answer.body["error"]["message"].startswith("max_rcu: ")


def test_a_budget_below_one_round_is_refused_and_says_what_one_costs(api: Api) -> None:
    api.on(Settings(shards=8))
    api.memory.another().write(events_every(MINUTE, 400))
    answer = api.page(
        max_rcu="3.5",
        consistent="false",
        source="table",
        start=format_time(NOON - DAY),
        end=format_time(NOON),
    )
    assert answer.status == 400
    assert "must be 4 at least" in answer.body["error"]["message"]
