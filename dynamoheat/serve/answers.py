"""What a client gets to see of a throttle: exceptions, cancelled transactions, unprocessed items."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

from dynamoheat.outcome import Admission
from dynamoheat.reasons import Throttle, ThrottleCause
from dynamoheat.serve.wire import EndpointCall, Reply, document, refusal, replied, tables_named

__all__ = ["refused", "throttled_call", "with_capacity", "with_unprocessed"]

Arn = Callable[[Throttle], str]

_REASONS: Final = {
    "ProvisionedThroughputExceededException": "ThrottlingReasons",
    "ThrottlingException": "throttlingReasons",
}
_LEFT: Final = {"BatchWriteItem": "UnprocessedItems", "BatchGetItem": "UnprocessedKeys"}
_READING: Final = ("Get", "Query", "Scan")  # in names of operations
_TRANSACTIONS: Final = frozenset({"TransactGetItems", "TransactWriteItems"})
_SINGLE: Final = frozenset({"DeleteItem", "GetItem", "PutItem", "Query", "Scan", "UpdateItem"})


def refused(admission: Admission, arn: Arn) -> Reply:
    """Return the error for a request of which nothing got through."""
    if admission.asked.together:
        return _cancelled(admission.verdicts)
    return _throttled(admission.throttles, arn)


def throttled_call(call: EndpointCall, is_provisioned: Callable[[str], bool], arn: Arn) -> Reply:
    """Return the answer to a call as though the first table that it names had a hot partition."""
    request = document(call.body) or {}
    name = next(iter(tables_named(request)), "unknown")
    write = not any(word in call.operation for word in _READING)
    throttle = Throttle(ThrottleCause.KEY_RANGE, name, None, write, is_provisioned(name))
    if call.operation in _TRANSACTIONS:
        return _cancelled([throttle for _ in request.get("TransactItems") or (None,)])
    return _throttled([throttle], arn)


def with_unprocessed(answer: dict[str, Any], admission: Admission) -> None:
    """Add a batch's throttled items to those that the engine left unprocessed."""
    if not admission.throttles:
        return
    left: dict[str, Any] = answer.setdefault(_LEFT[admission.operation], {})
    for table, wanted in admission.unprocessed.items():
        if table not in left:
            left[table] = wanted
        elif isinstance(wanted, Mapping):
            left[table] = {**wanted, "Keys": [*left[table]["Keys"], *wanted["Keys"]]}
        else:
            left[table] = [*left[table], *wanted]


def with_capacity(answer: dict[str, Any], admission: Admission, form: str) -> None:
    """Report what the request consumed, by the model's count."""
    reports = admission.consumed_capacity(form)
    if admission.operation not in _SINGLE:
        answer["ConsumedCapacity"] = reports
    elif reports:
        answer["ConsumedCapacity"] = reports[0]


def _throttled(throttles: Sequence[Throttle], arn: Arn) -> Reply:
    """Return the exception that the first throttle causes, with the reasons of all."""
    first = throttles[0]
    reasons = dict.fromkeys((str(each.reason), arn(each)) for each in throttles)
    listed = [{"reason": reason, "resource": resource} for reason, resource in reasons]
    return refusal(400, first.exception, first.message, **{_REASONS[first.exception]: listed})


def _cancelled(verdicts: Iterable[Throttle | None]) -> Reply:
    reasons = [
        {"Code": "None"}
        if verdict is None
        else {"Code": verdict.cancellation, "Message": verdict.message}
        for verdict in verdicts
    ]
    codes = ", ".join(reason["Code"] for reason in reasons)
    message = (
        f"Transaction cancelled, please refer cancellation reasons for specific reasons [{codes}]"
    )
    kind = "com.amazonaws.dynamodb.v20120810#TransactionCanceledException"
    return replied(400, {"__type": kind, "CancellationReasons": reasons, "Message": message})
