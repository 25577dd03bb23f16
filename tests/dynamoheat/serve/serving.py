"""Endpoints over a real engine, on a clock that stands still until a test moves it."""

import asyncio
import threading
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from http.client import HTTPConnection
from itertools import count
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import boto3
import orjson
from botocore.config import Config
from botocore.exceptions import ClientError

from dynamoheat.serve import HeatOptions, ServeOptions, serving
from local.clients import client_settings

if TYPE_CHECKING:
    from types_boto3_dynamodb import DynamoDBClient

__all__ = ["AUTHORIZED", "Clock", "Endpoint", "endpoint", "make_table", "put", "puts", "refusal_of"]

AUTHORIZED = {
    "Content-Type": "application/x-amz-json-1.0",
    "X-Amz-Date": "20260101T000000Z",
    "Authorization": "AWS4-HMAC-SHA256 Credential=local/20260101/us-east-1/dynamodb/aws4_request,"
    " SignedHeaders=host, Signature=0",
}

_names = count()

Calls = Iterable[Callable[[], object]]


@dataclass
class Clock:
    """Seconds that pass when a test says so."""

    now: float = 1_700_000_000.0

    def __call__(self) -> float:
        return self.now


@dataclass
class Endpoint:
    """A running endpoint, its clock, and the engine behind it."""

    url: str
    engine_url: str
    clock: Clock = field(default_factory=Clock)

    def client(self, **config: Any) -> "DynamoDBClient":
        """Return a client of the endpoint that tries once, so that a test sees every refusal."""
        return _client(self.url, **config)

    def engine(self) -> "DynamoDBClient":
        """Return a client of the engine, past the endpoint."""
        return _client(self.engine_url)

    def send(self, operation: str, body: bytes) -> tuple[int, dict[str, str], Any]:
        """Send any bytes as a call; return status, headers in lower case, and the document."""
        headers = {**AUTHORIZED, "X-Amz-Target": f"DynamoDB_20120810.{operation}"}
        return self.request("POST", "/", body, headers)

    def request(
        self, method: str, path: str, body: bytes = b"", headers: dict[str, str] | None = None
    ) -> tuple[int, dict[str, str], Any]:
        """Send any HTTP request on a connection of its own."""
        connection = HTTPConnection(urlsplit(self.url).netloc, timeout=200)
        try:
            connection.request(method, path, body, headers or {})
            answer = connection.getresponse()
            content = answer.read()
            kept = {name.lower(): value for name, value in answer.getheaders()}
            return answer.status, {**kept, "body": content.decode()}, orjson.loads(content)
        finally:
            connection.close()

    def heat(self) -> Any:
        """Return what `GET /heat` answers."""
        return self.request("GET", "/heat")[2]

    def set_faults(self, *faults: str) -> None:
        """Put faults in force."""
        status, _, answer = self.request("PUT", "/heat/faults", orjson.dumps(list(faults)))
        assert status == 200, answer


def _client(url: str, **config: Any) -> "DynamoDBClient":
    once = Config(retries={"total_max_attempts": 1}, **config)
    made: DynamoDBClient = boto3.client("dynamodb", config=once, **client_settings(url))
    return made


@contextmanager
def endpoint(
    engine_url: str,
    *,
    clock: Callable[[], float] | None = None,
    timeout_seconds: float = 200.0,
    **heat: Any,
) -> Generator[Endpoint]:
    """Run an endpoint in front of an engine, on a free port; `heat` are fields of HeatOptions."""
    options = ServeOptions(
        engine=engine_url, port=0, timeout_seconds=timeout_seconds, heat=HeatOptions(**heat)
    )
    still = Clock()
    ready = threading.Event()
    found: dict[str, Any] = {}

    async def run() -> None:
        found["loop"], found["stop"] = asyncio.get_running_loop(), asyncio.Event()
        async with serving(options, clock or still) as url:
            found["url"] = url
            ready.set()
            await found["stop"].wait()

    thread = threading.Thread(target=lambda: asyncio.run(run()), daemon=True)
    thread.start()
    assert ready.wait(200), "the endpoint does not start"
    try:
        yield Endpoint(found["url"], engine_url, still)
    finally:
        found["loop"].call_soon_threadsafe(found["stop"].set)
        thread.join(200)


def make_table(client: "DynamoDBClient", *, index: bool = False, **more: Any) -> str:
    """Create a table with a sort key, on demand unless told otherwise; return its name."""
    name = f"table-{next(_names)}"
    capacity = more.get("ProvisionedThroughput")
    attributes = ["PK", "SK", *(["GPK"] if index else [])]
    request: dict[str, Any] = {
        "TableName": name,
        "BillingMode": "PROVISIONED" if capacity else "PAY_PER_REQUEST",
        "KeySchema": _keys("PK", "SK"),
        "AttributeDefinitions": [
            {"AttributeName": each, "AttributeType": "S"} for each in attributes
        ],
        **more,
    }
    if index:
        request["GlobalSecondaryIndexes"] = [
            {
                "IndexName": "by-group",
                "KeySchema": _keys("GPK", "SK"),
                "Projection": {"ProjectionType": "ALL"},
                **({"ProvisionedThroughput": capacity} if capacity else {}),
            }
        ]
    client.create_table(**request)
    return name


def put(client: "DynamoDBClient", table: str, key: str, sort: str, **more: str) -> None:
    """Put a small item."""
    item = {"PK": key, "SK": sort, **more}
    client.put_item(TableName=table, Item={name: {"S": text} for name, text in item.items()})


def puts(client: "DynamoDBClient", table: str, *, key: str | None = None) -> Calls:
    """Yield puts without end: all to one partition key, or without `key` each to its own."""
    return (
        partial(put, client, table, f"key-{n}" if key is None else key, str(n)) for n in count()
    )


def refusal_of(calls: Calls) -> tuple[int, Any]:
    """Make calls until one is refused; return how many passed, and the error's response."""
    for passed, call in enumerate(calls):
        try:
            call()
        except ClientError as error:
            return passed, error.response
    raise AssertionError("nothing was refused")


def _keys(*names: str) -> Sequence[dict[str, str]]:
    return [
        {"AttributeName": name, "KeyType": kind}
        for name, kind in zip(names, ("HASH", "RANGE"), strict=True)
    ]
