"""The adapter that puts DAX, the cache before DynamoDB, behind the port: for reads that may lag.

DAX answers GetItem and Query from its caches (5 minutes each by default), misses included. Its
client is imported, and connects, with the first request, so that whoever makes none pays nothing.
Wrap it in `spillway.dynamodb.fallback.Fallback`: a cache may go away at any time.
"""

import threading
from collections.abc import Mapping
from concurrent.futures import Future
from decimal import Decimal
from typing import Any, Final

from botocore.config import Config
from botocore.exceptions import ClientError

from spillway.dynamodb.port import Item, OutcomeUnknownError, RefusedError, UnreachableError

__all__ = ["DaxCall"]

_METHODS: Final = {"GetItem": "get_item", "Query": "query"}
# A node answers within milliseconds, and DynamoDB stands behind it: give up soon, once.
_CLIENT: Final = Config(connect_timeout=1, read_timeout=1, retries={"max_attempts": 0})
_CONNECT_SECONDS: Final = 2.0  # the client tries every node one after the other: don't wait for all


class DaxCall:
    """The port on a DAX cluster, for eventually consistent GetItem and Query only; thread-safe.

    An answer is at most as old as the cluster's TTL for items or queries, plus DynamoDB's own lag.
    Writes that went around DAX don't change it, and "no such item" may be as old. Don't decide
    anything by it.

    Raises UnreachableError where there is no connection within 2 s, and OutcomeUnknownError for
    whatever else goes wrong: no answer within 1 s, a connection that broke, an error of the
    cluster. Nothing is tried twice.

    Args:
        endpoint: of the cluster, such as `daxs://….dax-clusters.….amazonaws.com`.
        session: a boto3 or botocore session: its credentials and region; by default as boto3 finds
            them.
    """

    def __init__(self, endpoint: str, session: object | None = None) -> None:
        self._endpoint = endpoint
        self._session = session
        self._lock = threading.Lock()
        self._connecting: Future[Any] | None = None

    def __call__(self, operation: str, request: Mapping[str, Any], /) -> dict[str, Any]:
        """Send one read; RefusedError for any other request, which nothing was asked then."""
        method = _METHODS.get(operation)
        if method is None or request.get("ConsistentRead"):
            raise RefusedError("NotForDax", f"{operation} must go to DynamoDB")
        client = self._connected()
        try:
            response: dict[str, Any] = getattr(client, method)(**request)
        except ClientError as error:
            code = error.response.get("Error", {}).get("Code", type(error).__name__)
            raise OutcomeUnknownError(code, str(error)) from error
        except Exception as error:  # the client lets through whatever its decoder and sockets raise
            raise OutcomeUnknownError(type(error).__name__, str(error)) from error
        return _plain_response(operation, response)

    def close(self) -> None:
        """Close the connections and end the client's threads; the next request connects again."""
        with self._lock:
            connecting, self._connecting = self._connecting, None
        if connecting is not None and connecting.done() and connecting.exception() is None:
            connecting.result().close()

    def _connected(self) -> Any:
        """Return the client; of several threads that need it first, one connects and all wait."""
        with self._lock:
            connecting = self._connecting
            if connecting is None:
                connecting = self._connecting = Future()
                # Its own thread: the caller's patience ends before the last of many dead nodes was
                # tried.
                threading.Thread(
                    target=self._connect, args=(connecting,), name="spillway-dax", daemon=True
                ).start()
        try:
            return connecting.result(timeout=_CONNECT_SECONDS)
        except Exception as error:  # as above
            raise UnreachableError(type(error).__name__, str(error)) from error

    def _connect(self, connecting: "Future[Any]") -> None:
        try:
            client = _open_client(self._endpoint, self._session)
        except Exception as error:  # noqa: BLE001  raised in those that wait
            with self._lock:
                if self._connecting is connecting:
                    self._connecting = None
            connecting.set_exception(error)
        else:
            connecting.set_result(client)


def _open_client(endpoint: str, session: object | None) -> Any:
    from amazondax import AmazonDaxClient  # noqa: PLC0415  a quarter of a second, for its users only

    return AmazonDaxClient(session, endpoint_url=endpoint, config=_CLIENT)


def _plain_response(operation: str, response: dict[str, Any]) -> dict[str, Any]:
    """Return the response as DynamoDB would write it.

    Numbers without exponents, and items also where there are none.
    """
    if operation == "Query":
        response["Items"] = [_plain_item(item) for item in response.get("Items", ())]
    elif "Item" in response:
        response["Item"] = _plain_item(response["Item"])
    return response


def _plain_item(item: Item) -> Item:
    return {name: _plain_value(value) for name, value in item.items()}


def _plain_value(value: dict[str, Any]) -> dict[str, Any]:
    ((kind, content),) = value.items()
    match kind:
        case "N" if "E" in content:
            return {"N": format(Decimal(content), "f")}
        case "L":
            return {"L": [_plain_value(each) for each in content]}
        case "M":
            return {"M": _plain_item(content)}
    return value
