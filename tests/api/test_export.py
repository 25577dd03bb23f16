"""GET /v1/export: NDJSON in three modes, and whether that was all."""

import re
from collections.abc import Iterator, Mapping
from datetime import timedelta
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest

from spillway import Event, Settings, ShardingMode, ThrottledError
from spillway.dynamodb.port import Call, UnreachableError
from spillway.timestamps import format_time
from tests.api.conftest import Api
from tests.scanning.world import small_pages
from tests.support.fakes import NOON
from tests.support.faults import throttled_call
from tests.support.gateway import Answer, LambdaContext, body_as_lambda_sends_it
from tests.support.stores import DAY, events_every

MINUTE = timedelta(minutes=1)
MODES = ["shards", "blocks", "round_robin"]
LAMBDA_LIMIT = 6 * 1024 * 1024


def _export(api: Api, raw_query: str | None = None, left: float = 29.0, **change: Any) -> Answer:
    query = {
        "series": "ORD",
        "start": format_time(NOON - 30 * DAY),
        "end": format_time(NOON + DAY),
        **{name: str(value) for name, value in change.items() if value is not None},
    }
    given = query if raw_query is None else raw_query
    return api.request("GET", "/v1/export", given, context=LambdaContext(left=left))


def _answers(api: Api, **query: Any) -> Iterator[Answer]:
    """Yield answers until one is complete, by turns with the cursor and with the link."""
    answer = _export(api, **query)
    for number in range(1_000):
        assert answer.status == 200
        yield answer
        if answer.headers["Spillway-Complete"] == "true":
            assert not {"Spillway-Cursor", "Spillway-Reason", "Link"} & set(answer.headers)
            return
        if number % 2:
            answer = _export(api, _next(answer))
        else:
            answer = _export(api, **{**query, "cursor": answer.headers["Spillway-Cursor"]})
    raise AssertionError("the export does not end")


def _next(answer: Answer) -> str:
    match = re.fullmatch(r'<([^>]+)>; rel="next"', answer.headers["Link"])
    assert match
    return urlsplit(match[1]).query


def _failing(shard: int, error: Exception, after: int = 0) -> Any:
    """Return a wrapper of a port on which a shard's queries fail after some."""

    def wrap(call: Call) -> Call:
        asked = []
        call = small_pages(call, 10)

        def failing(operation: str, request: Mapping[str, Any], /) -> dict[str, Any]:
            values = request.get("ExpressionAttributeValues", {})
            if operation == "Query" and values[":p"]["S"] == f"ORD#{shard}":
                asked.append(operation)
                if len(asked) > after:
                    raise error
            return call(operation, request)

        return failing

    return wrap


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("consistent", [None, "true", "false"])
def test_an_export_is_a_line_an_event_as_pages_have_them(
    api: Api, mode: str, consistent: str | None
) -> None:
    api.on(Settings(shards=4))
    payload = {"é\u2028": ['"\n', None, 1e5]}
    odd = Event(series="ORD", time=NOON, id="x", sharding_key='k#"\\', payload=payload)
    api.memory.another().write([*events_every(MINUTE, 40), odd])
    answer = _export(api, mode=mode, consistent=consistent)
    assert answer.headers["Content-Type"] == "application/x-ndjson"
    assert answer.headers["Spillway-Complete"] == "true"
    assert int(answer.headers["Spillway-Requests"]) == 4
    page = api.page(limit=1_000).body["events"]
    assert sorted(answer.body, key=repr) == sorted(page, key=repr)
    assert len(answer.body) == 41
    queries = api.memory.table.requests_of("Query")[:4]
    assert all(bool(each.get("ConsistentRead")) == (consistent != "false") for each in queries)


def test_one_shard_after_the_other_is_the_default(api: Api) -> None:
    api.on(Settings(shards=4))
    api.memory.another().write(events_every(MINUTE, 40))
    assert _export(api).body == _export(api, mode="shards").body
    assert _export(api).body != _export(api, mode="round_robin").body


