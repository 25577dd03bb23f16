"""Handles messages to the scaler one after the other, so that a bad one holds no other up."""

from collections.abc import Callable, Iterable
from typing import Any, Final

from aws_lambda_powertools import Logger, Metrics
from aws_lambda_powertools.metrics import MetricUnit
from aws_lambda_powertools.utilities.typing import LambdaContext

from lambdas.alarms.deduplicator import AlarmDeduplicator
from lambdas.alarms.messages import Dropped, Scheduled, decode
from spillway import StorageError
from spillway.control import AlarmState, Scaler, parse_signal

__all__ = ["AlarmHandler", "create_app"]

_MARGIN_SECONDS: Final = 10.0  # in which what is under way ends
_MAX_REASON_LENGTH: Final = 300


def create_app(
    alarms: "AlarmHandler", logger: Logger, metrics: Metrics, monotonic: Callable[[], float]
) -> Callable[[Any, LambdaContext], None]:
    """Return the handler of alarms and of the schedule; other events are logged and dropped."""

    @metrics.log_metrics
    @logger.inject_lambda_context(clear_state=True)
    def handler(event: Any, context: LambdaContext) -> None:
        metrics.add_metric("Runs", MetricUnit.Count, 1)
        left = context.get_remaining_time_in_millis() / 1_000
        alarms.handle(decode(event), monotonic() + left - _MARGIN_SECONDS)

    return handler


class AlarmHandler:
    """Passes alarms and the schedule on to a scaler."""

    def __init__(
        self, scaler: Scaler, deduplicator: AlarmDeduplicator, logger: Logger, metrics: Metrics
    ) -> None:
        self._scaler = scaler
        self._deduplicator = deduplicator
        self._logger = logger
        self._metrics = metrics

    def handle(self, messages: Iterable[AlarmState | Scheduled | Dropped], deadline: float) -> None:
        """Handle all messages, then raise the first StorageError, so that Lambda tries again.

        `deadline` is monotonic.
        """
        failure: StorageError | None = None
        for message in messages:
            try:
                self._handle(message, deadline)
            except StorageError as error:
                self._logger.warning("storage failed", extra={"code": error.code})
                failure = failure or error
        if failure is not None:
            raise failure

    def _handle(self, message: AlarmState | Scheduled | Dropped, deadline: float) -> None:
        if isinstance(message, Scheduled):
            self._scaler.on_schedule(deadline)
        elif isinstance(message, Dropped):
            self._drop(message.reason, {})
        else:
            self._handle_alarm(message)

    def _handle_alarm(self, alarm: AlarmState) -> None:
        details = {"alarm": alarm.name, "state": alarm.state, "metric": alarm.metric}
        reason = self._deduplicator.skip_reason(alarm)
        if reason is not None:
            self._drop(reason, details)
            return
        signal = parse_signal(alarm, events=self._scaler.events, layouts=self._scaler.layouts_table)
        if signal is None:
            self._drop("not about these tables", details)
            return
        self._logger.info("alarm", extra=details)
        if alarm.fires:
            self._scaler.on_alarm(signal)
        self._deduplicator.mark_handled(alarm)

    def _drop(self, reason: str, details: dict[str, str]) -> None:
        extra = {"why": reason[:_MAX_REASON_LENGTH], **details}
        self._logger.info("message dropped", extra=extra)
        self._metrics.add_metric("AlarmMessagesDropped", MetricUnit.Count, 1)
