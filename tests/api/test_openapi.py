"""The bounds that the description states are those that the functions keep, on both sides."""

from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from spillway.timestamps import format_time
from tests.api.conftest import Api
from tests.api.described import DOCUMENT
from tests.support.fakes import NOON
from tests.support.requests import event_json

SCHEMAS = DOCUMENT["components"]["schemas"]
GIVEN = {
    "series": "ORD",
    "start": format_time(NOON),
    "end": format_time(NOON.replace(hour=13)),
    "time": format_time(NOON),
    "id": "1",
}
# What the functions take and refuse of parameters that are more than text of a length.
TAKEN = {
    "interval": ("5m", "PT5M", "P1DT12H", "999999999ms"),
    "functions": ("count", "count,count"),
    "field": ("a", "a.b", r"a\.b", "x" * 1_024),
    "max_rcu": ("999999999.999",),
}
REFUSED = {
    "interval": ("", "5", "5 m", "1y", "P", "PT", "P1DT", "-5m"),
    "functions": ("", "median", "count,", "count;sum"),
    "field": ("", "a..b", ".", "x" * 1_025),
    "cursor": ("", "é", "a b"),
    "id": ("", "a#b", "x" * 129),
    "start": ("2026-06-01T12:00:00.0000001Z", "2026-06-01T12:00:00", "12:00Z"),
    "max_rcu": ("0", "1000000000"),
}
REFUSED |= {"end": REFUSED["start"], "time": REFUSED["start"]}


def _parameters() -> Iterator[Any]:
    for path, item in DOCUMENT["paths"].items():
        for method, operation in item.items():
            for parameter in operation.get("parameters", ()):
                if parameter["in"] == "query":
                    name = f"{method} {path} {parameter['name']}"
                    yield pytest.param(method.upper(), path, parameter, id=name)


def _at_bounds(schema: Mapping[str, Any]) -> tuple[list[str], list[str]]:
    """Return values at the bounds of a schema, and values just beyond."""
    match schema:
        case {"enum": values}:
            return list(values), ["none of these"]
        case {"type": "boolean"}:
            return ["true", "false"], ["yes", "1", ""]
        case {"type": "integer", "minimum": low, "maximum": high}:
            return [str(low), str(high)], [str(low - 1), str(high + 1)]
        case {"type": "string", "minLength": low, "maxLength": high}:
            return ["x" * low, "x" * high], ["x" * (low - 1), "x" * (high + 1)]
    raise AssertionError(f"{schema} states no bounds")


def _value(schema: Mapping[str, Any], text: str) -> Any:
    """Return a parameter's value as JSON has it."""
    if schema["type"] in {"integer", "number"}:
        return float(text)
    return {"true": True, "false": False}.get(text, text) if schema["type"] == "boolean" else text


@pytest.mark.parametrize(("method", "path", "parameter"), [*_parameters()])
def test_each_parameter_keeps_the_bounds_that_it_states(
    api: Api, method: str, path: str, parameter: Mapping[str, Any]
) -> None:
    name, schema = parameter["name"], parameter["schema"]
    if name in REFUSED:
        taken, refused = list(TAKEN.get(name, ())), list(REFUSED[name])
    else:
        taken, refused = _at_bounds(schema)
    required = {
        each.values[2]["name"]
        for each in _parameters()
        if each.values[:2] == (method, path) and each.values[2]["required"]
    }
    given = {each: GIVEN[each] for each in required}
    if name == "source":
        given["consistent"] = "false"  # which an index asks for
    body = '{"index_shards":2}' if method == "PUT" else None
    for text in taken:
        answer = api.request(method, path, {**given, name: text}, body=body)
        assert answer.status in {200, 404}, text
        assert Draft202012Validator(schema).is_valid(_value(schema, text)), text
    for text in refused:
        answer = api.request(method, path, {**given, name: text}, body=body)
        assert answer.status == 400, text
        assert answer.error[1].startswith(f"{name}: ")
        assert not Draft202012Validator(schema).is_valid(_value(schema, text)), text


EVENT: Mapping[str, Any] = SCHEMAS["EventInput"]["properties"]


@pytest.mark.parametrize(
    ("field", "taken", "refused"),
    [
        ("series", ("x", "x" * 1_024), ("", "x" * 1_025)),
        ("id", ("x", "x" * 128, "\n"), ("", "x" * 129, "a#b")),
        ("sharding_key", ("x", "x" * 512, "#"), ("", "x" * 513)),
        ("time", ("2001-01-01t00:01:00.000001+01:00",), REFUSED["start"]),
        ("payload", ({}, {"a": [1]}), ([], "text")),
    ],
)
def test_each_field_of_an_event_keeps_the_bounds_that_it_states(
    api: Api, field: str, taken: tuple[Any, ...], refused: tuple[Any, ...]
) -> None:
    validator = Draft202012Validator(EVENT[field])
    for value in taken:
        assert api.post([event_json(**{field: value})]).status == 200
        assert validator.is_valid(value)
    for value in refused:
        assert api.post([event_json(**{field: value})]).status == 400
        assert not validator.is_valid(value)


def test_a_request_of_events_states_how_many_it_takes() -> None:
    events = SCHEMAS["IngestRequest"]["properties"]["events"]
    assert (events["minItems"], events["maxItems"]) == (1, 1_000)
    answer = SCHEMAS["IngestAnswer"]["properties"]
    assert (answer["accepted"]["minimum"], answer["accepted"]["maximum"]) == (0, 1_000)
    assert answer["rejected"]["maxItems"] == 1_000
    index = SCHEMAS["RejectedEvent"]["properties"]["index"]
    assert (index["minimum"], index["maximum"]) == (0, 999)


@pytest.mark.parametrize("name", ["shards", "index_shards"])
def test_counts_of_a_layout_keep_the_bounds_that_they_state(api: Api, name: str) -> None:
    validator = Draft202012Validator(SCHEMAS["LayoutRequest"]["properties"][name])
    for count, is_taken in ((0, False), (1, True), (256, True), (512, False)):
        answer = api.request("PUT", "/v1/layout", {"series": "ORD"}, body=f'{{"{name}":{count}}}')
        assert (answer.status == 200) == is_taken
        assert validator.is_valid(count) == is_taken


def test_every_operation_states_what_its_caller_may_get_from_api_gateway_itself() -> None:
    for item in DOCUMENT["paths"].values():
        for operation in item.values():
            for status in ("403", "429", "500", "503"):
                schema = operation["responses"][status]["content"]["application/json"]["schema"]
                kinds = {each["$ref"].rpartition("/")[2] for each in schema["anyOf"]}
                assert "GatewayAnswer" in kinds
