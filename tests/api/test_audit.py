"""The admin function's audit lines: who deleted what, who set which counts, and what came of it."""

import json
from collections.abc import Mapping
from typing import Any

import pytest

from spillway.dynamodb.port import Call
from spillway.timestamps import format_time
from tests.api.conftest import Api
from tests.support.fakes import NOON
from tests.support.faults import throttled_call
from tests.support.requests import event_json

ANN = "arn:aws:sts::123456789012:assumed-role/ops/ann"
IDENTITY = {"series": "ORD", "time": format_time(NOON), "id": "1"}
DELETE = ("DELETE", "/v1/events/one")
PUT = ("PUT", "/v1/layout")


def _audited(api: Api) -> list[dict[str, Any]]:
    lines = [json.loads(line) for line in api.log.getvalue().splitlines()]
    return [line for line in lines if line["message"] == "audit"]


def _entry(api: Api) -> Mapping[str, Any]:
    (line,) = _audited(api)
    fields = ("action", "caller", "ip", "request", "target", "status", "outcome")
    return {name: line[name] for name in fields}


@pytest.mark.parametrize("found", [True, False])
def test_a_deletion_is_logged_with_its_caller_its_identity_and_whether_it_found_any(
    api: Api, *, found: bool
) -> None:
    identity = {**IDENTITY, "sharding_key": "k"}
    if found:
        api.post([event_json(sharding_key="k")])
    api.request(*DELETE, identity, caller=ANN)
    assert _entry(api) == {
        "action": "DELETE /v1/events/one",
        "caller": ANN,
        "ip": "127.0.0.1",
        "request": "request",
        "target": identity,
        "status": 200,
        "outcome": {"deleted": found},
    }


def test_a_layout_set_by_hand_is_logged_with_what_was_asked_for_and_what_is_in_force(
    api: Api,
) -> None:
    api.request(*PUT, {"series": "ORD"}, body='{"shards":16}', caller=ANN)
    assert _entry(api) == {
        "action": "PUT /v1/layout",
        "caller": ANN,
        "ip": "127.0.0.1",
        "request": "request",
        "target": {"series": "ORD", "shards": 16},
        "status": 200,
        "outcome": {"version": 2, "shards": 16, "index_shards": 1},
    }


@pytest.mark.parametrize(
    ("query", "body", "target", "code"),
    [
        ({"series": "ORD"}, '{"shards":3}', {"shards": 3}, "invalid_layout"),
        ({"series": "ORD"}, '{"shards":"secret"}', {}, "invalid_request"),
        ({"series": "ORD"}, "secret", {}, "invalid_request"),
        ({"series": "ORD"}, b"\xff", {}, "invalid_request"),
        (
            {"series": "ORD", "other": "secret"},
            '{"index_shards":2}', {"index_shards": 2}, "invalid_query",
        ),
        ("series=ORD&%", '{"index_shards":2}', {"index_shards": 2}, "invalid_query"),
    ],
)  # fmt: skip
def test_a_request_that_is_refused_is_logged_without_what_is_none_of_its_fields(
    api: Api, query: Any, body: Any, target: dict[str, Any], code: str
) -> None:
    api.request(*PUT, query, body=body, caller=ANN)
    entry = _entry(api)
    assert entry["target"] == {"series": "ORD", **target}
    assert (entry["status"], entry["outcome"]) == (400, {"error": code})
    assert "secret" not in api.log.getvalue()


def test_a_change_that_fails_is_logged_with_its_error(api: Api) -> None:
    def refuse(_: Call) -> Call:
        return throttled_call

    api.on(wrap=refuse)
    api.request(*DELETE, IDENTITY, caller=ANN)
    assert (_entry(api)["status"], _entry(api)["outcome"]) == (429, {"error": "throttled"})


def test_without_a_signature_no_caller_is_named(api: Api) -> None:
    api.request(*DELETE, IDENTITY)
    assert _entry(api)["caller"] == "-"


@pytest.mark.parametrize("query", ["series=%ff%00", "series=\ud800", "series=A&series=B", ""])
def test_a_strange_query_is_logged_once_as_valid_text(api: Api, query: str) -> None:
    api.request(*DELETE, query, caller=ANN)
    assert len(_audited(api)) == 1
    api.log.getvalue().encode()


def test_the_payload_of_a_deleted_event_is_not_logged(api: Api) -> None:
    api.post([event_json(payload={"a": "correct horse"})])
    api.request(*DELETE, IDENTITY, body='{"a":"correct horse"}', caller=ANN)
    assert _entry(api)["outcome"] == {"deleted": True}
    assert "horse" not in api.log.getvalue()


def test_reads_and_writes_leave_no_audit_line(api: Api) -> None:
    api.post([event_json()])
    api.page()
    assert _audited(api) == []
