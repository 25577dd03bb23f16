"""Conventions of all functions: routes, rights, description, logs, entry points."""

import ast
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from openapi_spec_validator import OpenAPIV31SpecValidator

from spillway import Settings, ShardingMode
from spillway.cdk.access import ACCESS
from spillway.dynamodb.port import Call, ThrottledError, ThrottlingReason
from spillway.keys import INDEX_NAME
from spillway.timestamps import format_time
from stacks.api import ADMIN_ROUTES, INGEST_ROUTES, QUERY_ROUTES
from tests.api.conftest import Api
from tests.support.fakes import NOON
from tests.support.faults import throttled_call
from tests.support.gateway import Handler, call
from tests.support.memory_table import EVENTS, LAYOUTS, USAGE
from tests.support.requests import event_json

ROUTES = {"ingest": INGEST_ROUTES, "query": QUERY_ROUTES, "admin": ADMIN_ROUTES}
LAMBDAS = Path(__file__).parents[2] / "lambdas"
IDENTITY = {"series": "ORD", "time": format_time(NOON), "id": "1"}


def _exercise(api: Api) -> None:
    """Send every kind of request, in every mode, with growth and faults: every call is made."""
    for settings in (
        Settings(shards=4, index_shards=2),
        Settings(mode=ShardingMode.RANDOM, shards=3),
    ):
        api.on(settings)
        api.post([event_json(str(n), series=settings.mode) for n in range(30)])
        api.post([event_json(series=settings.mode, sharding_key="k")])
        for read in ("auto", "table", "index"):
            for order in ("asc", "desc"):
                api.page(
                    series=settings.mode.value,
                    source=read,
                    order=order,
                    limit=7,
                    consistent="false",
                )
        api.page(series=settings.mode.value, sharding_key="k", consistent="true")
        identity = {**IDENTITY, "series": settings.mode.value}
        api.get("/v1/events/one", identity)
        api.get("/v1/layout", {"series": settings.mode.value})
        body = '{"shards":16,"index_shards":4}'
        api.request("PUT", "/v1/layout", {"series": settings.mode.value}, body=body)
        api.request("PUT", "/v1/layout", {"series": f"new {settings.mode}"}, body=body)
        api.request("DELETE", "/v1/events/one", identity)
        api.memory.random = lambda: 0.0  # every write is sampled
        api.on(settings, _throttling).post([event_json("late", series=settings.mode)])
        old = format_time(NOON.replace(year=2001))
        api.on(settings, _throttling).post([event_json(time=old, series=settings.mode)])
        api.memory.wrap = lambda call: call
    for path in ("/v1/healthz", "/v1/openapi.json", "/nothing"):
        api.get(path)


def _throttling(call: Call) -> Call:
    """Throttle the first two batches: for a key range, and without a reason."""
    reason = ThrottlingReason("TableWriteKeyRangeThroughputExceeded", "")
    reasons = iter([(reason,), ()])

    def throttled(operation: str, request: Mapping[str, Any], /) -> dict[str, Any]:
        given = next(reasons, None) if operation == "BatchWriteItem" else None
        if given is not None:
            raise ThrottledError("ThrottlingException", "", given)
        return call(operation, request)

    return throttled


def _actions(calls: set[tuple[str, str]], resource: str) -> set[str]:
    return {f"dynamodb:{operation}" for operation, target in calls if target == resource}


@pytest.mark.parametrize("function", sorted(ROUTES))
def test_each_function_may_make_exactly_the_calls_that_it_makes(api: Api, function: str) -> None:
    calls: set[tuple[str, str]] = set()

    def recording(name: str, handler: Handler) -> Handler:
        def record(event: dict[str, Any], context: Any) -> dict[str, Any]:
            api.memory.table.forget_calls()
            answer = handler(event, context)
            calls.update(api.memory.table.calls() if name == function else ())
            return answer

        return record

    api.around = recording
    _exercise(api)
    granted = ACCESS[function]
    assert _actions(calls, EVENTS) == set(granted.events)
    assert _actions(calls, f"{EVENTS}/index/{INDEX_NAME}") == set(granted.events_index)
    assert _actions(calls, LAYOUTS) == set(granted.layouts)
    assert _actions(calls, USAGE) == set(granted.usage)


@pytest.mark.parametrize("function", sorted(ROUTES))
def test_each_function_answers_exactly_its_routes(api: Api, function: str) -> None:
    assert _resolved(api, function) == set(ROUTES[function]) - {"$default"}


