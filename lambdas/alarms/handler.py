"""The desk: what is done with each message, one after the other, so that a bad one holds no other up."""

from collections.abc import Iterable
from typing import Any, Final

from aws_lambda_powertools import Logger, Metrics
from aws_lambda_powertools.metrics import MetricUnit

from lambdas.alarms.deduplicator import AlarmDeduplicator
from lambdas.alarms.messages import Dropped, Scheduled
from spillway import StorageError
from spillway.control import AlarmState, Scaler, parse_signal

__all__ = ["AlarmHandler"]

_MAX_TEXT: Final = 300  # characters of what is wrong with a message


class AlarmHandler:
    """Deals with messages by a scaler."""

    def __init__(
        self, scaler: Scaler, inbox: AlarmDeduplicator, logger: Logger, metrics: Metrics
    ) -> None:
        self._scaler = scaler
        self._inbox = inbox
        self._logger = logger
        self._metrics = metrics

    def deal_with(
        self, messages: Iterable[AlarmState | Scheduled | Dropped], deadline: float
    ) -> None:
        """Deal with all messages; raises the first StorageError after that, so that Lambda tries again."""
        failed: StorageError | None = None
        for message in messages:
            try:
                self._deal_with(message, deadline)
            except StorageError as error:
                self._logger.warning("storage failed", extra={"code": error.code})
                failed = failed or error
        if failed is not None:
            raise failed

    def _deal_with(self, message: AlarmState | Scheduled | Dropped, deadline: float) -> None:
        if isinstance(message, Scheduled):
            self._scaler.on_schedule(deadline)
        elif isinstance(message, Dropped):
            self._drop(message.why)
        else:
            self._answer(message)

    def _answer(self, alarm: AlarmState) -> None:
        told: dict[str, Any] = {"alarm": alarm.name, "state": alarm.state, "metric": alarm.metric}
        objection = self._inbox.objection(alarm)
        if objection is not None:
            self._drop(objection, told)
            return
        signal = parse_signal(alarm, events=self._scaler.events, layouts=self._scaler.layouts_table)
        if signal is None:
            self._drop("not about these tables", told)
            return
        self._logger.info("alarm", extra=told)
        if alarm.fires:
            self._scaler.on_alarm(signal)
        self._inbox.handled(alarm)

    def _drop(self, why: str, told: dict[str, Any] | None = None) -> None:
        self._logger.info("message dropped", extra={"why": why[:_MAX_TEXT], **(told or {})})
        self._metrics.add_metric("AlarmMessagesDropped", MetricUnit.Count, 1)
