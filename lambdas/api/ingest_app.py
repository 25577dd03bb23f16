"""The ingest function: writes events and answers for each of them."""

from collections.abc import Callable, Sequence
from typing import Any, Final

from aws_lambda_powertools import Logger, Metrics
from aws_lambda_powertools.event_handler import Response
from aws_lambda_powertools.event_handler.api_gateway import APIGatewayHttpResolver
from aws_lambda_powertools.metrics import MetricUnit
from aws_lambda_powertools.utilities.typing import LambdaContext

from lambdas.api.answers import answer_write
from lambdas.api.errors import handle_errors
from lambdas.api.ingest_body import decode_batch, decode_body, read_body
from spillway import Event, EventStore

__all__ = ["create_app", "sample_series"]

_WRITE_SECONDS: Final = 20.0  # an attempt under way then still ends within the 25 s of an answer
_MARGIN_SECONDS: Final = 5.0


def create_app(
    store: EventStore, logger: Logger, metrics: Metrics, random: Callable[[], float]
) -> Callable[[dict[str, Any], LambdaContext], dict[str, Any]]:
    """Return the handler of POST /v1/events. `random` gives floats of [0, 1)."""
    app = APIGatewayHttpResolver()
    handle_errors(app, logger)

    @app.post("/v1/events")
    def write_events() -> Response[Any]:
        request = app.current_event
        encoded = decode_body(read_body(request.raw_event), request.headers.get("content-type", ""))
        batch = decode_batch(encoded, request.headers.get("idempotency-key"))
        left = app.lambda_context.get_remaining_time_in_millis() / 1_000
        timeout = min(_WRITE_SECONDS, left - _MARGIN_SECONDS)
        result = batch.complete(store.write(batch.events, timeout=timeout))
        metrics.add_metric("EventsAccepted", MetricUnit.Count, result.accepted)
        metrics.add_metric("EventsRejected", MetricUnit.Count, len(result.rejected))
        codes = sorted({each.code for each in result.rejected})
        series = sample_series(batch.events, random)
        wrote = {"accepted": result.accepted, "rejected_codes": codes, "series": series}
        logger.info("wrote events", extra=wrote)
        return answer_write(result, ids_made=batch.ids_made)

    @metrics.log_metrics
    @logger.inject_lambda_context(clear_state=True)
    def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
        metrics.add_metric("Requests", MetricUnit.Count, 1)
        return app.resolve(event, context)

    return handler


def sample_series(events: Sequence[Event], random: Callable[[], float]) -> str | None:
    """Return the series of one event by chance, None where there is no event.

    Counting all events of a request for that series counts each series' own events on average. A
    log line then names one series, however many the request writes.
    """
    return events[int(random() * len(events))].series if events else None
