"""Faults on purpose: what a test wants broken between a client and the engine.

One fault is `OPERATION:KIND:PROBABILITY`; OPERATION may be `*`, every operation on items. KIND is

| kind | what happens | written? |
|---|---|---|
| `500` `502` `503` `504` | that error, in DynamoDB's shape | no |
| `throttle` | the exception of a hot partition, uncounted by the model | no |
| `latency:TIME` | the call waits, such as `200ms` or `1.5s`, and goes on | yes |
| `reset-before` | the connection is reset before the engine sees the call | no |
| `reset-after` | the engine does it, then the connection is reset | yes |
| `lost-reply` | the engine does it, but no answer comes until the client gives up | yes |
"""

import re
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from random import Random
from typing import Final

from dynamoheat.serve.wire import DATA_PLANE, EndpointCall, Forward, Reply, UnansweredError, refusal

__all__ = ["Fault", "Faults", "fault"]

_ANY: Final = "*"
_CONTROL_PLANE: Final = frozenset({
    "CreateTable", "DeleteTable", "DescribeContributorInsights", "DescribeTable",
    "DescribeTimeToLive", "ListTables", "UpdateContributorInsights", "UpdateTable",
    "UpdateTimeToLive",
})  # fmt: skip
_ERRORS: Final = {
    "500": "InternalServerError",
    "502": "InternalServerError",
    "503": "ServiceUnavailable",
    "504": "InternalServerError",
}
_KINDS: Final = (*_ERRORS, "throttle", "latency:TIME", "reset-before", "reset-after", "lost-reply")
_TIME: Final = re.compile(r"(\d+(?:\.\d+)?)(ms|s)")
_PROBABILITY: Final = re.compile(r"\d+(\.\d+)?|\.\d+")

Sleep = Callable[[float], Awaitable[None]]
Refuse = Callable[[EndpointCall], Reply]


@dataclass(frozen=True, slots=True)
class Fault:
    """A fault: `text` says it as it was given; `seconds` is of a latency."""

    text: str
    operation: str
    kind: str
    probability: float
    seconds: float = 0.0

    def concerns(self, operation: str) -> bool:
        """Say whether calls of an operation may be hit."""
        return self.operation == operation or (self.operation == _ANY and operation in DATA_PLANE)


def fault(text: str) -> Fault:
    """Return the fault that a text describes. ValueError with a sentence where it describes none."""
    operation, *words = text.split(":")
    if operation != _ANY and operation not in DATA_PLANE | _CONTROL_PLANE:
        raise ValueError(
            f"The fault {text!r} names no operation of DynamoDB before its first colon."
        )
    kind, *rest = words or [""]
    time = rest.pop(0) if kind == "latency" and rest else None
    if (
        len(rest) != 1
        or kind not in {*_KINDS, "latency"}
        or (kind == "latency") != (time is not None)
    ):
        known = ", ".join(_KINDS)
        raise ValueError(
            f"The fault {text!r} is not OPERATION:KIND:PROBABILITY with a kind of {known}."
        )
    return Fault(text, operation, kind, _probability(text, rest[0]), _seconds(text, time))


class Faults:
    """The faults in force; they may be replaced at any time."""

    def __init__(
        self, faults: Iterable[Fault], random: Random, sleep: Sleep, refuse: Refuse
    ) -> None:
        """Take the faults, their chance, how to wait, and what says that a call is throttled."""
        self.injected: Counter[str] = Counter()  # by the fault's text
        self._faults = tuple(faults)
        self._random = random
        self._sleep = sleep
        self._refuse = refuse

    @property
    def texts(self) -> list[str]:
        """The faults in force, as they were given."""
        return [each.text for each in self._faults]

    def replace(self, faults: Iterable[Fault]) -> None:
        """Put others in force, or none; the counts begin anew."""
        self._faults = tuple(faults)
        self.injected.clear()

    async def answer(self, call: EndpointCall, forward: Forward) -> Reply:
        """Answer a call, or break it.

        Raises:
            UnansweredError: The caller must get no answer.
        """
        for each in self._faults:
            if not each.concerns(call.operation) or self._random.random() >= each.probability:
                continue
            self.injected[each.text] += 1
            if each.kind == "latency":
                await self._sleep(each.seconds)
            else:
                return await _broken(each.kind, call, forward, self._refuse)
        return await forward(call)


async def _broken(kind: str, call: EndpointCall, forward: Forward, refuse: Refuse) -> Reply:
    if kind == "reset-before":
        raise UnansweredError(reset=True)
    if kind in _ERRORS:
        return refusal(int(kind), _ERRORS[kind], "A fault that was asked for.")
    if kind == "throttle":
        return refuse(call)
    await forward(call)
    raise UnansweredError(reset=kind == "reset-after")


def _probability(text: str, given: str) -> float:
    if not _PROBABILITY.fullmatch(given) or float(given) > 1:
        raise ValueError(f"The fault {text!r} does not end in a probability from 0 to 1.")
    return float(given)


def _seconds(text: str, given: str | None) -> float:
    if given is None:
        return 0.0
    found = _TIME.fullmatch(given)
    if found is None:
        raise ValueError(f"The fault {text!r} has no time such as 200ms or 1.5s.")
    return float(found[1]) / (1000 if found[2] == "ms" else 1)
