import json
import re
from pathlib import Path
from typing import Any

import msgspec
import orjson
import pytest

from lambdas.api.types import RejectedEvent
from lambdas.environment import read_environment
from spillway import Rejected, Settings, ShardingMode
from spillway.dynamodb.port import RefusedError, StorageError, ThrottledError, UnreachableError
from spillway.settings import Growth
from tests.api.conftest import ENVIRONMENT, Api
from tests.support.faults import Fault, FaultyCall, throttled_call
from tests.support.requests import event_json
from tests.support.stores import MemoryStore


def _events(count: int, **change: Any) -> list[dict[str, Any]]:
    return [event_json(f"{n:04}", **change) for n in range(count)]


def test_accepted_events_are_counted_and_stored(api: Api) -> None:
    answer = api.post(_events(30))
    assert (answer.status, answer.body) == (200, {"accepted": 30, "rejected": []})
    assert len(api.memory.stored) == 30
    assert api.memory.stored[0]["payload"] == {"S": '{"delay":33}'}


def test_a_thousand_events_are_taken_at_once(api: Api) -> None:
    assert api.post(_events(1_000)).body["accepted"] == 1_000


def test_numbers_and_text_of_a_payload_come_back_as_they_were_sent(api: Api) -> None:
    text = '{"big":1180591620717411303424,"e":1e23,"small":5e-324,"z":-0.0,"t":"é😀\\u0000"}'
    body = f'{{"events":[{json.dumps(event_json(payload=0))}]}}'.replace(
        '"payload": 0', f'"payload":{text}'
    )
    assert api.post(body).status == 200
    (event,) = api.page().body["events"]
    assert event["payload"] == json.loads(text)


@pytest.mark.parametrize(
    "content_type", ["application/x-ndjson", "Application/X-NDJSON; charset=utf-8"]
)
@pytest.mark.parametrize("newline", ["\n", "\r\n", "\n\n \n"])
def test_lines_of_json_are_taken_too(api: Api, content_type: str, newline: str) -> None:
    body = newline.join(json.dumps(each) for each in _events(3)) + newline
    answer = api.post(body.encode(), content_type=content_type)
    assert (answer.status, answer.body["accepted"]) == (200, 3)


def test_one_bad_line_does_not_sink_the_others(api: Api) -> None:
    lines = [json.dumps(event_json("1")), "{not json", json.dumps(event_json("2"))]
    answer = api.post("\n".join(lines).encode(), content_type="application/x-ndjson")
    assert (answer.status, answer.body["accepted"]) == (207, 2)
    assert answer.body["rejected"][0]["index"] == 1


def test_base64_bodies_are_decoded(api: Api) -> None:
    assert api.post(orjson.dumps({"events": _events(2)})).body["accepted"] == 2


def test_ids_are_returned_in_order_where_the_service_made_any(api: Api) -> None:
    answer = api.post([event_json("mine"), event_json(None), event_json("x" * 129)])
    assert answer.status == 207
    first, made, third = answer.body["ids"]
    assert (first, third) == ("mine", None)  # too long to be an id
    assert {item["SK"]["S"].rpartition("#")[2] for item in api.memory.stored} == {"mine", made}
    assert "ids" not in api.post([event_json("mine")]).body


def test_ids_are_returned_for_events_whose_outcome_is_unknown(api: Api) -> None:
    api.on(wrap=lambda call: FaultyCall(call, [Fault.LOST_REPLY] * 1_000))
    answer = api.post([event_json(None)])
    (rejected,) = answer.body["rejected"]
    assert (answer.status, rejected["code"]) == (503, "storage_unavailable")
    api.on(wrap=lambda call: FaultyCall(call, [Fault.NONE] * 2 + [Fault.LOST_REPLY] * 1_000))
    answer = api.post([event_json(None)])
    (rejected,) = answer.body["rejected"]
    assert (rejected["code"], rejected["retryable"]) == ("unknown_outcome", True)
    assert answer.body["ids"] == [api.memory.stored[0]["SK"]["S"].rpartition("#")[2]]