def test_a_series_or_a_range_without_events_is_a_complete_export_without_lines(api: Api) -> None:
    for series in ("ORD", "LGA"):
        api.memory.another().write(events_every(MINUTE, 1))
        answer = _export(api, series=series, end=format_time(NOON - DAY))
        assert (answer.status, answer.raw["body"]) == (200, "")
        assert answer.headers["Spillway-Complete"] == "true"


@pytest.mark.parametrize("mode", MODES)
def test_a_truncated_answer_says_so_and_its_cursor_and_link_complete_it(
    api: Api, mode: str
) -> None:
    api.on(Settings(shards=8))
    for start in range(0, 900, 100):
        api.memory.another().write(
            Event(series="ORD", time=NOON - n * MINUTE, id=f"{n:04}", payload={"v": '"é' * 3_000})
            for n in range(start, start + 100)
        )
    answers = list(_answers(api, mode=mode, pool=3))
    assert len(answers) > 2
    for answer in answers[:-1]:
        assert answer.headers["Spillway-Complete"] == "false"
        assert answer.headers["Spillway-Reason"] == "size"
        assert body_as_lambda_sends_it(answer) > 3_000_000
    assert max(map(body_as_lambda_sends_it, answers)) < 4_200_000 < LAMBDA_LIMIT
    ids = [event["id"] for answer in answers for event in answer.body]
    assert sorted(ids) == [f"{n:04}" for n in range(900)]


def test_a_link_keeps_the_parameters_as_they_were_given(api: Api) -> None:
    series = 'a#1/é +&=%"<>'
    api.on(Settings(shards=4))
    api.memory.another().write(events_every(MINUTE, 60, series=series))
    given: dict[str, Any] = {
        "series": series,
        "mode": "shards",
        "consistent": "true",
        "max_rcu": "1",
    }
    answer = _export(api, **given)
    assert answer.headers["Spillway-Complete"] == "false"
    kept = dict(parse_qsl(_next(answer)))
    assert kept.pop("cursor") == answer.headers["Spillway-Cursor"]
    assert {**kept, **given} == kept
    assert {"start", "end"} <= set(kept)
    assert _export(api, _next(answer)).body[0]["series"] == series


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    ("error", "code", "status"),
    [
        (ThrottledError("ThrottlingException", "slow down"), "throttled", 429),
        (UnreachableError("EndpointConnectionError", "refused"), "storage_unavailable", 503),
    ],
)
def test_a_shard_that_fails_leaves_what_was_read_with_a_cursor_or_else_is_an_error(
    api: Api, mode: str, error: Exception, code: str, status: int
) -> None:
    api.on(Settings(shards=4))
    api.memory.another().write(events_every(MINUTE, 200))
    failed = api.on(wrap=_failing(0, error))
    answer = _export(failed, mode=mode)
    assert (answer.status, answer.error[0]) == (status, code)
    assert "Retry-After" in answer.headers
    api.memory.wrap = _failing(0 if mode != "shards" else 1, error, after=1)
    partial = _export(api.on(), mode=mode)
    assert partial.status == 200
    assert partial.headers["Spillway-Complete"] == "false"
    assert partial.headers["Spillway-Reason"] == error.code  # type: ignore[attr-defined]
    assert 0 < len(partial.body) < 200
    api.memory.wrap = lambda call: call
    rest = list(_answers(api.on(), mode=mode, cursor=partial.headers["Spillway-Cursor"]))
    ids = [event["id"] for answer in (partial, *rest) for event in answer.body]
    assert sorted(ids) == [f"{n:07d}" for n in range(200)]


def test_an_unreadable_layout_is_429(api: Api) -> None:
    answer = _export(api.on(wrap=lambda _: throttled_call))
    assert (answer.status, answer.error[0]) == (429, "throttled")


