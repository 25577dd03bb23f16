"""Invalid input: answers name what is wrong and where, never a 500, and spare other events."""

import json
from datetime import timedelta
from typing import Any, cast

import pytest

from spillway import EventStore
from spillway.timestamps import format_time
from tests.api.conftest import Api
from tests.support.fakes import NOON
from tests.support.requests import event_json

AHEAD = format_time(NOON + timedelta(minutes=5, microseconds=1))
_DEEP = "[" * 3_000 + "]" * 3_000


@pytest.mark.parametrize(
    ("body", "status", "code", "message"),
    [
        (None, 400, "invalid_request", "the body is not valid JSON"),
        ("", 400, "invalid_request", "the body is not valid JSON"),
        ("not json", 400, "invalid_request", "the body is not valid JSON"),
        ("{", 400, "invalid_request", "the body is not valid JSON"),
        ("\ufeff{}", 400, "invalid_request", "the body is not valid JSON"),
        ("\ud800", 400, "invalid_request", "the body is not valid JSON"),
        (b"\xff\xfe", 400, "invalid_request", "the body is not valid JSON"),
        ("[]", 400, "invalid_request", "the body: Expected `object`"),
        ("null", 400, "invalid_request", "the body: Expected `object`"),
        ("{}", 400, "invalid_request", "events: is missing"),
        ('{"events":[]}', 400, "invalid_request", "events: must hold at least one event"),
        ('{"events":{}}', 400, "invalid_request", "events: Expected `array`"),
        ('{"events":null}', 400, "invalid_request", "events: Expected `array`"),
        ('{"events":[],"more":1}', 400, "invalid_request", "unknown field `more`"),
        ('{"events":[{}]}]', 400, "invalid_request", "the body is not valid JSON"),
        ('{"events":[{"a":"}]}', 400, "invalid_request", "the body is not valid JSON"),
        (_DEEP, 400, "invalid_request", "the body: Expected `object`"),
        ('{"a":' * 3_000, 400, "invalid_request", "unknown field `a`"),
        ('{"events":' + "[" * 100_000, 400, "invalid_request", "the body is not valid JSON"),
        ('{"events":[' + "1," * 1_000 + "1]}", 413, "too_many_events", "events: holds 1,001"),
        ('{"events":["' + "x" * 4_000_000 + '"]}', 413, "body_too_large", "4,000,000"),
    ],
)
def test_a_body_that_is_wrong_as_a_whole_is_refused(
    api: Api, body: Any, status: int, code: str, message: str
) -> None:
    answer = api.post(body)
    assert (answer.status, answer.error[0]) == (status, code)
    assert message in answer.error[1]
    assert api.memory.table.counts == {}


@pytest.mark.parametrize("encoded", ["not base64!", "é", "YQ", "\ud800"])
def test_a_body_that_is_not_the_base64_it_claims_is_refused(api: Api, encoded: str) -> None:
    handler = api.handlers["ingest"]

    def with_base64(event: dict[str, Any], context: Any) -> dict[str, Any]:
        answer: dict[str, Any] = handler(
            {**event, "body": encoded, "isBase64Encoded": True}, context
        )
        return answer

    api.handlers["ingest"] = with_base64
    answer = api.post("")
    assert (answer.status, answer.error) == (
        400,
        ("invalid_request", "the body is not valid base64"),
    )


@pytest.mark.parametrize("body", ["", "\n", " \r\n\n"])
def test_no_lines_are_no_events(api: Api, body: str) -> None:
    answer = api.post(body, content_type="application/x-ndjson")
    assert answer.error == ("invalid_request", "events: must hold at least one event")


