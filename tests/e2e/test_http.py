"""The deployed API from outside: what goes wrong says so, in one shape, through the whole HTTP stack."""

import json
from typing import Any

import pytest

from tests.e2e.calls import Response, request

pytestmark = [pytest.mark.cloud, pytest.mark.xdist_group("deployed")]

JSON = {"Content-Type": "application/json"}
TIME = "2020-02-29T23:59:59.123456Z"
RANGE = {"start": "2020-01-01T00:00:00Z", "end": "2021-01-01T00:00:00+00:00"}


def event(series: str, event_id: str | None = None, **payload: Any) -> dict[str, Any]:
    given = {"series": series, "time": TIME, "payload": payload}
    return given if event_id is None else {**given, "id": event_id}


def post(url: str, body: Any, **headers: str) -> Response:
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    return request(url, "POST", "/v1/events", body=content, headers={**JSON, **headers})


def read(url: str, series: str) -> list[dict[str, Any]]:
    answer = request(
        url, "GET", "/v1/events", query={"series": series, "consistent": "true", **RANGE}
    )
    assert answer.status == 200
    events: list[dict[str, Any]] = answer.body["events"]
    return events


def refused(answer: Response, status: int, code: str) -> str:
    """Check an error's status and shape and return its message."""
    assert answer.status == status
    assert set(answer.body) == {"error"}
    assert answer.body["error"]["code"] == code
    message: str = answer.body["error"]["message"]
    assert "Traceback" not in message
    return message


@pytest.mark.parametrize(
    ("method", "path"),
    [("GET", "/v2/events"), ("POST", "/v1/nothing"), ("GET", "/"), ("PATCH", "/v1")],
)
def test_an_unknown_path_is_answered_in_the_shape_of_errors(
    url: str, method: str, path: str
) -> None:
    message = refused(request(url, method, path), 404, "unknown_path")
    assert f"{method} {path}" in message


@pytest.mark.parametrize("method", ["PATCH", "TRACE"])
def test_a_method_that_a_path_does_not_have_is_answered_in_the_shape_of_errors(
    url: str, method: str
) -> None:
    message = refused(request(url, method, "/v1/events"), 405, "unknown_method")
    assert message == f"/v1/events has no {method}: it has GET, POST"


@pytest.mark.parametrize("body", [b"", b"{", b'{"events": [', b"\xff", b"[]", b'{"events": []}'])
def test_a_broken_body_is_refused_whole(url: str, body: bytes) -> None:
    assert refused(post(url, body), 400, "invalid_request")


def test_a_body_over_four_megabytes_is_refused(url: str) -> None:
    body = {"events": [event("e2e-large", "a", text="x" * 4_100_000)]}
    assert "4,000,000" in refused(post(url, body), 413, "body_too_large")


def test_events_come_as_lines_too(url: str) -> None:
    series = "e2e-lines"
    lines = b"\n".join(json.dumps(event(series, f"{n}", n=n)).encode() for n in range(3))
    answer = post(url, lines + b"\n", **{"Content-Type": "application/x-ndjson"})
    assert (answer.status, answer.body) == (200, {"accepted": 3, "rejected": []})
    assert [each["payload"]["n"] for each in read(url, series)] == [0, 1, 2]


def test_one_bad_event_does_not_sink_the_others(url: str) -> None:
    series = "e2e-mixed"
    bad = {**event(series, "b"), "time": "yesterday"}
    answer = post(url, {"events": [event(series, "a"), bad, event(series, "c")]})
    assert answer.status == 207
    assert answer.body["accepted"] == 2
    (rejected,) = answer.body["rejected"]
    assert (rejected["index"], rejected["retryable"]) == (1, False)
    assert rejected["message"].startswith("events[1].time: ")
    assert [each["id"] for each in read(url, series)] == ["a", "c"]


def test_names_keep_every_character_on_their_way(url: str) -> None:
    series = "/shared/fire tv+Gen2.txt#1?&=%2F é 🎬"
    written = {
        **event(series, "id +/?%é"),
        "sharding_key": "a#b c+d",
        "payload": {"text": "é\n\0🎬"},
    }
    assert post(url, {"events": [written]}).status == 200
    assert read(url, series) == [written]
    identity = {name: str(written[name]) for name in ("series", "time", "id", "sharding_key")}
    one = request(url, "GET", "/v1/events/one", query={**identity, "consistent": "true"})
    assert (one.status, one.body) == (200, written)


def test_a_request_with_a_key_may_be_sent_again_blindly(url: str) -> None:
    series = "e2e-idempotent"
    body = {"events": [event(series, n=n) for n in range(3)]}
    first, again = (post(url, body, **{"Idempotency-Key": "one & only"}) for _ in range(2))
    assert first.status == again.status == 200
    assert first.body["ids"] == again.body["ids"]
    assert sorted(each["id"] for each in read(url, series)) == sorted(first.body["ids"])


@pytest.mark.parametrize(
    ("name", "value"), [("limit", "1001"), ("cursor", "bad"), ("to", "2020-01-01"), ("x", "1")]
)
def test_a_wrong_parameter_is_named(url: str, name: str, value: str) -> None:
    answer = request(url, "GET", "/v1/events", query={"series": "s", **RANGE, name: value})
    assert answer.status == 400
    assert name in answer.body["error"]["message"]


def test_an_unknown_event_is_not_found_and_an_unknown_series_is_empty(url: str) -> None:
    query = {"series": "e2e-nothing", "time": TIME, "id": "a"}
    refused(request(url, "GET", "/v1/events/one", query=query), 404, "unknown_event")
    assert read(url, "e2e-nothing") == []


def test_the_api_describes_itself(url: str) -> None:
    answer = request(url, "GET", "/v1/openapi.json")
    assert answer.status == 200
    assert answer.body["openapi"].startswith("3.1")
    assert {"/v1/events", "/v1/events/one", "/v1/healthz"} <= set(answer.body["paths"])
    assert request(url, "GET", "/v1/healthz").body == {"status": "ok"}