def _resolved(api: Api, function: str) -> set[str]:
    """Return what the function answers with anything but 404, of every route that there is."""
    found = set()
    for route in {each for routes in ROUTES.values() for each in routes} - {"$default"}:
        method, path = route.split(" ")
        answer = call(api.handlers[function], method, path)
        if answer.status not in {404, 405}:
            found.add(route)
    return found


@pytest.fixture
def document(api: Api) -> Any:
    return api.get("/v1/openapi.json").body


def test_the_description_is_valid_openapi_3_1(document: Any) -> None:
    assert document["openapi"].startswith("3.1")
    assert list(OpenAPIV31SpecValidator(document).iter_errors()) == []


def test_the_description_names_every_route_and_no_other(document: Any) -> None:
    described = {
        f"{method.upper()} {path}" for path, item in document["paths"].items() for method in item
    }
    assert described == {route for routes in ROUTES.values() for route in routes} - {"$default"}


def _parameters(document: Any, method: str, path: str) -> dict[str, Any]:
    operation = document["paths"][path][method.lower()]
    return {each["name"]: each for each in operation.get("parameters", ()) if each["in"] == "query"}


VALUES = {
    **IDENTITY,
    "start": format_time(NOON),
    "end": format_time(NOON.replace(hour=13)),
    "limit": "5",
    "order": "desc",
    "consistent": "false",
    "sharding_key": "k",
    "source": "table",
    "max_rcu": "50",
    "explain": "true",
    "interval": "5m",
    "field": "delay",
    "functions": "count,p99",
    "fill": "linear",
    "mode": "blocks",
    "pool": "2",
}


@pytest.mark.parametrize(
    "route",
    [
        "GET /v1/events",
        "GET /v1/aggregates",
        "GET /v1/export",
        "GET /v1/events/one",
        "DELETE /v1/events/one",
        "GET /v1/layout",
        "PUT /v1/layout",
    ],
)
def test_each_described_parameter_is_taken_and_each_required_one_is_missed(
    api: Api, document: Any, route: str
) -> None:
    method, path = route.split(" ")
    described = _parameters(document, method, path)
    body = '{"shards":2}' if method == "PUT" else None
    given = {name: VALUES[name] for name in described if name != "cursor"}
    api.post([event_json(sharding_key="k")])
    assert api.request(method, path, given, body=body).status == 200
    for name, parameter in described.items():
        left = {other: value for other, value in given.items() if other != name}
        answer = api.request(method, path, left, body=body)
        missed = answer.status == 400 and answer.error[1] == f"{name}: is missing"
        assert missed == parameter["required"]
    undescribed = api.request(method, path, {**given, "other": "1"}, body=body)
    assert undescribed.error[1].endswith(f"known are {', '.join(described)}")


@pytest.mark.parametrize("wrap", [None, lambda _: throttled_call])
def test_logs_and_metrics_hold_no_payload(
    api: Api, wrap: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    words = "correct horse battery staple"
    api.on(wrap=wrap)
    api.post(
        [event_json(payload={"a": words}), event_json("2", payload={"a": words, "b": "\ud800"})]
    )
    api.post(f'{{"events":[{{"payload":"{words}"}},{words}]}}')
    api.page()
    api.get("/v1/events/one", IDENTITY)
    logged = api.log.getvalue() + capsys.readouterr().out
    assert len(logged.splitlines()) >= 6
    for line in logged.splitlines():
        json.loads(line)
    assert "horse" not in logged


def test_ingest_counts_requests_and_events_as_metrics(
    api: Api, capsys: pytest.CaptureFixture[str]
) -> None:
    api.post([event_json(), event_json("2", series="")])
    (metrics,) = [
        json.loads(line) for line in capsys.readouterr().out.splitlines() if "_aws" in line
    ]
    assert metrics["_aws"]["CloudWatchMetrics"][0]["Namespace"] == "Spillway"
    counted = {name: metrics[name] for name in ("Requests", "EventsAccepted", "EventsRejected")}
    assert counted == {"Requests": [1.0], "EventsAccepted": [1.0], "EventsRejected": [1.0]}


@pytest.mark.parametrize("name", ["admin", "ingest", "query", "scaler"])
def test_an_entry_point_reads_the_environment_and_creates_its_handler(name: str) -> None:
    tree = ast.parse((LAMBDAS / f"{name}.py").read_text())
    logic = (ast.FunctionDef, ast.ClassDef, ast.For, ast.While, ast.If, ast.Try)
    assert not [node for node in ast.walk(tree) if isinstance(node, logic)]
    assigned = [node for node in tree.body if isinstance(node, ast.Assign)]
    (last,) = (node for node in assigned if ast.unparse(node.targets[0]) == "handler")
    assert ast.unparse(last.value).startswith("create_app(")