FIELDS: list[tuple[dict[str, Any], str, str]] = [
    ({"series": ...}, "invalid_event", "series: is missing"),
    ({"series": ""}, "invalid_event", "series: must be 1 to 1,024 bytes"),
    ({"series": 7}, "invalid_event", "series: Expected `str`"),
    ({"series": None}, "invalid_event", "series: Expected `str`"),
    ({"series": "é" * 513}, "invalid_event", "series: must be 1 to 1,024 bytes"),
    ({"time": ...}, "invalid_event", "time: is missing"),
    ({"time": 978307260}, "invalid_event", "time: Expected `str`"),
    ({"time": "2001-01-01T00:01:00"}, "invalid_event", "time: must be an RFC 3339 time with zone"),
    ({"time": "yesterday"}, "invalid_event", "time: must be an RFC 3339"),
    ({"time": "2001-02-30T00:00:00Z"}, "invalid_event", "time: is not a date and time"),
    ({"time": "0000-01-01T00:00:00Z"}, "invalid_event", "time: is not a date and time"),
    ({"time": "10000-01-01T00:00:00Z"}, "invalid_event", "time: must be an RFC 3339"),
    ({"time": "0001-01-01T00:00:00+01:00"}, "invalid_event", "time: must lie in the years"),
    ({"time": AHEAD}, "in_future", "time: lies more than 0:05:00 ahead"),
    ({"id": "a#b"}, "invalid_event", "id: must not contain #"),
    ({"id": ""}, "invalid_event", "id: must be 1 to 128 bytes"),
    ({"id": "é" * 65}, "invalid_event", "id: must be 1 to 128 bytes"),
    ({"id": 7}, "invalid_event", "id: Expected `str | null`"),
    ({"sharding_key": "é" * 257}, "invalid_event", "sharding_key: must be 1 to 512 bytes"),
    ({"sharding_key": ""}, "invalid_event", "sharding_key: must be 1 to 512 bytes"),
    ({"payload": ...}, "invalid_event", "payload: is missing"),
    ({"payload": [1]}, "invalid_event", "payload: Expected `object`"),
    ({"payload": "text"}, "invalid_event", "payload: Expected `object`"),
    ({"payload": None}, "invalid_event", "payload: Expected `object`"),
    ({"payload": {"a": "x" * 410_000}}, "item_too_large", "payload: makes an item of 410,"),
    ({"more": 1}, "invalid_event", "unknown field `more`"),
    ({"Series": "ORD"}, "invalid_event", "unknown field `Series`"),
]
TEXTS = [
    ('{"series":"ORD","payload":{"a":NaN}}', "invalid_event", "NaN is no JSON number"),
    ('{"series":"ORD","payload":{"a":-Infinity}}', "invalid_event", "-Infinity is no JSON number"),
    (json.dumps(event_json(payload=0)).replace(": 0", ":1e999"), "invalid_event", "payload"),
    (
        json.dumps(event_json(payload=0)).replace(": 0", ':{"a":1e999}'),
        "invalid_event",
        "Number out of range",
    ),
    (
        json.dumps(event_json(payload=0)).replace(": 0", f':{{"a":{_DEEP}}}'),
        "invalid_event",
        "payload: is nested too deeply",
    ),
    (
        json.dumps(event_json(payload=0)).replace(": 0", f':{{"a":{"[" * 300}{"]" * 300}}}'),
        "invalid_event",
        "payload: is nested too deeply",
    ),
    (
        json.dumps(event_json(payload=0)).replace(": 0", ':{"a":"\\ud800"}'),
        "invalid_event",
        "lone surrogate",
    ),
    (
        json.dumps(event_json(payload=0)).replace(": 0", ':{"\\udfff":1}'),
        "invalid_event",
        "lone surrogate",
    ),
    ('{"series":"\\ud800"}', "invalid_event", "lone surrogate"),
    ('{"\\ud800":1}', "invalid_event", "lone surrogate"),
    ("7", "invalid_event", "Expected `object`"),
    ("null", "invalid_event", "Expected `object`"),
    ('"text"', "invalid_event", "Expected `object`"),
    ("[]", "invalid_event", "Expected `object`"),
    ('{"series":}', "invalid_event", "is not valid JSON"),
]


def _texts() -> list[tuple[str, str, str]]:
    fields = [(json.dumps(event_json(**change)), code, said) for change, code, said in FIELDS]
    return fields + TEXTS


@pytest.mark.parametrize(("text", "code", "said"), _texts(), ids=lambda value: str(value)[:40])
@pytest.mark.parametrize("form", ["json", "ndjson", "base64"])
def test_one_bad_event_is_named_and_does_not_sink_the_others(
    api: Api, text: str, code: str, said: str, form: str
) -> None:
    events = [json.dumps(event_json(name)) for name in "abc"] + [text, json.dumps(event_json("d"))]
    if form == "ndjson":
        answer = api.post("\n".join(events).encode(), content_type="application/x-ndjson")
    else:
        body = f'{{"events":[{",".join(events)}]}}'
        answer = api.post(body.encode() if form == "base64" else body)
    assert (answer.status, answer.body["accepted"]) == (207, 4)
    (rejected,) = answer.body["rejected"]
    assert (rejected["index"], rejected["code"], rejected["retryable"]) == (3, code, False)
    assert rejected["message"].startswith("events[3]")
    assert said in rejected["message"]
    assert len(api.memory.stored) == 4


