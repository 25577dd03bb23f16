import json
from typing import Any

import pytest

from spillway import InvalidInputError
from spillway.scanning.pages import to_event
from spillway.scanning.streams import StoredEvent
from spillway.writing.preparation import canonical, encode_payload


def _nested(levels: int) -> dict[str, Any]:
    payload: dict[str, Any] = {}
    for _ in range(levels - 1):
        payload = {"a": payload}
    return payload


@pytest.mark.parametrize(
    ("payload", "text"),
    [
        ({}, "{}"),
        ({"delay": 33}, '{"delay":33}'),
        ({"b": 1, "a": [None, True, 0.1]}, '{"b":1,"a":[null,true,0.1]}'),
        ({"é": "日😀"}, '{"é":"日😀"}'),
        ({"n": 2**70}, f'{{"n":{2**70}}}'),
        ({"n": -(2**63) - 1}, f'{{"n":{-(2**63) - 1}}}'),
        ({"t": (1, 2)}, '{"t":[1,2]}'),
        ({"text": 'a"\\\n\0'}, '{"text":"a\\"\\\\\\n\\u0000"}'),
    ],
)
def test_payloads_are_stored_as_compact_json_in_their_own_order(
    payload: dict[str, Any], text: str
) -> None:
    assert encode_payload(payload).decode() == text


@pytest.mark.parametrize(
    ("payload", "reason"),
    [
        ([1], "must be a JSON object"),
        ("text", "must be a JSON object"),
        (None, "must be a JSON object"),
        (7, "must be a JSON object"),
        ({"a": float("nan")}, "NaN"),
        ({"a": [{"b": float("inf")}]}, "infinity"),
        ({"a": float("-inf"), "b": None}, "infinity"),
        ({"a": (float("nan"),)}, "NaN"),
        ({"a": float("inf"), "b": 2**70}, "JSON"),
        ({"a": "\ud800"}, "Unicode"),
        ({"\udfff": 1}, "Unicode"),
        ({"a": "\ud800", "b": 2**70}, "Unicode"),
        (_nested(300), "nested too deeply"),
        (_nested(3_000), "nested too deeply"),
        ({"n": 2**70, "a": _nested(300)}, "nested too deeply"),
        ({1: "a"}, "JSON"),
        ({"n": 2**70, "a": {1: "a"}}, "JSON"),
        ({"a": {1, 2}}, "JSON"),
        ({"a": b"bytes"}, "JSON"),
        ({"a": object()}, "JSON"),
    ],
)
def test_what_json_can_not_hold_is_refused_with_its_reason(payload: Any, reason: str) -> None:
    with pytest.raises(InvalidInputError, match=reason) as caught:
        encode_payload(payload)
    assert (caught.value.code, caught.value.where) == ("invalid_event", "payload")


def test_payloads_may_be_254_levels_deep() -> None:
    stored = encode_payload(_nested(254)).decode()
    assert json.loads(stored) == _nested(254)
    record = StoredEvent("2026-06-01T12:00:00.000000Z#1", "ORD#0", stored, None)
    assert to_event("ORD", record).payload == _nested(254)


def test_nulls_are_no_sign_of_non_finite_numbers() -> None:
    assert encode_payload({"a": None, "b": [1.5, "null"]}) == b'{"a":null,"b":[1.5,"null"]}'


@pytest.mark.parametrize(
    ("one", "other", "equal"),
    [
        ('{"a":1,"b":{"c":2,"d":3}}', '{"b":{"d":3,"c":2},"a":1}', True),
        (f'{{"a":{2**70},"b":1}}', f'{{"b":1,"a":{2**70}}}', True),
        ('{"a":[1,2]}', '{"a":[2,1]}', False),
        ('{"a":1}', '{"a":2}', False),
        ('{"a":1}', '{"a":true}', False),
    ],
)
def test_equal_objects_have_equal_canonical_bytes(one: str, other: str, *, equal: bool) -> None:
    assert (canonical(one) == canonical(other)) is equal
