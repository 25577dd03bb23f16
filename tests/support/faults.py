"""A port that fails as DynamoDB and the way to it do."""

from collections import deque
from collections.abc import Callable, Iterable, Mapping
from enum import StrEnum
from typing import Any, Final

from spillway.dynamodb.port import Call, OutcomeUnknownError, ThrottledError, UnreachableError

__all__ = ["Fault", "FaultyCall", "throttled_call"]

Response = dict[str, Any]


class Fault(StrEnum):
    """What happens to one request."""

    NONE = "none"
    THROTTLED = "throttled"  # not carried out
    UNREACHABLE = "unreachable"  # not carried out
    LOST_REQUEST = "lost request"  # not carried out, which the caller can't know
    LOST_REPLY = "lost reply"  # carried out, which the caller can't know
    HALF = "half"  # every second item of a batch is unprocessed
    ONE = "one"  # all items but the first are unprocessed


_PARTIAL: Final = {Fault.HALF: slice(1, None, 2), Fault.ONE: slice(1, None)}


class FaultyCall:
    """Carries requests out, or not, as the list of faults says; without faults once the list is used up.

    `on_call` runs before each request, such as to move a clock.
    """

    def __init__(
        self, call: Call, faults: Iterable[Fault], on_call: Callable[[str], None] | None = None
    ) -> None:
        self._call = call
        self._faults = deque(faults)
        self._on_call = on_call

    def __call__(self, operation: str, request: Mapping[str, Any], /) -> Response:
        if self._on_call is not None:
            self._on_call(operation)
        fault = self._faults.popleft() if self._faults else Fault.NONE
        match fault:
            case Fault.THROTTLED:
                raise ThrottledError("ThrottlingException", "slow down")
            case Fault.UNREACHABLE:
                raise UnreachableError("EndpointConnectionError", "refused")
            case Fault.LOST_REQUEST:
                raise OutcomeUnknownError("ConnectionClosedError", "reset")
            case Fault.LOST_REPLY:
                self._call(operation, request)
                raise OutcomeUnknownError("ReadTimeoutError", "timed out")
            case Fault.HALF | Fault.ONE if operation == "BatchWriteItem":
                return self._write_some(request, _PARTIAL[fault])
        return self._call(operation, request)

    def _write_some(self, request: Mapping[str, Any], left: slice) -> Response:
        ((table, writes),) = request["RequestItems"].items()
        unprocessed = writes[left]
        done = [each for each in writes if each not in unprocessed]
        self._call("BatchWriteItem", {"RequestItems": {table: done}})
        return {"UnprocessedItems": {table: unprocessed} if unprocessed else {}}


def throttled_call(operation: str, request: Mapping[str, Any], /) -> Response:
    """Throttle everything."""
    raise ThrottledError("ProvisionedThroughputExceededException", f"{operation} {len(request)}")
