"""The local CloudWatch: metrics, insights and alarms, fed and evaluated in the background."""

import asyncio
import json
import logging
from collections.abc import Callable, Mapping
from typing import Any, Final

from dynamoheat import Heat
from local.calls import EndpointCall, Forward, Reply
from local.cloudwatch import data, reading
from local.cloudwatch.contributors import ALL_KEYS, Contributors, Place, completed
from local.cloudwatch.errors import CloudWatchError
from local.cloudwatch.parameters import Parameters
from local.cloudwatch.protocols import CloudWatchRequest, answered, refused
from local.cloudwatch.reports import report
from local.cloudwatch.store import MetricStore, MetricTime
from local.cloudwatch.throughput import ThroughputMetrics
from local.cloudwatch.watch import AlarmWatch
from local.templates import TemplateSettings

__all__ = ["CloudWatch"]

_log = logging.getLogger(__name__)

_TARGET: Final = "GraniteServiceVersion20100801."
_LAG: Final = 0.05  # seconds after a minute's end, so that it is over on every clock


class CloudWatch:
    """Answers what MiniStack's CloudWatch cannot, and keeps its alarms' states."""

    def __init__(
        self,
        heat: Heat,
        *,
        scale: float,
        clock: Callable[[], float],
        declared: Forward,
        templates: Callable[[], Mapping[str, TemplateSettings]],
    ) -> None:
        """Take the model, the time scale, the model's clock (wall time) and what sends calls to MiniStack.

        `templates` returns the settings of the tables that templates declare.
        """
        self._clock = clock
        self._declared = declared
        self._templates = templates
        self._time = MetricTime(scale)
        self._store = MetricStore()
        self._contributors = Contributors(heat)
        self._throughput = ThroughputMetrics(heat, self._store, self._time)
        self._watch = AlarmWatch(self._store, self._time, self._ask)

    async def answer(self, asked: CloudWatchRequest) -> Reply | None:
        """Answer a request of the metrics API, None where MiniStack knows the answer."""
        if asked.operation not in _OPERATIONS:
            return None
        try:
            return answered(asked, await self._content(asked))
        except CloudWatchError as error:
            return refused(asked, error)
        except ConnectionError as error:
            fault = CloudWatchError(
                "InternalServiceFault", f"The emulated AWS: {error}", status=500
            )
            return refused(asked, fault)

    async def with_insights(self, call: EndpointCall) -> Reply:
        """Forward a call of DynamoDB's to MiniStack; complete its answers about Contributor Insights."""
        reply = await self._declared(call)
        if reply.status != 200:
            return reply
        if call.operation in ("DeleteTable", "UpdateTable"):
            self._forget_deleted(call.operation, json.loads(call.body))
        if not call.operation.endswith("ContributorInsights"):
            return reply
        self._learn()
        if call.operation == "UpdateContributorInsights":
            self._change_insights(json.loads(call.body))
        answer = completed(json.loads(reply.body), self._contributors)
        return Reply(200, json.dumps(answer).encode(), reply.headers)

    def _forget_deleted(self, operation: str, asked: Parameters) -> None:
        table = _plain(asked["TableName"])
        if operation == "DeleteTable":
            self._contributors.forget(table)
        for entry in asked.get("GlobalSecondaryIndexUpdates") or ():
            if "Delete" in entry:
                self._contributors.forget(table, entry["Delete"]["IndexName"])

    def _change_insights(self, asked: Parameters) -> None:
        place = Place(_plain(asked["TableName"]), asked.get("IndexName"))
        if asked["ContributorInsightsAction"] == "ENABLE":
            mode = (
                asked.get("ContributorInsightsMode") or self._contributors.mode(place) or ALL_KEYS
            )
            self._contributors.enable(place, mode, self._clock())
        else:
            self._contributors.disable(place)

    async def run(self) -> None:
        """Carry metrics and evaluate alarms, each minute of metric time, until cancelled."""
        while True:
            now = self._clock()
            step = self._time.wall(self._watch.step)
            await asyncio.sleep(step - now % step + min(_LAG, step / 10))
            try:
                await self._turn(self._clock())
            except (ConnectionError, LookupError, ValueError):
                _log.exception("the alarms could not be evaluated")

    async def _turn(self, now: float) -> None:
        self._learn()
        self._throughput.collect(now)
        await self._take_recorded()
        await self._watch.evaluate(now)

    def _learn(self) -> None:
        self._contributors.learn(self._templates(), self._clock())

    async def _content(self, asked: CloudWatchRequest) -> dict[str, Any]:
        parameters = asked.parameters()
        if asked.operation != "PutMetricData":
            self._learn()
            self._throughput.collect(self._clock())
            await self._take_recorded()
        return _OPERATIONS[asked.operation](self, parameters)

    async def _take_recorded(self) -> None:
        taken = await self._ask("TakeMetrics", {})
        data.put_recorded(taken["Metrics"], self._store, self._time)

    async def _ask(self, operation: str, request: Mapping[str, Any]) -> dict[str, Any]:
        headers = {
            "X-Amz-Target": _TARGET + operation,
            "Content-Type": "application/x-amz-json-1.0",
        }
        reply = await self._declared(EndpointCall(operation, json.dumps(request).encode(), headers))
        if reply.status != 200:
            raise ConnectionError(f"{operation}: {reply.status} {reply.body[:200]!r}")
        found = json.loads(reply.body or b"{}")
        return found if isinstance(found, dict) else {}

    def _put(self, asked: Parameters) -> dict[str, Any]:
        return data.put(asked, self._store, self._time, self._clock())

    def _list(self, asked: Parameters) -> dict[str, Any]:
        return reading.listed(asked, self._store)

    def _statistics(self, asked: Parameters) -> dict[str, Any]:
        return reading.statistics(asked, self._store, self._time)

    def _data(self, asked: Parameters) -> dict[str, Any]:
        return reading.data(asked, self._store, self._time)

    def _report(self, asked: Parameters) -> dict[str, Any]:
        return report(asked, self._contributors, self._time)


_OPERATIONS: Final[Mapping[str, Callable[[CloudWatch, Parameters], dict[str, Any]]]] = {
    "GetInsightRuleReport": CloudWatch._report,  # noqa: SLF001
    "GetMetricData": CloudWatch._data,  # noqa: SLF001
    "GetMetricStatistics": CloudWatch._statistics,  # noqa: SLF001
    "ListMetrics": CloudWatch._list,  # noqa: SLF001
    "PutMetricData": CloudWatch._put,  # noqa: SLF001
}


def _plain(name: str) -> str:
    return str(name).rpartition(":table/")[2]
