"""The adapter that puts a boto3 client behind the port.

boto3 spends most of its time on shapes: serialising, validating and parsing every attribute.
Requests and responses here are DynamoDB's own JSON already, so the adapter goes around that and
keeps everything else of the client: its signer (credentials, their refresh, session tokens,
region), its HTTP session (TLS, proxies, pools, timeouts), its endpoint and its user agent. Retries
are the caller's; the client's own don't apply.
"""

import ssl
import zlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, cast

import orjson
from botocore.awsrequest import AWSRequest
from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    ConnectTimeoutError,
    EndpointConnectionError,
    HTTPClientError,
    ProxyConnectionError,
    SSLError,
)
from urllib3.util.ssl_match_hostname import CertificateError

from spillway.dynamodb.port import (
    Call,
    ConditionFailedError,
    OutcomeUnknownError,
    RefusedError,
    StorageError,
    ThrottledError,
    ThrottlingReason,
    UnreachableError,
)

if TYPE_CHECKING:
    from types_boto3_dynamodb import DynamoDBClient

__all__ = ["call_through"]

_THROTTLED: Final = frozenset(
    {
        "ProvisionedThroughputExceededException",
        "ThrottlingException",
        "RequestLimitExceeded",
        "Throttling",
    }
)
# Raised before a byte of the request was sent.
_NOT_SENT: Final = (ConnectTimeoutError, EndpointConnectionError, ProxyConnectionError)


def call_through(client: "DynamoDBClient") -> Call:
    """Return the port on a boto3 DynamoDB client; one HTTP request a call, safe from many threads.

    Of a response's headers it keeps the date, as boto3 would: `ResponseMetadata.HTTPHeaders.date`.
    """
    return _Wire(client)


class _Wire:
    def __init__(self, client: "DynamoDBClient") -> None:
        # botocore offers no public way to send a ready-made body through a client's own signer and
        # session.
        # Keep the client: its signer refers to its events only weakly.
        self._client = cast("Any", client)
        self._target = self._client.meta.service_model.metadata["targetPrefix"]
        self._url = self._client.meta.endpoint_url.rstrip("/") + "/"
        self._agent = str(self._client.meta.config.user_agent)

    def __call__(self, operation: str, request: Mapping[str, Any], /) -> dict[str, Any]:
        headers = {
            "X-Amz-Target": f"{self._target}.{operation}",
            "Content-Type": "application/x-amz-json-1.0",
            "User-Agent": self._agent,
        }
        body = orjson.dumps(request)
        message = AWSRequest(method="POST", url=self._url, data=body, headers=headers)
        self._sign(operation, message)
        try:
            response = self._client._endpoint.http_session.send(message.prepare())  # noqa: SLF001
        except (BotoCoreError, HTTPClientError) as error:
            raise _sending_failed(error) from error
        return _read(response.status_code, response.headers, response.content)

    def _sign(self, operation: str, message: AWSRequest) -> None:
        try:
            self._client._request_signer.sign(operation, message)  # noqa: SLF001
        except (BotoCoreError, ClientError, RuntimeError) as error:
            # No credentials, or none to be had anew: botocore raises what their source raised.
            raise UnreachableError(type(error).__name__, str(error)) from error


def _sending_failed(error: Exception) -> StorageError:
    sent = isinstance(error, HTTPClientError)
    if isinstance(error, SSLError):  # anything but a certificate that is refused may come later
        sent = not _is_refused_certificate(error)
    elif isinstance(error, _NOT_SENT):
        sent = False
    kind = OutcomeUnknownError if sent else UnreachableError
    return kind(type(error).__name__, str(error))


def _is_refused_certificate(error: SSLError) -> bool:
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, ssl.SSLCertVerificationError | CertificateError):
            return True
        cause = cause.__cause__ or cause.__context__
    return False


def _read(status: int, headers: Mapping[str, str], content: bytes) -> dict[str, Any]:
    checksum = headers.get("x-amz-crc32")
    if checksum is not None and int(checksum) != zlib.crc32(content):
        raise OutcomeUnknownError("ChecksumMismatch", "the response was damaged on its way")
    try:
        body = orjson.loads(content)
    except orjson.JSONDecodeError as error:
        raise OutcomeUnknownError(f"HTTP{status}", "the response is not JSON") from error
    if not isinstance(body, dict):
        raise OutcomeUnknownError(f"HTTP{status}", "the response is not a JSON object")
    if status != 200:
        raise _error(status, body)
    date = headers.get("Date")
    if date is not None:
        body["ResponseMetadata"] = {"HTTPHeaders": {"date": date}}
    return body


def _error(status: int, body: dict[str, Any]) -> StorageError:
    code = str(body.get("__type", f"HTTP{status}")).rpartition("#")[2]
    message = str(body.get("message") or body.get("Message") or "")
    reasons = _reasons(body)
    if code in _THROTTLED or reasons:
        return ThrottledError(code, message, reasons)
    if status >= 500:
        return OutcomeUnknownError(code, message)
    if code == "ConditionalCheckFailedException":
        return ConditionFailedError(code, message, body.get("Item"))
    return RefusedError(code, message)


def _reasons(body: dict[str, Any]) -> tuple[ThrottlingReason, ...]:
    listed = body.get("ThrottlingReasons") or body.get("throttlingReasons") or ()
    return tuple(
        ThrottlingReason(str(each.get("reason", "")), str(each.get("resource", "")))
        for each in listed
    )