def test_read_units_are_bounded_and_the_reason_is_said(api: Api) -> None:
    def metered(call: Call) -> Call:
        def count(operation: str, request: Mapping[str, Any], /) -> dict[str, Any]:
            response = call(operation, request)
            if operation == "Query":
                response["ConsumedCapacity"] = {"CapacityUnits": 1.5}
            return response

        return count

    api.on(Settings(shards=4), wrap=metered)
    api.memory.another().write(events_every(MINUTE, 40))
    answers = list(_answers(api, max_rcu=3))
    assert len(answers) == 2
    assert answers[0].headers["Spillway-Reason"] == "read_units"
    assert answers[0].headers["Spillway-Read-Units"] == "3.0"
    assert len({event["id"] for answer in answers for event in answer.body}) == 40


def test_an_answer_ends_before_the_functions_time_does(api: Api) -> None:
    def slow(call: Call) -> Call:
        def wait(operation: str, request: Mapping[str, Any], /) -> dict[str, Any]:
            api.memory.clock.sleep(0.4)
            return call(operation, request)

        return wait

    api.on(Settings(shards=16))
    api.memory.another().write(events_every(MINUTE, 40))
    api.on(wrap=slow)
    began = api.memory.clock.seconds
    answers = list(_answers(api))
    assert [answer.headers.get("Spillway-Reason") for answer in answers[:-1]] == ["deadline"]
    assert api.memory.clock.seconds - began < 10
    began = api.memory.clock.seconds
    assert _export(api, left=3.0).headers["Spillway-Reason"] == "deadline"
    assert api.memory.clock.seconds - began < 2


@pytest.mark.parametrize("mode", MODES)
def test_copies_of_both_epochs_and_of_random_shards_come_once(api: Api, mode: str) -> None:
    api.on(Settings(shards=1))
    events = events_every(timedelta(seconds=5), 50)
    api.memory.another().write(events)
    api.memory.store.set_layout("ORD", shards=8)
    api.memory.another().write(events)  # sent again, under the new layout
    assert len(api.memory.stored) > 50
    assert sorted(event["id"] for event in _export(api, mode=mode).body) == [e.id for e in events]
    spread = iter(range(1_000))
    api.memory.random = lambda: (next(spread) % 7) / 7
    again = [Event(series="R", time=e.time, id=e.id, payload=e.payload) for e in events]
    api.on(Settings(mode=ShardingMode.RANDOM, shards=5))
    for _ in range(3):
        api.memory.another().write(again)
    assert len(api.memory.stored) > 200
    found = [event["id"] for event in _export(api, mode=mode, series="R").body]
    assert sorted(found) == [event.id for event in events]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"mode": "random"}, "mode: must be one of shards, blocks, round_robin"),
        ({"mode": ""}, "mode: must be one of shards, blocks, round_robin"),
        ({"pool": "0"}, "pool: must be a whole number of 1 to 8"),
        ({"pool": "9"}, "pool: must be a whole number of 1 to 8"),
        ({"max_rcu": "0"}, "max_rcu: "),
        ({"max_rcu": "x"}, "max_rcu: "),
        ({"limit": "10"}, "limit: is unknown"),
        ({"cursor": "x"}, "cursor: is damaged, or belongs to another query"),
        ({"start": "yesterday"}, "start: must be an RFC 3339"),
    ],
)
def test_a_parameter_that_is_wrong_is_named(api: Api, change: dict[str, str], message: str) -> None:
    answer = _export(api, None, 29.0, **change)
    assert answer.status == 400
    assert answer.error[1].startswith(message)
    assert api.memory.table.counts == {}


def test_described_parameters_are_the_ones_that_are_taken(api: Api) -> None:
    operation = api.get("/v1/openapi.json").body["paths"]["/v1/export"]["get"]
    described = {each["name"]: each["schema"] for each in operation["parameters"]}
    refused = _export(api, other="1")
    assert refused.error[1].endswith(f"known are {', '.join(described)}")
    assert described["mode"]["enum"] == MODES
    answer = _export(api)
    headers = operation["responses"]["200"]["headers"]
    assert {name for name in answer.headers if name.startswith("Spillway")} <= set(headers)
