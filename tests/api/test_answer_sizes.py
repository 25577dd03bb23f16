"""No answer comes near the 6 MB that Lambda sends, whatever a client sent and whatever failed."""

import json
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import pytest

from spillway import Settings
from spillway.dynamodb.port import Call
from spillway.timestamps import format_time
from tests.api.conftest import Api
from tests.scanning.world import small_pages
from tests.support.fakes import NOON
from tests.support.gateway import body_as_lambda_sends_it
from tests.support.requests import event_json
from tests.support.stores import DAY, event_at

LAMBDA_LIMIT = 6 * 1024 * 1024
MAX_ECHO = 100
LONG = "x" * 9_000
VAST = "x" * 3_900_000
RANGE = {"series": "ORD", "start": format_time(NOON - DAY), "end": format_time(NOON)}
CASES: dict[str, tuple[str, str, Any, Any]] = {
    "name of a parameter": ("GET", "/v1/events", {**RANGE, LONG: "1"}, None),
    "parameter without a value": ("GET", "/v1/events", LONG, None),
    "limit": ("GET", "/v1/events", {**RANGE, "limit": LONG}, None),
    "max_rcu": ("GET", "/v1/events", {**RANGE, "max_rcu": LONG}, None),
    "flag": ("GET", "/v1/events", {**RANGE, "consistent": LONG}, None),
    "order": ("GET", "/v1/events", {**RANGE, "order": LONG}, None),
    "time": ("GET", "/v1/events", {**RANGE, "start": LONG}, None),
    "cursor": ("GET", "/v1/events", {**RANGE, "cursor": LONG}, None),
    "series": ("GET", "/v1/events", {**RANGE, "series": LONG}, None),
    "interval": ("GET", "/v1/aggregates", {**RANGE, "interval": LONG}, None),
    "field": ("GET", "/v1/aggregates", {**RANGE, "field": LONG}, None),
    "functions": ("GET", "/v1/aggregates", {**RANGE, "functions": LONG}, None),
    "fill": ("GET", "/v1/aggregates", {**RANGE, "fill": LONG}, None),
    "mode": ("GET", "/v1/export", {**RANGE, "mode": LONG}, None),
    "pool": ("GET", "/v1/export", {**RANGE, "pool": "9" * 9_000}, None),
    "id": ("GET", "/v1/events/one", {"series": "ORD", "time": RANGE["end"], "id": LONG}, None),
    "path": ("GET", f"/v1/{LONG}", "", None),
    "method": (LONG, "/v1/events", "", None),
    "field of an event": ("POST", "/v1/events", "", {"events": [{**event_json(), VAST: 1}]}),
    "field with an index": ("POST", "/v1/events", "", {"events": [event_json(payload=[VAST])]}),
    "id of an event": ("POST", "/v1/events", "", {"events": [event_json(VAST)]}),
    "series of an event": ("POST", "/v1/events", "", {"events": [event_json(series=VAST)]}),
    "time of an event": ("POST", "/v1/events", "", {"events": [event_json(time=VAST)]}),
    "field of a body": ("POST", "/v1/events", "", {"events": [], VAST: 1}),
    "field of a layout": ("PUT", "/v1/layout", {"series": "ORD"}, {VAST: 1}),
    "count of a layout": ("PUT", "/v1/layout", {"series": "ORD"}, {"shards": VAST}),
    "text of a body": ("POST", "/v1/events", "", VAST),
}


@pytest.mark.parametrize("case", CASES)
def test_an_error_echoes_little_of_what_the_client_sent(api: Api, case: str) -> None:
    method, path, query, body = CASES[case]
    text = None if body is None else json.dumps(body)
    answer = api.request(method, path, query, body=text)
    assert answer.status >= 400
    assert answer.raw["body"].count("x") <= 2 * MAX_ECHO + 50  # error and rejected event
    assert "x" * (MAX_ECHO + 1) not in answer.raw["body"]
    assert body_as_lambda_sends_it(answer) < 3_000


