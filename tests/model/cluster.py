"""Processes that take turns at every call to DynamoDB: a cooperative scheduler over the shipped code.

Each process is a greenlet with an event store, caches and clocks of its own. It gives way before each call of the port
and after it, before the reply arrives: whatever can happen between two calls of real processes can happen here, in
an order that a seed decides. The hub may freeze a process, crash it at any such point, throttle a call,
or lose its reply.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

from greenlet import GreenletExit, getcurrent, greenlet

from spillway import EventStore, OutcomeUnknownError, Runtime, Settings, ThrottledError
from spillway.dynamodb.port import Item, ThrottlingReason
from tests.support.atomic_table import AtomicTables
from tests.support.fakes import dated, one_by_one
from tests.support.memory_table import EVENTS, LAYOUTS

__all__ = ["NOON", "Cluster", "Faults", "Process"]

T = TypeVar("T")

NOON: Final = 1_780_315_200.0  # 2026-06-01T12:00:00Z


@dataclass
class Faults:
    """What may go wrong with a call; each decides anew at every call."""

    throttled: Callable[[str, Mapping[str, Any]], bool] = lambda *_: False
    put_throttled: Callable[[Item], bool] = lambda _: False
    reply_lost: Callable[[str], bool] = lambda _: False
    reasons: Callable[[], tuple[ThrottlingReason, ...]] = tuple


@dataclass(eq=False)
class Process:
    """One process of the cluster; `at` says where it waits: `("before" | "after", operation)`.

    `sees_date`: responses about layouts carry the Date header, by the true time. DynamoDB's always
    do; other endpoints and adapters may not.
    """

    name: str
    cluster: "Cluster"
    settings: Settings
    clock_offset: float = 0.0
    sees_date: bool = False
    frozen_for: float = 0.0
    wakes_at: float = 0.0
    at: tuple[str, str] = ("", "")
    calls: int = 0
    store: EventStore = field(init=False)
    failure: BaseException | None = None
    _greenlet: greenlet | None = None

    def __post_init__(self) -> None:
        self.restart()

    def restart(self) -> None:
        """Begin anew with empty caches, as after a crash."""
        self.store = EventStore(
            self._call,
            table=EVENTS,
            layouts=LAYOUTS,
            settings=self.settings,
            runtime=self.runtime(),
        )

    def runtime(self) -> Runtime:
        """Return clocks, sleep and randomness of this process."""
        return Runtime(
            now=self.now,
            monotonic=lambda: self.cluster.time - self.frozen_for,
            sleep=self._sleep,
            random=self.cluster.random,
            new_id=lambda: f"made-{self.cluster.steps}",
            parallel=self._in_any_order,
        )

    def now(self) -> float:
        """Return the wall clock, off by this process's offset."""
        return self.cluster.time + self.clock_offset

    def start(self, script: Callable[[], object]) -> None:
        """Let the process run a script when it is next resumed."""
        self._greenlet = greenlet(lambda: self._run(script), parent=getcurrent())
        self.at = ("start", "")

    def _run(self, script: Callable[[], object]) -> None:
        try:
            script()
        except GreenletExit:
            raise
        except BaseException as error:  # noqa: BLE001  the test's own main loop raises it
            self.failure = error

    @property
    def done(self) -> bool:
        """Whether the script has ended."""
        return self._greenlet is None or self._greenlet.dead

    def resume(self) -> None:
        """Run until the process next gives way."""
        assert self._greenlet is not None
        self.cluster.steps += 1
        self._greenlet.switch()
        if self.failure is not None:
            raise self.failure

    def run_until(self, moment: str, *operations: str) -> None:
        """Run alone until it waits at a moment of one of some operations, such as `before UpdateItem`."""
        self.resume()
        while not self.done and not (self.at[0] == moment and self.at[1] in operations):
            self.resume()
        assert not self.done, f"{self.name} ended before it came to {moment} {operations}"

    def run(self) -> None:
        """Run alone until the script ends."""
        while not self.done:
            self.cluster.time = max(self.cluster.time, self.wakes_at)
            self.resume()

    def freeze(self, seconds: float) -> None:
        """Let time pass that the process does not notice on its monotonic clock."""
        self.frozen_for += seconds
        self.wakes_at = self.cluster.time + seconds

    def crash(self) -> None:
        """Kill the process where it waits; it restarts without memory."""
        if self._greenlet is not None and not self._greenlet.dead:
            self._greenlet.throw(GreenletExit)
        self._greenlet = None
        self.restart()

    def _give_way(self, moment: str, operation: str) -> None:
        self.at = (moment, operation)
        current = getcurrent()
        assert current.parent is not None
        current.parent.switch()

    def _in_any_order(self, tasks: Sequence[Callable[[], T]], /) -> list[T]:
        """Run tasks that are sent at the same time one after the other, in an order that the seed decides."""
        order = sorted(range(len(tasks)), key=lambda _: self.cluster.random())
        results = dict(zip(order, one_by_one([tasks[at] for at in order]), strict=True))
        return [results[at] for at in range(len(tasks))]

    def _sleep(self, seconds: float) -> None:
        self.wakes_at = self.cluster.time + seconds
        self._give_way("asleep", "")

    def _call(self, operation: str, request: Mapping[str, Any], /) -> dict[str, Any]:
        self.calls += 1
        self._give_way("before", operation)
        faults = self.cluster.faults
        if faults.throttled(operation, request):
            raise ThrottledError("ThrottlingException", "")
        response = self._carry_out(operation, request)
        if self.sees_date and operation in {"GetItem", "UpdateItem"}:
            response = dated(response, self.cluster.time)
        self._give_way("after", operation)
        if faults.reply_lost(operation):
            raise OutcomeUnknownError("ConnectionClosedError", "")
        return response

    def _carry_out(self, operation: str, request: Mapping[str, Any]) -> dict[str, Any]:
        tables = self.cluster.tables
        if operation == "Query":
            return tables.query(request)
        if operation == "GetItem":
            return tables.get(request)
        if operation == "UpdateItem":
            return tables.update_layout(request)
        if operation == "PutItem":
            self._put(request)
            return {}
        assert operation == "BatchWriteItem", operation
        return self._write_batch(request)

    def _put(self, request: Mapping[str, Any]) -> None:
        if request["TableName"] == LAYOUTS:
            self.cluster.tables.put_layout(request["Item"])
        elif self.cluster.faults.put_throttled(request["Item"]):
            raise ThrottledError("ThrottlingException", "", self.cluster.faults.reasons())
        else:
            self.cluster.tables.put_event(request["Item"])

    def _write_batch(self, request: Mapping[str, Any]) -> dict[str, Any]:
        puts = request["RequestItems"][EVENTS]
        unprocessed = []
        for number, put in enumerate(puts):
            item = put["PutRequest"]["Item"]
            if self.cluster.faults.put_throttled(item):
                unprocessed.append(put)
                continue
            self.cluster.tables.put_event(item)
            if number + 1 < len(puts):
                self._give_way("within", "BatchWriteItem")
        if len(unprocessed) == len(puts):
            raise ThrottledError("ThrottlingException", "", self.cluster.faults.reasons())
        return {"UnprocessedItems": {EVENTS: unprocessed} if unprocessed else {}}


class Cluster:
    """The tables, the true time, and the processes that share them."""

    def __init__(self, random: Callable[[], float], faults: Faults | None = None) -> None:
        self.tables = AtomicTables()
        self.time = NOON
        self.steps = 0
        self.random = random
        self.faults = faults or Faults()

    def process(
        self,
        name: str,
        settings: Settings,
        clock_offset: float = 0.0,
        *,
        sees_date: bool = False,
    ) -> Process:
        """Return a new process."""
        return Process(name, self, settings, clock_offset, sees_date)
