"""The functions over tables in memory, in one process."""

import io
import json
import logging
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any
from urllib.parse import urlencode

import pytest

from spillway import Settings
from spillway.dynamodb.port import Call
from spillway.timestamps import format_time
from tests.api.described import check_answer, check_taken
from tests.support.fakes import NOON
from tests.support.gateway import Answer, LambdaContext, call
from tests.support.stores import DAY, MemoryStore

ENVIRONMENT = {
    "SPILLWAY_TABLE": "events",
    "SPILLWAY_LAYOUTS": "layouts",
    "SPILLWAY_USAGE": "usage",
    "SPILLWAY_TIME_BUCKET": "hour",
    "SPILLWAY_MODE": "calculated",
    "SPILLWAY_SHARDS": "1",
    "SPILLWAY_INDEX_SHARDS": "1",
    "SPILLWAY_RETENTION_DAYS": "0",
    "SPILLWAY_LATE_LIMIT_SECONDS": "0",
    "POWERTOOLS_METRICS_NAMESPACE": "Spillway",
    "POWERTOOLS_SERVICE_NAME": "test",
    "POWERTOOLS_LOG_LEVEL": "INFO",
    "AWS_DEFAULT_REGION": "eu-central-1",
    "AWS_EC2_METADATA_DISABLED": "true",
}


@pytest.fixture(scope="session")
def functions() -> dict[str, ModuleType]:
    """The modules of all functions, by the method and path that each answers."""
    with pytest.MonkeyPatch.context() as patched:
        for name, value in ENVIRONMENT.items():
            patched.setenv(name, value)
        from lambdas import admin, ingest, query  # noqa: PLC0415  they read the environment at once
    return {"ingest": ingest, "query": query, "admin": admin}


@dataclass
class Api:
    """The API: requests go to the function that their route leads to."""

    functions: Mapping[str, ModuleType]
    memory: MemoryStore
    monkeypatch: pytest.MonkeyPatch
    log: io.StringIO
    routes: dict[tuple[str, str], str] = field(
        default_factory=lambda: {
            ("POST", "/v1/events"): "ingest",
            ("PUT", "/v1/layout"): "admin",
            ("DELETE", "/v1/events/one"): "admin",
        }
    )

    def on(
        self, settings: Settings | None = None, wrap: Callable[[Call], Call] | None = None
    ) -> "Api":
        """Start the functions anew, with these settings, on the same tables."""
        self.memory.settings = settings or self.memory.settings
        self.memory.wrap = wrap or self.memory.wrap
        for module in self.functions.values():
            self.monkeypatch.setattr(module, "store", self.memory.another())
        return self

    def request(self, method: str, path: str, query: Any = "", **parts: Any) -> Answer:
        """Send a request, and hold it and its answer against the API's description."""
        function = self.functions[self.routes.get((method, path), "query")]
        answer = call(function.handler, method, path, query, **parts)
        check_answer(method, path, answer)
        if answer.status == 200:
            raw_query = query if isinstance(query, str) else urlencode(query)
            bodies = map(json.loads, _texts(parts.get("body")))
            check_taken(method, path, raw_query, parts.get("headers") or {}, bodies)
        return answer

    def get(self, path: str, query: Any = "") -> Answer:
        return self.request("GET", path, query)

    def post(self, body: Any, left: float = 29.0, **headers: str) -> Answer:
        """Send events: a list as JSON, text and bytes as they are."""
        if isinstance(body, list):
            body = json.dumps({"events": body})
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        context = LambdaContext(left=left)
        return self.request("POST", "/v1/events", body=body, headers=named, context=context)

    def page(self, **change: Any) -> Answer:
        """Read a page of ORD's last thirty days."""
        query = {
            "series": "ORD",
            "from": format_time(NOON - 30 * DAY),
            "to": format_time(NOON + DAY),
            **{name.removesuffix("_"): value for name, value in change.items()},
        }
        return self.get(
            "/v1/events", {name: text for name, text in query.items() if text is not None}
        )


def _texts(body: str | bytes | None) -> list[str]:
    """Return the JSON texts of a body that was taken: itself, or the lines of NDJSON."""
    text = body.decode() if isinstance(body, bytes) else body or "null"
    try:
        json.loads(text)
    except ValueError:
        return [line for line in text.splitlines() if line.strip()]
    return [text]


@pytest.fixture
def api(functions: dict[str, ModuleType], monkeypatch: pytest.MonkeyPatch) -> Iterator[Api]:
    log = io.StringIO()
    handlers = [
        h for h in logging.getLogger("test").handlers if isinstance(h, logging.StreamHandler)
    ]
    assert handlers
    streams = [handler.setStream(log) for handler in handlers]
    yield Api(functions, MemoryStore(), monkeypatch, log).on()
    for handler, stream in zip(handlers, streams, strict=True):
        handler.setStream(stream)