def test_raw_bytes_that_are_no_utf_8_spoil_only_their_event(api: Api) -> None:
    bad = json.dumps(event_json(payload={"a": "?"})).encode().replace(b"?", b"\xff")
    good = json.dumps(event_json("good")).encode()
    answer = api.post(b'{"events":[' + bad + b"," + good + b"]}")
    assert (answer.status, answer.body["accepted"]) == (207, 1)
    assert answer.body["rejected"][0]["index"] == 0


def test_text_that_api_gateway_hands_over_with_a_lone_surrogate_spoils_only_its_event(
    api: Api,
) -> None:
    events = [event_json("a", payload={"a": "\ud800"}), event_json("b")]
    answer = api.post(json.dumps({"events": events}, ensure_ascii=False))
    assert (answer.status, answer.body["accepted"]) == (207, 1)


def test_only_bad_events_are_400_and_nothing_is_worth_retrying(api: Api) -> None:
    answer = api.post([event_json(series=""), event_json(time="x")])
    assert (answer.status, answer.body["accepted"]) == (400, 0)
    assert not any(each["retryable"] for each in answer.body["rejected"])
    assert answer.error[0] == "invalid_event"
    assert "events[0].series: " in answer.error[1]
    assert "Retry-After" not in answer.headers


def test_brackets_quotes_and_commas_inside_text_do_not_confuse_the_parting_of_events(
    api: Api,
) -> None:
    nasty = '],[{"}\\",'
    events = [event_json(str(n), payload={nasty: [nasty, {"a": [nasty]}]}) for n in range(3)]
    body = json.dumps({"events": [*events, "?"]}).replace('"?"', '{"a":NaN}')
    answer = api.post(body)
    assert (answer.status, answer.body["accepted"]) == (207, 3)
    assert answer.body["rejected"][0]["index"] == 3


QUERIES: list[tuple[dict[str, Any], str, str]] = [
    ({"series": None}, "invalid_query", "series: is missing"),
    ({"series": ""}, "invalid_query", "series: must be 1 to 1,024 bytes"),
    ({"series": "x" * 1_025}, "invalid_query", "series: must be 1 to 1,024 bytes"),
    ({"start": None}, "invalid_query", "start: is missing"),
    ({"end": None}, "invalid_query", "end: is missing"),
    (
        {"start": "2026-05-01T00:00:00"},
        "invalid_query",
        "start: must be an RFC 3339 time with zone",
    ),
    ({"end": "tomorrow"}, "invalid_query", "end: must be an RFC 3339 time with zone"),
    ({"end": "2026-04-31T00:00:00Z"}, "invalid_query", "end: is not a date and time"),
    ({"start": "2026-06-02T12:00:00Z"}, "invalid_query", "start: must be before `end`"),
    ({"start": "2026-06-03T00:00:00Z"}, "invalid_query", "start: must be before `end`"),
    ({"limit": 0}, "invalid_query", "limit: must be a whole number of 1 to 1,000"),
    ({"limit": 1_001}, "invalid_query", "limit: must be a whole number of 1 to 1,000"),
    ({"limit": -1}, "invalid_query", "limit: must be a whole number"),
    ({"limit": "many"}, "invalid_query", "limit: must be a whole number"),
    ({"limit": ""}, "invalid_query", "limit: must be a whole number"),
    ({"limit": "1e2"}, "invalid_query", "limit: must be a whole number"),
    ({"limit": "٣"}, "invalid_query", "limit: must be a whole number"),
    ({"limit": "9" * 5_000}, "invalid_query", "limit: must be a whole number"),
    ({"order": "up"}, "invalid_query", "order: must be one of asc, desc"),
    ({"source": "cache"}, "invalid_query", "source: must be one of auto, table, index"),
    ({"consistent": "yes"}, "invalid_query", "consistent: must be true or false"),
    (
        {"consistent": "true", "source": "index"},
        "invalid_query",
        "source: an index has no consistent",
    ),
    ({"sharding_key": ""}, "invalid_query", "sharding_key: must be 1 to 512 bytes"),
    ({"sharding_key": "x" * 513}, "invalid_query", "sharding_key: must be 1 to 512 bytes"),
    ({"cursor": "garbage"}, "invalid_cursor", "cursor: is damaged"),
    ({"cursor": ""}, "invalid_cursor", "cursor: is damaged"),
    ({"cursor": "é\0"}, "invalid_cursor", "cursor: is damaged"),
    ({"more": "1"}, "invalid_query", "more: is unknown; known are series, start, end"),
]


