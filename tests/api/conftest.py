"""The functions' handlers over tables in memory, in one process."""

import io
import json
import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlencode

import pytest
from aws_lambda_powertools import Logger, Metrics

from lambdas.api import admin_app, ingest_app, query_app
from spillway import EventStore, Settings
from spillway.dynamodb.port import Call
from spillway.timestamps import format_time
from tests.api.described import check_answer, check_taken
from tests.support.fakes import NOON
from tests.support.gateway import Answer, Handler, LambdaContext, call
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


Around = Callable[[str, Handler], Handler]


@dataclass
class Api:
    """The API: requests go to the function that their route leads to.

    `around` wraps the handlers that `on` creates.
    """

    memory: MemoryStore
    log: io.StringIO
    around: Around = lambda _, handler: handler
    handlers: dict[str, Handler] = field(default_factory=dict)
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
        return self.over(self.memory.another)

    def over(self, open_store: Callable[[], EventStore]) -> "Api":
        """Start the functions anew, each over a store of its own."""
        logger = Logger(service="test", level="INFO")
        metrics = Metrics(namespace="Spillway", service="test")
        created: dict[str, Handler] = {
            "ingest": ingest_app.create_app(open_store(), logger, metrics, lambda: 0.0),
            "query": query_app.create_app(open_store(), logger),
            "admin": admin_app.create_app(open_store(), logger),
        }
        self.handlers = {name: self.around(name, handler) for name, handler in created.items()}
        return self

    def request(self, method: str, path: str, query: Any = "", **parts: Any) -> Answer:
        """Send a request, and hold it and its answer against the API's description."""
        handler = self.handlers[self.routes.get((method, path), "query")]
        answer = call(handler, method, path, query, **parts)
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
            "start": format_time(NOON - 30 * DAY),
            "end": format_time(NOON + DAY),
            **change,
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
def api() -> Api:
    log = io.StringIO()
    Logger(service="test", level="INFO", stream=log)
    for handler in logging.getLogger("test").handlers:
        if isinstance(handler, logging.StreamHandler):
            handler.setStream(log)
    return Api(MemoryStore(), log).on()