@pytest.mark.parametrize(
    "settings", [Settings(shards=8), Settings(mode=ShardingMode.RANDOM, shards=3)]
)
def test_a_request_with_an_idempotency_key_may_be_sent_again_blindly(
    api: Api, settings: Settings
) -> None:
    api.on(settings)
    events = [event_json(None, payload={"n": n}) for n in range(5)] + [event_json("mine")]
    first, again = (api.post(events, idempotency_key="request-7") for _ in range(2))
    assert first.body == again.body
    assert len(set(first.body["ids"])) == 6
    assert len(api.page().body["events"]) == 6
    other = api.post(events, idempotency_key="request-8")
    assert not set(other.body["ids"][:5]) & set(first.body["ids"])


def test_without_an_idempotency_key_equal_events_are_different_events(api: Api) -> None:
    api.post([event_json(None), event_json(None)])
    assert len(api.page().body["events"]) == 2


def test_an_idempotency_key_survives_a_lost_answer(api: Api) -> None:
    api.on(wrap=lambda call: FaultyCall(call, [Fault.NONE] * 2 + [Fault.LOST_REPLY] * 1_000))
    assert api.post([event_json(None)], idempotency_key="k").status == 503
    api.memory.wrap = lambda call: call
    assert api.on().post([event_json(None)], idempotency_key="k").status == 200
    assert len(api.memory.stored) == 1


@pytest.mark.parametrize("key", ["", "x" * 256])
def test_an_idempotency_key_has_1_to_255_characters(api: Api, key: str) -> None:
    answer = api.post([event_json(None)], idempotency_key=key)
    assert (answer.status, answer.error[0]) == (400, "invalid_request")
    assert answer.error[1].startswith("Idempotency-Key: ")


def test_an_idempotency_key_of_any_characters_is_taken(api: Api) -> None:
    assert api.post([event_json(None)], idempotency_key="é\ud800").status == 200


def test_the_same_event_twice_is_accepted_twice_and_stored_once(api: Api) -> None:
    answer = api.post([event_json(), event_json()])
    assert (answer.status, answer.body["accepted"]) == (200, 2)
    assert len(api.memory.stored) == 1


def test_one_identity_with_two_payloads_is_refused_for_the_second(api: Api) -> None:
    answer = api.post([event_json(), event_json(payload={"delay": 34})])
    (rejected,) = answer.body["rejected"]
    assert (answer.status, answer.body["accepted"]) == (207, 1)
    assert (rejected["index"], rejected["code"], rejected["retryable"]) == (
        1,
        "duplicate_event",
        False,
    )


def test_everything_throttled_is_429_with_retry_after(api: Api) -> None:
    answer = api.on(wrap=lambda _: throttled_call).post(_events(2))
    assert (answer.status, answer.headers["Retry-After"]) == (429, "1")
    assert answer.error[0] == "throttled"
    assert [each["code"] for each in answer.body["rejected"]] == ["throttled"] * 2
    assert all(each["retryable"] for each in answer.body["rejected"])


@pytest.mark.parametrize("fault", [Fault.UNREACHABLE, Fault.LOST_REQUEST])
def test_storage_out_of_reach_is_503_with_retry_after(api: Api, fault: Fault) -> None:
    api.on(wrap=lambda call: FaultyCall(call, [fault] * 1_000))
    answer = api.post(_events(2))
    assert (answer.status, answer.headers["Retry-After"]) == (503, "2")
    assert answer.error[0] == "storage_unavailable"


def test_storage_that_refuses_is_503(api: Api) -> None:
    def refuse(operation: str, _: Any, /) -> dict[str, Any]:
        raise RefusedError("AccessDeniedException", operation)

    answer = api.on(wrap=lambda _: refuse).post(_events(1))
    assert (answer.status, answer.body["rejected"][0]["code"]) == (503, "storage_refused")


def _slow(api: Api, error: StorageError | None) -> None:
    """Let each request take eight seconds, and each batch fail with `error`."""

    def call(operation: str, request: Any, /) -> dict[str, Any]:
        api.memory.clock.seconds += 8
        if error is not None and operation == "BatchWriteItem":
            raise error
        return api.memory.table(operation, request)

    api.on(Settings(growth=Growth(policy=None)), wrap=lambda _: call)