@pytest.mark.parametrize(("change", "code", "said"), QUERIES)
def test_each_wrong_query_parameter_is_named(
    api: Api, change: dict[str, Any], code: str, said: str
) -> None:
    answer = api.page(**change)
    assert (answer.status, answer.error[0]) == (400, code)
    assert answer.error[1].startswith(said)


@pytest.mark.parametrize(
    "raw",
    ["series=ORD&series=LGA", "series=%ff", "series=%ED%A0%80", "&&&", "series", "%", "\ud800=1"],
)
def test_a_query_string_that_is_wrong_is_refused(api: Api, raw: str) -> None:
    answer = api.get("/v1/events", f"start=2026-05-01T00:00:00Z&end=2026-06-01T00:00:00Z&{raw}")
    assert (answer.status, answer.error[0]) == (400, "invalid_query")


def test_a_plus_sign_that_was_not_escaped_is_hinted_at(api: Api) -> None:
    answer = api.get("/v1/events", "series=ORD&start=2026-05-01T00:00:00+01:00&end=x")
    assert "%2B" in answer.error[1]


@pytest.mark.parametrize(
    "change",
    [
        {"series": "LGA"},
        {"order": "desc"},
        {"end": "2026-06-01T12:00:00.5Z"},
        {"sharding_key": "k"},
    ],
)
def test_a_cursor_of_another_query_is_refused(api: Api, change: dict[str, str]) -> None:
    api.post([event_json(str(n)) for n in range(5)])
    cursor = api.page(limit=2).body["cursor"]
    answer = api.page(limit=2, cursor=cursor, **change)
    assert (answer.status, answer.error[0]) == (400, "invalid_cursor")
    assert "another query" in answer.error[1]


def test_an_unknown_series_is_an_empty_page(api: Api) -> None:
    answer = api.page(series="nowhere")
    assert (answer.status, answer.body) == (200, {"events": [], "cursor": None, "complete": True})


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"series": ""}, "series: "),
        ({"time": "x"}, "time: "),
        ({"id": ""}, "id: "),
        ({"id": "a#b"}, "id: "),
        ({"sharding_key": ""}, "sharding_key: "),
        ({"limit": "1"}, "limit: is unknown"),
        ({"consistent": "1"}, "consistent: "),
    ],
)
def test_each_wrong_part_of_an_identity_is_named(
    api: Api, change: dict[str, str], said: str
) -> None:
    query = {"series": "ORD", "time": format_time(NOON), "id": "1", **change}
    answer = api.get("/v1/events/one", query)
    assert (answer.status, answer.error[0]) == (400, "invalid_query")
    assert answer.error[1].startswith(said)


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/"),
        ("GET", "/v1"),
        ("GET", "/v1/nothing"),
        ("GET", "/v2/events"),
        ("GET", "/v1/events/"),
        ("GET", "/v1/events/one/more"),
        ("TRACE", "/v1/nothing"),
        ("GET", "/v1/événements"),
        ("GET", "/v1/\ud800"),
        ("GET", "//v1/events"),
    ],
)
def test_an_unknown_path_is_404_in_the_shape_of_every_error(
    api: Api, method: str, path: str
) -> None:
    answer = api.request(method, path)
    assert (answer.status, answer.error[0]) == (404, "unknown_path")
    assert "/v1/openapi.json" in answer.error[1]


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("PATCH", "/v1/events", "GET, POST"),
        ("HEAD", "/v1/events", "GET, POST"),
        ("OPTIONS", "/v1/events/one", "DELETE, GET"),
        ("TRACE", "/v1/layout", "GET, PUT"),
        ("POST", "/v1/export", "GET"),
        ("DELETE", "/v1/healthz", "GET"),
    ],
)
def test_a_method_that_a_path_does_not_have_is_405_and_names_those_it_has(
    api: Api, method: str, path: str, allowed: str
) -> None:
    answer = api.request(method, path)
    assert (answer.status, answer.error[0]) == (405, "unknown_method")
    assert answer.headers["Allow"] == allowed
    assert answer.error[1] == f"{path} has no {method}: it has {allowed}"


def test_a_defect_is_500_without_a_word_of_the_code(api: Api) -> None:
    class Broken:
        def read(self, *_: Any, **__: Any) -> None:
            raise ZeroDivisionError("secret")

    answer = api.over(lambda: cast("EventStore", Broken())).page()
    assert (answer.status, answer.error[0]) == (500, "internal_error")
    assert "secret" not in str(answer.raw)
    assert "Zero" not in str(answer.raw)
    assert "ZeroDivisionError" in api.log.getvalue()
