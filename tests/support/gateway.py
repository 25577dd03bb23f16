"""The HTTP API in front of the functions, in one process: requests as API Gateway hands them to Lambda."""

import base64
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlencode

__all__ = ["Answer", "Handler", "LambdaContext", "body_as_lambda_sends_it", "call"]

Handler = Callable[[dict[str, Any], Any], dict[str, Any]]


@dataclass(frozen=True)
class LambdaContext:
    """What a handler asks its context for."""

    left: float = 29.0
    function_name: str = "function"
    memory_limit_in_mb: int = 512
    invoked_function_arn: str = "arn:aws:lambda:eu-central-1:123456789012:function:function"
    aws_request_id: str = "00000000-0000-0000-0000-000000000000"

    def get_remaining_time_in_millis(self) -> int:
        return int(self.left * 1_000)


@dataclass(frozen=True)
class Answer:
    """An answer of the API; `raw` is what the function returned."""

    status: int
    headers: Mapping[str, str]
    body: Any
    raw: Mapping[str, Any]

    @property
    def error(self) -> tuple[str, str]:
        """The code and the message of an error."""
        return self.body["error"]["code"], self.body["error"]["message"]


_NO_CONTEXT: Final = LambdaContext()


def call(
    handler: Handler,
    method: str,
    path: str,
    query: Mapping[str, object] | str = "",
    *,
    body: str | bytes | None = None,
    headers: Mapping[str, str] | None = None,
    context: LambdaContext = _NO_CONTEXT,
    caller: str | None = None,
) -> Answer:
    """Send one request to a function: bytes as base64, as API Gateway sends what it takes for binary.

    `caller` is the ARN of whoever signed it.
    """
    raw_query = query if isinstance(query, str) else urlencode(query)
    event: dict[str, Any] = {
        "version": "2.0",
        "routeKey": "$default",
        "rawPath": path,
        "rawQueryString": raw_query,
        "headers": {name.lower(): value for name, value in (headers or {}).items()},
        "requestContext": {
            "accountId": "123456789012",
            "apiId": "api",
            "domainName": "api.execute-api.eu-central-1.amazonaws.com",
            "http": {
                "method": method,
                "path": path,
                "protocol": "HTTP/1.1",
                "sourceIp": "127.0.0.1",
                "userAgent": "test",
            },
            "requestId": "request",
            "routeKey": "$default",
            "stage": "$default",
            "time": "01/Jun/2026:12:00:00 +0000",
            "timeEpoch": 1780315200000,
        },
        "isBase64Encoded": isinstance(body, bytes),
    }
    if caller is not None:
        event["requestContext"]["authorizer"] = {"iam": {"userArn": caller}}
    if body is not None:
        event["body"] = base64.b64encode(body).decode() if isinstance(body, bytes) else body
    raw = handler(event, context)
    assert not raw["isBase64Encoded"]
    return Answer(raw["statusCode"], raw["headers"], _decoded(raw), raw)


def _decoded(raw: Mapping[str, Any]) -> Any:
    """Return what the body holds: of NDJSON a list, a line each."""
    kind, body = raw["headers"]["Content-Type"], raw["body"]
    if kind == "application/x-ndjson":
        assert not body or body.endswith("\n")
        return [json.loads(line) for line in body.split("\n")[:-1]]
    assert kind == "application/json"
    return json.loads(body)


def body_as_lambda_sends_it(answer: Answer) -> int:
    """Return the bytes of a function's whole answer, with every character beyond ASCII escaped.

    Runtimes before Python 3.12 escape so; later ones send fewer bytes.
    """
    return len(json.dumps(answer.raw))