@pytest.mark.parametrize(
    ("error", "status", "code", "retry_after"),
    [
        (None, 503, "deadline", "2"),
        (ThrottledError("ThrottlingException", "slow down"), 429, "throttled", "1"),
        (UnreachableError("EndpointConnectionError", "no"), 503, "storage_unavailable", "2"),
    ],
)
def test_time_that_is_up_is_503_unless_it_went_by_throttled(
    api: Api, error: StorageError | None, status: int, code: str, retry_after: str
) -> None:
    _slow(api, error)
    # Without an error, other series use the time up: none of these gets its layout.
    series = [f"s-{n}" for n in range(3)] if error is None else ["ORD"] * 50
    answer = api.post([event_json(f"{n}", series=name) for n, name in enumerate(series)])
    assert (answer.status, answer.headers["Retry-After"]) == (status, retry_after)
    assert answer.error[0] == code
    codes = {each["code"] for each in answer.body["rejected"]}
    assert codes == {"deadline", code}
    assert all(each["retryable"] for each in answer.body["rejected"])


def test_events_that_time_was_too_short_for_are_207_beside_accepted_ones(api: Api) -> None:
    _slow(api, None)
    answer = api.post(_events(50))
    assert (answer.status, answer.body["accepted"]) == (207, 25)
    assert {each["code"] for each in answer.body["rejected"]} == {"deadline"}


CODES = re.compile(r"[a-z]+_[a-z_]+|throttled|deadline")


def test_codes_of_events_are_the_same_in_the_library_the_description_and_the_page() -> None:
    page = (Path(__file__).parents[2] / "docs" / "api.md").read_text()
    table = page.partition("| code of an event |")[2].partition("\n\n")[0]
    told = set(re.findall(r"`(\w+)`", table))
    library = (Rejected.__doc__ or "").partition("code:")[2].partition("where:")[0]
    # HTTP has no `on_conflict`: a later payload replaces the first.
    assert set(re.findall(r"`(\w+)`", library)) == {*told, "conflict"}
    schema = msgspec.json.schema(RejectedEvent)["$defs"]["RejectedEvent"]
    assert set(CODES.findall(schema["properties"]["code"]["description"])) == told
    assert {"throttled", "deadline", "unknown_outcome"} <= told


def test_partly_throttled_is_207(api: Api) -> None:
    api.on(
        wrap=lambda call: FaultyCall(
            call, [Fault.NONE] * 2 + [Fault.ONE] * 3 + [Fault.THROTTLED] * 1_000
        )
    )
    answer = api.post(_events(10))
    assert (answer.status, answer.body["accepted"]) == (207, 3)
    assert {each["code"] for each in answer.body["rejected"]} == {"throttled"}


def test_nothing_accepted_but_some_worth_retrying_is_207(api: Api) -> None:
    answer = api.on(wrap=lambda _: throttled_call).post([event_json(), event_json(series="")])
    assert (answer.status, answer.body["accepted"]) == (207, 0)
    assert [each["retryable"] for each in answer.body["rejected"]] == [True, False]


@pytest.mark.parametrize(("left", "longest"), [(29.0, 20.0), (12.0, 7.0), (3.0, 0.0)])
def test_the_answer_comes_before_lambda_ends_the_function(
    api: Api, left: float, longest: float
) -> None:
    memory: MemoryStore = api.memory
    began = memory.clock.seconds
    assert api.on(wrap=lambda _: throttled_call).post(_events(1), left=left).status in {429, 503}
    assert memory.clock.seconds - began <= longest


def test_retention_and_late_limit_come_from_the_environment() -> None:
    off = read_environment(ENVIRONMENT).settings()
    assert (off.retention, off.late_limit, off.shards) == (None, None, 1)
    on = read_environment(
        {**ENVIRONMENT, "SPILLWAY_RETENTION_DAYS": "30", "SPILLWAY_LATE_LIMIT_SECONDS": "60"}
    ).settings()
    assert on.retention is not None
    assert on.late_limit is not None
    assert (on.retention.days, on.late_limit.seconds) == (30, 60)