def test_an_echo_that_was_cut_says_so_and_what_is_wrong(api: Api) -> None:
    unknown = api.get("/v1/events", {**RANGE, LONG: "1"}).error[1]
    assert unknown.startswith("x" * 90)
    assert "…: is unknown; known are series, start" in unknown
    limit = api.get("/v1/events", {**RANGE, "limit": LONG}).error[1]
    assert limit.startswith("limit: must be a whole number of 1 to 1,000, not 'x")
    assert "…" in limit


KINDS = {"plain": "x", "accents": "é", "emoji": "😀", "controls": "\x01", "quotes": '"\\'}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("form", ["json", "ndjson"])
def test_a_thousand_rejected_events_fit_into_an_answer(api: Api, kind: str, form: str) -> None:
    character = KINDS[kind]
    name = character * (3_500 // len(json.dumps(character)))
    events: list[dict[str, Any]] = [
        event_json(name[: 128 // len(character.encode())], **{name: n}) for n in range(996)
    ]
    # The service makes one id, so all are answered.
    events += [event_json(None), *(event_json(name) for _ in range(3))]
    if form == "ndjson":
        body = "\n".join(map(json.dumps, events))
        answer = api.post(body.encode(), content_type="application/x-ndjson")
    else:
        answer = api.post(json.dumps({"events": events}).encode())
    assert (answer.status, len(answer.body["rejected"])) == (207, 999)
    assert answer.body["ids"][996] is not None
    assert answer.body["ids"][997:] == [None] * 3
    assert body_as_lambda_sends_it(answer) < LAMBDA_LIMIT


def test_thousands_of_invalid_ids_are_not_echoed(api: Api) -> None:
    events = [event_json(None), event_json("é" * 900_000), event_json(series="", event_id="a")]
    answer = api.post(json.dumps({"events": events}, ensure_ascii=False).encode())
    assert (answer.status, answer.body["accepted"]) == (207, 1)
    assert answer.body["ids"][1:] == [None, "a"]
    assert body_as_lambda_sends_it(answer) < 2_000


@pytest.mark.parametrize("path", ["/v1/events", "/v1/aggregates"])
@pytest.mark.parametrize("character", ["\x01", "é", "日", "😀"])
def test_what_is_missing_is_counted_and_named_in_part(api: Api, path: str, character: str) -> None:
    waits = [timedelta(seconds=6)]

    def slow(call: Call) -> Call:
        call = small_pages(call, 2)

        def waiting(operation: str, request: Mapping[str, Any], /) -> dict[str, Any]:
            if operation == "Query" and waits:
                api.memory.clock.forward(waits.pop())
            return call(operation, request)

        return waiting

    series = character * (1_024 // len(character.encode()))
    api.on(Settings(shards=256))
    events = [event_at(NOON - timedelta(seconds=n), f"{n}", series=series) for n in range(1, 1_501)]
    for start in range(0, 1_500, 250):
        assert not api.memory.another().write(events[start : start + 250]).rejected
    api.on(wrap=slow)
    query = {**RANGE, "series": series, "source": "table", "limit": "1000"}
    if path == "/v1/aggregates":
        query["interval"] = "1s"  # a row that was not read to its end is given out by no answer
    answer = api.get(path, query)
    assert (answer.status, answer.body["complete"]) == (200, False)
    assert answer.body["reason"] == "deadline"
    assert 200 < answer.body["missing_count"] <= 256
    assert len(answer.body["missing"]) == 20
    assert all(each["partition"].startswith(f"{series}#") for each in answer.body["missing"])
    rest = {**answer.body, "events": [], "rows": []}
    assert len(json.dumps(json.dumps(rest))) < 200_000
    assert body_as_lambda_sends_it(answer) < 4_400_000 < LAMBDA_LIMIT
