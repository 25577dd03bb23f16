"""The local CloudWatch: metrics, insights and alarms, collected and evaluated in the background."""

import asyncio
import json
import logging
from collections.abc import Callable, Mapping
from typing import Any, Final

from dynamoheat import Heat
from dynamoheat.serve.wire import EndpointCall, Forward, Reply
from local.cloudwatch import metric_api
from local.cloudwatch.alarms import AlarmEvaluator
from local.cloudwatch.insights import (
    ALL_KEYS,
    InsightRules,
    TableOrIndex,
    complete_answer,
    get_insight_rule_report,
)
from local.cloudwatch.metric_store import MetricStore, MetricTime
from local.cloudwatch.requests import (
    JSON_TARGET,
    CloudWatchError,
    CloudWatchRequest,
    Parameters,
    error_reply,
    success_reply,
    unsupported_math,
)
from local.cloudwatch.throughput import ThroughputMetrics
from local.table_settings import TemplateSettings

__all__ = ["CloudWatch"]

_log = logging.getLogger(__name__)

_DELAY_SECONDS: Final = 0.05  # after a minute's end, so that it is over on every clock


class CloudWatch:
    """Answers what MiniStack's CloudWatch cannot, and keeps the states of its alarms."""

    def __init__(
        self,
        heat: Heat,
        *,
        scale: float,
        clock: Callable[[], float],
        declared: Forward,
        templates: Callable[[], Mapping[str, TemplateSettings]],
    ) -> None:
        """Take the model, the time scale, the model's clock (wall time), and MiniStack.

        `declared` sends a call to MiniStack. `templates` returns the settings of the tables that
        templates declare.
        """
        self._clock = clock
        self._declared = declared
        self._templates = templates
        self._time = MetricTime(scale)
        self._store = MetricStore()
        self._rules = InsightRules(heat)
        self._throughput = ThroughputMetrics(heat, self._store, self._time)
        self._alarms = AlarmEvaluator(self._store, self._time, self._call)

    async def answer(self, request: CloudWatchRequest) -> Reply | None:
        """Answer a request of the metrics API, None where MiniStack is to answer it."""
        try:
            content = await self._content(request)
        except CloudWatchError as error:
            return error_reply(request, error)
        except ConnectionError as error:
            message = f"The emulated AWS: {error}"
            return error_reply(
                request, CloudWatchError("InternalServiceFault", message, status=500)
            )
        return None if content is None else success_reply(request, content)

    async def with_insights(self, call: EndpointCall) -> Reply:
        """Forward a call of DynamoDB's to MiniStack; complete answers on Contributor Insights."""
        reply = await self._declared(call)
        if reply.status != 200:
            return reply
        if call.operation in ("DeleteTable", "UpdateTable"):
            self._forget_deleted(call.operation, json.loads(call.body))
        if not call.operation.endswith("ContributorInsights"):
            return reply
        self._apply_templates()
        if call.operation == "UpdateContributorInsights":
            self._update_insights(json.loads(call.body))
        answer = complete_answer(json.loads(reply.body), self._rules)
        return Reply(200, json.dumps(answer).encode(), reply.headers)

    async def run(self) -> None:
        """Collect metrics and evaluate alarms, each minute of metric time, until cancelled."""
        while True:
            now = self._clock()
            step = self._time.wall(self._alarms.step)
            await asyncio.sleep(step - now % step + min(_DELAY_SECONDS, step / 10))
            try:
                now = self._clock()
                await self._collect(now)
                await self._alarms.evaluate(now)
            except (ConnectionError, LookupError, ValueError):
                _log.exception("the alarms could not be evaluated")

    async def _content(self, request: CloudWatchRequest) -> dict[str, Any] | None:
        operation = request.operation
        if operation == "PutMetricAlarm":
            _refuse_math(request.parameters())
        if operation not in _OPERATIONS:
            return None
        parameters = request.parameters()
        if operation != "PutMetricData":
            await self._collect(self._clock())
        return _OPERATIONS[operation](self, parameters)

    async def _collect(self, now: float) -> None:
        self._apply_templates()
        self._throughput.collect(now)
        recorded = await self._call("TakeMetrics", {})
        metric_api.put_recorded_metrics(recorded["Metrics"], self._store, self._time)

    def _apply_templates(self) -> None:
        self._rules.apply_templates(self._templates(), self._clock())

    def _forget_deleted(self, operation: str, parameters: Parameters) -> None:
        table = _table_name(parameters["TableName"])
        if operation == "DeleteTable":
            self._rules.forget(table)
        for entry in parameters.get("GlobalSecondaryIndexUpdates") or ():
            if "Delete" in entry:
                self._rules.forget(table, entry["Delete"]["IndexName"])

    def _update_insights(self, parameters: Parameters) -> None:
        place = TableOrIndex(_table_name(parameters["TableName"]), parameters.get("IndexName"))
        if parameters["ContributorInsightsAction"] == "ENABLE":
            mode = parameters.get("ContributorInsightsMode") or self._rules.mode(place)
            self._rules.enable(place, mode or ALL_KEYS, self._clock())
        else:
            self._rules.disable(place)

    async def _call(self, operation: str, parameters: Mapping[str, Any]) -> dict[str, Any]:
        """Call MiniStack's CloudWatch; ConnectionError where it fails."""
        headers = {
            "X-Amz-Target": JSON_TARGET + operation,
            "Content-Type": "application/x-amz-json-1.0",
        }
        body = json.dumps(parameters).encode()
        reply = await self._declared(EndpointCall(operation, body, headers))
        if reply.status != 200:
            raise ConnectionError(f"{operation}: {reply.status} {reply.body[:200]!r}")
        answer = json.loads(reply.body or b"{}")
        return answer if isinstance(answer, dict) else {}

    def _put_data(self, parameters: Parameters) -> dict[str, Any]:
        return metric_api.put_metric_data(parameters, self._store, self._time, self._clock())

    def _list(self, parameters: Parameters) -> dict[str, Any]:
        return metric_api.list_metrics(parameters, self._store)

    def _statistics(self, parameters: Parameters) -> dict[str, Any]:
        return metric_api.get_metric_statistics(parameters, self._store, self._time)

    def _data(self, parameters: Parameters) -> dict[str, Any]:
        return metric_api.get_metric_data(parameters, self._store, self._time)

    def _report(self, parameters: Parameters) -> dict[str, Any]:
        return get_insight_rule_report(parameters, self._rules, self._time)


_OPERATIONS: Final[Mapping[str, Callable[[CloudWatch, Parameters], dict[str, Any]]]] = {
    "GetInsightRuleReport": CloudWatch._report,  # noqa: SLF001
    "GetMetricData": CloudWatch._data,  # noqa: SLF001
    "GetMetricStatistics": CloudWatch._statistics,  # noqa: SLF001
    "ListMetrics": CloudWatch._list,  # noqa: SLF001
    "PutMetricData": CloudWatch._put_data,  # noqa: SLF001
}


def _refuse_math(alarm: Parameters) -> None:
    if alarm.get("Metrics") or alarm.get("ThresholdMetricId"):
        raise unsupported_math("an alarm must have a Namespace, a MetricName and a Threshold")


def _table_name(name_or_arn: str) -> str:
    return str(name_or_arn).rpartition(":table/")[2]
