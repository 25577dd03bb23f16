"""The port to DynamoDB.

One callable for every operation, and the errors by which callers decide what to do.

Requests and responses are DynamoDB's own JSON, so an implementation only moves them.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol

from spillway.errors import SpillwayError

__all__ = [
    "Call",
    "ConditionFailedError",
    "Item",
    "OutcomeUnknownError",
    "RefusedError",
    "StorageError",
    "ThrottledError",
    "ThrottlingReason",
    "UnreachableError",
]

Item = dict[str, dict[str, Any]]
"""An item in DynamoDB's JSON: `{"PK": {"S": "ORD#0"}, …}`."""


class Call(Protocol):
    """Carry out one DynamoDB operation once, without retries; thread-safe.

    Raises a StorageError: ThrottledError and UnreachableError were not carried out,
    OutcomeUnknownError may have been.
    """

    def __call__(self, operation: str, request: Mapping[str, Any], /) -> dict[str, Any]:
        """Send `request` as `operation` (`Query`, `BatchWriteItem`, …) and return the response.

        Where the response carries the Date header, as boto3's do in
        `ResponseMetadata.HTTPHeaders.date`, this process's clock is compared with it. Without it
        nothing tells that the clock is wrong.
        """
        ...


class StorageError(SpillwayError):
    """DynamoDB, or the way to it, did not do what was asked.

    Attributes:
        code: DynamoDB's exception type, or the client's for errors on the way.
    """

    def __init__(self, code: str, message: str) -> None:
        super().__init__(f"{code}: {message}" if message else code)
        self.code = code
        self.message = message


class ThrottlingReason(NamedTuple):
    """Why DynamoDB throttled: one of its 16 reasons, and the ARN of the table or index."""

    reason: str
    resource: str


class ThrottledError(StorageError):
    """Throttled: not carried out. `reasons` is empty where the endpoint gives none."""

    def __init__(self, code: str, message: str, reasons: tuple[ThrottlingReason, ...] = ()) -> None:
        super().__init__(code, message)
        self.reasons = reasons


class UnreachableError(StorageError):
    """The request never reached DynamoDB: not carried out."""


class OutcomeUnknownError(StorageError):
    """A timeout, a reset or a server error: the operation may have been carried out."""


class ConditionFailedError(StorageError):
    """The condition did not hold: not carried out. `item` is the stored one, where asked for."""

    def __init__(self, code: str, message: str, item: Item | None = None) -> None:
        super().__init__(code, message)
        self.item = item


class RefusedError(StorageError):
    """DynamoDB refuses the request as it is: invalid, not allowed, or no such table."""

    @property
    def is_invalid(self) -> bool:
        """Whether the content of the request is at fault, not rights or configuration."""
        return self.code in {"ValidationException", "SerializationException"}
